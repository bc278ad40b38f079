//! A `SKILL.md` of any text.

use std::path::Path;

use super::{FILE_NAME, MAX_DESCRIPTION, PluginSkillFiles, SkillError};

/// Any text. What is wrong with it is on one of its lines; what is right has the name of its folder and a description
/// of bounded length.
pub fn skill(text: &str) {
    let path = format!("review/{FILE_NAME}");
    let mut files = PluginSkillFiles::default();
    if files.insert(path.clone(), text.into()).is_err() {
        return;
    }
    match files.skills(Path::new("")) {
        Ok(skills) => {
            let skills = skills.expect("there is a file");
            let [skill] = skills.all() else { panic!("it is one: {skills:?}") };
            assert_eq!(skill.name, "review");
            let length = skill.description.chars().count();
            assert!((1..=MAX_DESCRIPTION).contains(&length), "{length} characters");
            assert_eq!(skill.files().collect::<Vec<_>>(), [FILE_NAME]);
        }
        Err(SkillError::Invalid { path: found, problem }) => {
            assert_eq!(found, path);
            assert!(!problem.trim().is_empty(), "it is wrong for no reason");
            let line = problem.strip_prefix("line ").and_then(|rest| rest.split(':').next());
            if let Some(line) = line.and_then(|line| line.parse::<usize>().ok()) {
                // To YAML, a carriage return alone ends a line as well.
                let lines = 1..=text.split(['\n', '\r']).count();
                assert!(lines.contains(&line), "there is no line {line}: {problem}");
            }
        }
        Err(error) => panic!("nothing was to be read: {error}"),
    }
}
