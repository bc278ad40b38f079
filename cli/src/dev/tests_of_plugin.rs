//! The tests that a plugin's folder has: cases, and tests in its own language.

use std::path::Path;
use std::process::Stdio;
use tokio::process::Command;

use crate::authored::AuthoredPlugin;
use crate::cases::{CaseFile, CaseResult, PluginUnderTest, run_all};
use crate::error::Error;
use crate::templates::Language;

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
    let plugin = PluginUnderTest::new(&AuthoredPlugin::read(folder)?);
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
            let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            let mut command = Command::new(program);
            command.args(["test", "--quiet"]);
            Some(command)
        }
        Language::Python => {
            let own = folder.join(".venv/bin/python");
            let program = if own.is_file() { own } else { "python3".into() };
            let mut command = Command::new(program);
            command.args(["-m", "unittest"]);
            has_file(folder, |name| name.starts_with("test") && name.ends_with(".py"))
                .then_some(command)
        }
        Language::JavaScript => {
            let mut command = Command::new("node");
            command.arg("--test");
            has_file(folder, |name| name.contains(".test.")).then_some(command)
        }
        Language::Rhai => None,
    }
}

fn has_file(folder: &Path, is_test: impl Fn(&str) -> bool) -> bool {
    let Ok(entries) = folder.read_dir() else { return false };
    entries.flatten().any(|entry| entry.file_name().to_str().is_some_and(&is_test))
}
