//! Plugins in Python, which componentize-py makes.

use serde_json::Value;
use std::path::Path;

use super::{BuildTool, componentize, text};
use crate::error::Error;
use tenon_contract::PluginMetadata;

const TOOL: BuildTool<'_> = BuildTool {
    name: "componentize-py",
    install: "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt",
};

/// The module with the exports.
const MODULE: &str = "app";

pub(super) async fn build(folder: &Path, to: &Path) -> Result<(Vec<u8>, PluginMetadata), Error> {
    let about = about(&read(folder)?);
    let program = TOOL.find(folder, ".venv/bin")?;
    let mut arguments =
        ["--wit-path", "wit", "componentize", MODULE, "--output"].map(AsRef::as_ref).to_vec();
    arguments.push(to.as_os_str());
    Ok((componentize(&TOOL, &program, folder, &arguments, to).await?, about))
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
