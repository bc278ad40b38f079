//! The tests that a plugin's folder has: cases, and tests in its own language.

use std::path::Path;
use std::process::Stdio;
use tokio::process::Command;

use crate::component_build::python::interpreter;
use crate::component_build::rust::cargo;
use crate::error::Error;
use crate::plugin_in_folder::PluginInFolder;
use crate::templates::Language;
use crate::test_cases::{CaseFile, CaseResult, PluginUnderTest, run_all};

/// Runs the cases of the plugin in a folder, and its tests in its own language. Gives whether it has any.
///
/// # Errors
///
/// What is not as expected, or the end of what tests print, where one fails.
pub(super) async fn run(folder: &Path, language: Language) -> Result<bool, Error> {
    let has_cases = run_cases(folder).await?;
    Ok(run_native(folder, language).await? || has_cases)
}

async fn run_cases(folder: &Path) -> Result<bool, Error> {
    let files = CaseFile::read_all(folder)?;
    if files.is_empty() {
        return Ok(false);
    }
    let plugin = PluginUnderTest::new(&PluginInFolder::read(folder)?);
    let mut problems = Vec::new();
    for file in &files {
        for CaseResult { name, problems: of_case, .. } in run_all(&plugin, file).await {
            let place = file.path.strip_prefix(folder).unwrap_or(&file.path).display();
            problems.extend(of_case.iter().map(|problem| format!("{place}: {name}: {problem}")));
        }
    }
    match problems.is_empty() {
        true => Ok(true),
        false => Err(Error::Tests(problems.join("\n"))),
    }
}

async fn run_native(folder: &Path, language: Language) -> Result<bool, Error> {
    let Some(mut command) = command(folder, language) else { return Ok(false) };
    let output = command
        .current_dir(folder)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .map_err(|error| Error::Host(format!("the tests of {}: {error}", folder.display())))?;
    if output.status.success() {
        return Ok(true);
    }
    let said = [&output.stdout[..], &output.stderr[..]].concat();
    let said = String::from_utf8_lossy(&said);
    let lines: Vec<&str> = said.lines().collect();
    let end = lines[lines.len().saturating_sub(MAX_LINES)..].join("\n");
    Err(Error::Tests(end))
}

/// The most lines that are shown of tests that fail.
const MAX_LINES: usize = 60;

fn command(folder: &Path, language: Language) -> Option<Command> {
    match language {
        Language::Rust => {
            let mut command = cargo(folder);
            command.args(["test", "--quiet"]);
            Some(command)
        }
        Language::Python => {
            let is_test = |name: &str| name.starts_with("test") && name.ends_with(".py");
            files(folder, is_test).next()?;
            let mut command = Command::new(interpreter(folder));
            command.args(["-m", "unittest"]);
            Some(command)
        }
        Language::JavaScript | Language::TypeScript => {
            let tests: Vec<String> = files(folder, |name| name.contains(".test.")).collect();
            let mut command = Command::new("node");
            if language == Language::TypeScript {
                command.args(["--import", "@tenon/sdk/register"]);
            }
            command.arg("--test").args(&tests);
            (!tests.is_empty()).then_some(command)
        }
        Language::Rhai | Language::Other => None,
    }
}

/// The names of the files of a folder that are tests.
fn files(folder: &Path, is_test: impl Fn(&str) -> bool) -> impl Iterator<Item = String> {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(move |name| is_test(name))
}
