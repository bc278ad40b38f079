//! Plugins as `tenon new` makes them, each tried as its README.md says.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::support::{Project, parsed, stderr, stdout};

/// The root of the repository.
pub(crate) const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Runs `tenon` in a folder below a project, where it must end with this code.
pub(crate) fn run(project: &Project, folder: &Path, arguments: &[&str], code: i32) -> Output {
    let mut command = project.command(arguments);
    command.env("TENON_SDK", format!("{ROOT}/sdk")).current_dir(folder);
    let output = command.output().expect("tenon starts");
    let said = format!("{}{}", stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
    output
}

/// A folder with nothing in it but what a test puts there.
pub(crate) fn empty() -> Project {
    let project = Project::new("");
    fs::remove_file(project.path("tenon.toml")).unwrap();
    project
}

/// Tries what the plugin of a template does, as its README.md says.
pub(crate) fn try_out(project: &Project, folder: &Path, name: &str, world: &str) {
    let said = |arguments: &[&str], code| stdout(&run(project, folder, arguments, code));
    match world {
        "tool" => {
            let tool = format!("{name}__greet");
            assert_eq!(said(&["call", &tool, r#"{"name": "Ada"}"#], 0), "Hello, Ada!\n");
            let output = run(project, folder, &["call", &tool, r#"{"name": " "}"#], 1);
            assert!(stdout(&output).contains("say whom to greet"), "{}", stdout(&output));
        }
        "hook" => {
            let context = r#"{"message": "Hi"}"#;
            let output =
                run(project, folder, &["hook", "message-sending", "--context", context], 0);
            assert_eq!(parsed(&output)["message"], format!("Hi\nSent with {name}"));
        }
        "provider" => {
            let model = format!("{name}/parrot");
            assert_eq!(said(&["complete", &model, "--prompt", "Polly wants"], 0), "Polly wants\n");
        }
        _ => {
            let subject = r#"{"output": "one two three four"}"#;
            let strategy = format!("{name}/concise");
            let arguments = ["eval", &strategy, "--subject", subject];
            assert!(said(&arguments, 0).starts_with("pass (1.00)"));
            let options = ["--options", r#"{"most": 3}"#];
            let output = run(project, folder, &[&arguments[..], &options, &["--json"]].concat(), 0);
            assert_eq!(parsed(&output)["score"], 0.75);
            assert_eq!(parsed(&output)["verdict"], "fail");
        }
    }
}
