//! Plugins in JavaScript and TypeScript, which the builder of `@tenon/sdk` makes.

use serde_json::Value;
use std::path::Path;
use tokio::process::Command;

use super::{BuildProfile, BuildTool, run_builder, text};
use crate::error::Error;
use tenon_contract::PluginMetadata;

const BUILDER: BuildTool<'_> =
    BuildTool { name: "@tenon/sdk", program: "tenon-build-javascript", install: "npm install" };

pub(super) async fn build(
    folder: &Path,
    to: &Path,
    profile: BuildProfile,
) -> Result<(Vec<u8>, PluginMetadata), Error> {
    let about = about(&read(folder)?);
    let mut command = Command::new(BUILDER.find(folder, "node_modules/.bin")?);
    if profile == BuildProfile::Debug {
        // Names stay as they are written, for stacks.
        command.arg("--readable");
    }
    Ok((run_builder(&BUILDER, command, folder, to).await?, about))
}

fn read(folder: &Path) -> Result<Value, Error> {
    let file = folder.join("package.json");
    let text = std::fs::read(&file).map_err(|error| Error::Read(file.clone(), error))?;
    serde_json::from_slice(&text)
        .map_err(|error| Error::Input(format!("{}: {error}", file.display())))
}

fn about(package: &Value) -> PluginMetadata {
    let author = |author: &Value| match author {
        Value::String(author) => Some(author.clone()),
        _ => match (text(author, "name"), text(author, "email")) {
            (Some(name), Some(email)) => Some(format!("{name} <{email}>")),
            (name, email) => name.or(email),
        },
    };
    let contributors = package["contributors"].as_array().into_iter().flatten();
    // Words of npm's own, which are no expressions.
    let is_expression =
        |licence: &String| licence != "UNLICENSED" && !licence.starts_with("SEE LICENSE IN");
    let repository = &package["repository"];
    let source = repository.as_str().map(str::to_string).or_else(|| text(repository, "url"));
    PluginMetadata {
        name: text(package, "name"),
        version: text(package, "version"),
        description: text(package, "description"),
        authors: package.get("author").into_iter().chain(contributors).filter_map(author).collect(),
        licenses: text(package, "license").filter(is_expression),
        source: source.and_then(|source| url(&source)),
        homepage: text(package, "homepage"),
        revision: None,
    }
}

/// A repository as npm lets it be written, as a URL; nothing for a short form of another service.
fn url(repository: &str) -> Option<String> {
    let plain = repository.strip_prefix("git+").unwrap_or(repository);
    let name = plain.strip_prefix("github:").unwrap_or(plain);
    match name.contains(':') {
        true => Some(plain.to_string()).filter(|plain| plain.contains("://")),
        false => Some(format!("https://github.com/{name}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_package_says_what_it_is() {
        let said = about(&json!({
            "name": "hello",
            "author": "Ada <ada@example.com>",
            "contributors": [{ "name": "Charles" }],
            "license": "UNLICENSED",
            "repository": { "type": "git", "url": "git+https://example.com/hello.git" },
        }));
        assert_eq!(said.authors, ["Ada <ada@example.com>", "Charles"]);
        assert_eq!(said.source.as_deref(), Some("https://example.com/hello.git"));
        assert_eq!(said.licenses, None);
    }

    #[test]
    fn repositories() {
        let check = |text, expected: Option<&str>| assert_eq!(url(text).as_deref(), expected);
        check("ada/hello", Some("https://github.com/ada/hello"));
        check("github:ada/hello", Some("https://github.com/ada/hello"));
        check("https://example.com/x", Some("https://example.com/x"));
        check("gist:1234", None);
    }
}
