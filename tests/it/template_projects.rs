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
        "resource" => {
            // Each language has names of its own for them.
            let uri = |verb: &str| {
                let listed = said(&["resources", verb, name], 0);
                listed.split_once("  ").map(|(uri, _)| uri.to_string()).unwrap_or(listed)
            };
            assert_eq!(uri("list"), "planets://all");
            assert_eq!(uri("templates"), "planets://{number}");
            let all = said(&["resources", "read", name, "planets://all"], 0);
            assert!(all.contains("Mercury") && all.contains("Neptune"), "{all}");
            assert_eq!(said(&["resources", "read", name, "planets://3"], 0), "Earth\n");
            let output = run(project, folder, &["resources", "read", name, "planets://9"], 1);
            assert!(stderr(&output).contains("not found"), "{}", stderr(&output));
            // What is no number is an error of the plugin as well, and no trap.
            run(project, folder, &["resources", "read", name, "planets://earth"], 1);
        }
        "prompt" => {
            let list = "explain topic=… [audience=…]  Asks for an explanation.\n";
            assert_eq!(said(&["prompts", "list", name], 0), list);
            let get = ["prompts", "get", name, "explain"];
            let all = said(&[&get[..], &["topic=tides", "audience=a child"]].concat(), 0);
            assert_eq!(all, "[user]\nExplain tides to a child.\n");
            let required = said(&[&get[..], &["topic=tides"]].concat(), 0);
            assert_eq!(required, "[user]\nExplain tides to a beginner.\n");
            for wrong in ["audience=a child", "subject=tides"] {
                let output = run(project, folder, &[&get[..], &[wrong]].concat(), 1);
                assert!(stderr(&output).contains("invalid input"), "{}", stderr(&output));
            }
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
