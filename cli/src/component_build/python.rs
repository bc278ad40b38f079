//! Plugins in Python, which the builder of the package `tenon` makes.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::process::Command;

use super::{BuildTool, run_builder, text};
use crate::error::Error;
use tenon_contract::PluginMetadata;

/// The package is a module of the interpreter that runs it.
const BUILDER: BuildTool<'_> = BuildTool {
    name: "tenon-sdk for Python",
    program: "python",
    install: "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt",
};

pub(super) async fn build(folder: &Path, to: &Path) -> Result<(Vec<u8>, PluginMetadata), Error> {
    let about = about(&read(folder)?);
    for own in ["tenon.py", "tenon/__init__.py"] {
        if folder.join(own).exists() {
            let problem = "it hides the package `tenon`, which the plugin is built with: rename it";
            return Err(Error::Input(format!("{}: {problem}", folder.join(own).display())));
        }
    }
    let interpreter = interpreter(folder);
    let mut command = Command::new(&interpreter);
    command.args(["-m", "tenon.build"]);
    match run_builder(&BUILDER, command, folder, to).await {
        Err(Error::NotBuilt(_)) if !has_builder(&interpreter, folder).await => {
            Err(BUILDER.missing())
        }
        built => built.map(|component| (component, about)),
    }
}

/// The Python of a plugin's folder: that of its own environment, or else that of `PATH`.
pub(crate) fn interpreter(folder: &Path) -> PathBuf {
    let own = folder.join(".venv/bin").join(BUILDER.program);
    // Links are kept: an environment is found by its own.
    let own = std::path::absolute(own).ok().filter(|own| own.is_file());
    own.unwrap_or_else(|| "python3".into())
}

/// Whether there is a builder, as far as that can be told.
async fn has_builder(interpreter: &Path, folder: &Path) -> bool {
    let mut command = Command::new(interpreter);
    command.args(["-c", "import tenon.build"]).current_dir(folder);
    let ended = command.stdin(Stdio::null()).stderr(Stdio::null()).status().await;
    ended.is_ok_and(|status| status.success())
}

/// What `pyproject.toml` says of the project.
fn read(folder: &Path) -> Result<Value, Error> {
    let file = folder.join("pyproject.toml");
    let text = std::fs::read_to_string(&file).map_err(|error| Error::Read(file.clone(), error))?;
    let mut table: Value = toml::from_str(&text)
        .map_err(|error| Error::Input(format!("{}: {error}", file.display())))?;
    Ok(table["project"].take())
}

fn about(project: &Value) -> PluginMetadata {
    let authors = project["authors"].as_array().into_iter().flatten();
    let author = |author: &Value| match (text(author, "name"), text(author, "email")) {
        (Some(name), Some(email)) => Some(format!("{name} <{email}>")),
        (name, email) => name.or(email),
    };
    // Their labels are written in many ways.
    let url = |labels: &[&str]| {
        let plain = |label: &str| label.to_lowercase().replace(['-', '_', ' '], "");
        let urls: Vec<_> = project["urls"].as_object().into_iter().flatten().collect();
        let of = |label: &&str| urls.iter().find(|(own, _)| plain(own) == **label);
        labels.iter().find_map(of).and_then(|(_, url)| url.as_str()).map(str::to_string)
    };
    PluginMetadata {
        name: text(project, "name"),
        version: text(project, "version"),
        description: text(project, "description"),
        authors: authors.filter_map(author).collect(),
        licenses: text(project, "license"),
        source: url(&["source", "repository", "sourcecode", "github"]),
        homepage: url(&["homepage"]),
        revision: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_says_what_it_is() {
        let project = toml::from_str(
            r#"
            name = "hello"
            version = "1.0"
            license = "MIT"
            authors = [{ name = "Ada", email = "ada@example.com" }, { name = "Charles" }]
            [urls]
            "Source Code" = "https://example.com/hello.git"
            Homepage = "https://example.com"
            "#,
        );
        let said = about(&project.unwrap());
        assert_eq!(said.authors, ["Ada <ada@example.com>", "Charles"]);
        assert_eq!(said.source.as_deref(), Some("https://example.com/hello.git"));
        assert_eq!(said.homepage.as_deref(), Some("https://example.com"));
        assert_eq!((said.licenses.as_deref(), said.description), (Some("MIT"), None));
    }
}
