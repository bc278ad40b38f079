//! The projects that `tenon new` makes: files with blanks, one set for each language, and in each
//! set one for each world.

use clap::ValueEnum;
use serde_json::json;
use std::fmt;
use std::path::PathBuf;
use url::Url;

use tenon_contract as contract;

/// A language that a plugin can be written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    Rust,
    Python,
    #[value(name = "javascript", alias = "js")]
    JavaScript,
    #[value(name = "typescript", alias = "ts")]
    TypeScript,
    Rhai,
    /// Any other: the contract in WIT, and a manifest
    Other,
}

/// A world of the contract: what a plugin contributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum World {
    /// Functions that models and programs call
    Tool,
    /// A say at the moments of a host's work
    Hook,
    /// Language models
    Provider,
    /// Scores of what an agent or a model has produced
    Eval,
    /// Things to read, by their URIs
    Resource,
    /// Messages that a user picks and fills in
    Prompt,
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rust => "Rust",
            Self::Python => "Python",
            Self::JavaScript => "JavaScript",
            Self::TypeScript => "TypeScript",
            Self::Rhai => "Rhai",
            Self::Other => "another language",
        })
    }
}

impl World {
    fn name(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Hook => "hook",
            Self::Provider => "provider",
            Self::Eval => "eval",
            Self::Resource => "resource",
            Self::Prompt => "prompt",
        }
    }

    /// Its name in WIT, where `resource` alone is a keyword.
    fn identifier(self) -> &'static str {
        match self {
            Self::Resource => "%resource",
            _ => self.name(),
        }
    }

    /// What the plugin of its templates does.
    fn description(self) -> &'static str {
        match self {
            Self::Tool => "Greets people",
            Self::Hook => "Signs the messages that go out",
            Self::Provider => "Has a language model that repeats what it is told",
            Self::Eval => "Scores how concise an output is",
            Self::Resource => "Names the planets",
            Self::Prompt => "Asks a model to explain something",
        }
    }

    /// The command that tries that out.
    fn trial(self) -> &'static str {
        match self {
            Self::Tool => r#"tenon call {{name}}__greet '{"name": "Ada"}'"#,
            Self::Hook => r#"tenon hook message-sending --context '{"message": "Hi"}'"#,
            Self::Provider => "tenon complete {{name}}/parrot --prompt Hello",
            Self::Eval => r#"tenon eval {{name}}/concise --subject '{"output": "yes"}'"#,
            Self::Resource => "tenon resources read {{name}} planets://3",
            Self::Prompt => "tenon prompts get {{name}} explain topic=tides",
        }
    }
}

/// What a project is made for.
pub(crate) struct ProjectSpec<'a> {
    pub(crate) name: &'a str,
    pub(crate) world: World,
    pub(crate) language: Language,
    pub(crate) sdk: &'a SdkSource,
    /// Whether the folder lies in that of another package for Rust.
    pub(crate) is_nested: bool,
}

/// Where a project takes the SDK of its language from.
pub(crate) enum SdkSource {
    /// The registry of the language.
    Registry,
    /// The folder `sdk` of a checkout.
    Checkout(PathBuf),
}

/// A file of a project: its path, and its text.
pub(crate) type Made = (String, String);

macro_rules! template {
    ($($part:literal),+) => {
        include_str!(concat!("../templates/", $($part),+))
    };
}

/// The template of a world.
macro_rules! by_world {
    ($world:expr, $language:literal, $file:literal) => {
        match $world {
            World::Tool => template!($language, "/tool/", $file),
            World::Hook => template!($language, "/hook/", $file),
            World::Provider => template!($language, "/provider/", $file),
            World::Eval => template!($language, "/eval/", $file),
            World::Resource => template!($language, "/resource/", $file),
            World::Prompt => template!($language, "/prompt/", $file),
        }
    };
}

/// The files of a project; nothing where the language has no plugins of this world.
pub(crate) fn files(order: &ProjectSpec<'_>) -> Option<Vec<Made>> {
    let ProjectSpec { language, world, .. } = *order;
    let mut templates = vec![
        ("plugin.toml", template!("shared/plugin.toml")),
        ("tenon.toml", template!("shared/tenon.toml")),
        ("README.md", template!("shared/README.md")),
    ];
    let mut made = Vec::new();
    match language {
        Language::Rust => templates.extend([
            // Cargo leaves a folder with a `Cargo.toml` out of a package.
            ("Cargo.toml", template!("rust/Cargo.template.toml")),
            (".gitignore", template!("rust/gitignore")),
            ("src/lib.rs", by_world!(world, "rust", "lib.rs")),
        ]),
        Language::Python => templates.extend([
            ("pyproject.toml", template!("python/pyproject.toml")),
            ("requirements.txt", template!("python/requirements.txt")),
            (".gitignore", template!("python/gitignore")),
            ("app.py", by_world!(world, "python", "app.py")),
            ("test_app.py", by_world!(world, "python", "test_app.py")),
        ]),
        Language::JavaScript | Language::TypeScript => {
            templates.extend([
                (".gitignore", template!("javascript/gitignore")),
                ("plugin.{{extension}}", by_world!(world, "javascript", "plugin.js")),
                ("plugin.test.{{extension}}", by_world!(world, "javascript", "plugin.test.js")),
            ]);
            if matches!(order.sdk, SdkSource::Checkout(_)) {
                templates.push((".npmrc", template!("javascript/npmrc")));
            }
            match language {
                Language::TypeScript => templates.extend([
                    ("package.json", template!("typescript/package.json")),
                    ("tsconfig.json", template!("typescript/tsconfig.json")),
                ]),
                _ => templates.push(("package.json", template!("javascript/package.json"))),
            }
        }
        Language::Other => {
            templates.push(("wit/component.wit", template!("other/component.wit")));
            let in_deps = |name: &str| format!("wit/deps/tenon-plugin/{name}");
            made.extend(contract::sync_edition().map(|(name, text)| (in_deps(name), text)));
            let (name, text) = contract::KEYVALUE;
            made.push((format!("wit/deps/keyvalue/{name}"), text.into()));
        }
        Language::Rhai => templates.push((
            "{{file}}",
            match world {
                World::Tool => template!("rhai/tool.rhai"),
                World::Hook => template!("rhai/hook.rhai"),
                World::Eval => template!("rhai/eval.rhai"),
                World::Resource => template!("rhai/resource.rhai"),
                World::Prompt => template!("rhai/prompt.rhai"),
                World::Provider => return None,
            },
        )),
    }
    made.extend(templates.iter().map(|(path, text)| (order.fill(path), order.fill(text))));
    made.sort_unstable();
    Some(made)
}

impl ProjectSpec<'_> {
    /// The package that the project takes from a registry, and the registry.
    pub(crate) fn registry_package(&self) -> Option<(&'static str, &'static str)> {
        match (self.sdk, self.language) {
            (SdkSource::Checkout(_), _) | (_, Language::Rhai | Language::Other) => None,
            (SdkSource::Registry, Language::Rust) => Some(("tenon-sdk", "crates.io")),
            (SdkSource::Registry, Language::Python) => Some(("tenon-sdk", "PyPI")),
            (SdkSource::Registry, Language::JavaScript | Language::TypeScript) => {
                Some(("@tenon/sdk", "npm"))
            }
        }
    }

    /// The SDK, as a dependency is written in the files of the language.
    fn dependency(&self) -> String {
        let version = env!("CARGO_PKG_VERSION");
        let folder = match self.sdk {
            SdkSource::Registry => None,
            SdkSource::Checkout(folder) => Some(folder),
        };
        match (self.language, folder) {
            (Language::Rust, None) => format!("\"{version}\""),
            (Language::Rust, Some(folder)) => {
                format!("{{ path = {} }}", toml::Value::String(folder.display().to_string()))
            }
            (Language::Python, None) => format!("tenon-sdk=={version}"),
            (Language::Python, Some(folder)) => {
                let folder = folder.join("python");
                // It has an absolute path.
                let url = Url::from_file_path(&folder).map(String::from);
                format!("tenon-sdk @ {}", url.unwrap_or_else(|()| folder.display().to_string()))
            }
            (Language::JavaScript | Language::TypeScript, None) => version.into(),
            (Language::JavaScript | Language::TypeScript, Some(folder)) => {
                let text = json!(format!("file:{}", folder.join("javascript").display()));
                text.to_string().trim_matches('"').into()
            }
            (Language::Rhai | Language::Other, _) => String::new(),
        }
    }

    /// The commands that make and try the plugin, a line each.
    pub(crate) fn commands(&self) -> Vec<String> {
        let before: &[&str] = match self.language {
            Language::Rust => &["cargo test", "tenon build"],
            Language::Python => &[
                "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt",
                ".venv/bin/python -m unittest",
                "tenon build",
            ],
            Language::JavaScript | Language::TypeScript => {
                &["npm install", "npm test", "tenon build"]
            }
            Language::Rhai => &["tenon check"],
            Language::Other => &["tenon check --no-build"],
        };
        let trial = self.world.trial().replace("{{name}}", self.name);
        before.iter().map(ToString::to_string).chain([trial]).collect()
    }

    /// The file that the plugin is.
    fn file(&self) -> String {
        match self.language {
            Language::Rhai => format!("{}.rhai", self.name),
            _ => format!("{}.wasm", self.name),
        }
    }

    /// A text with its blanks filled in.
    fn fill(&self, text: &str) -> String {
        let kind = if self.language == Language::Rhai { "rhai" } else { "wasm" };
        let commands: Vec<String> =
            self.commands().iter().map(|command| format!("$ {command}")).collect();
        let extension = if self.language == Language::TypeScript { "ts" } else { "js" };
        let sdk = self.dependency();
        // Cargo would take it for a member of the workspace that it lies in.
        let workspace = if self.is_nested { "\n[workspace]\n" } else { "" };
        text.replace("{{description}}", self.world.description())
            .replace("{{world}}", self.world.identifier())
            .replace("{{kind}}", kind)
            .replace("{{file}}", &self.file())
            .replace("{{extension}}", extension)
            .replace("{{sdk}}\n{{workspace}}\n", &format!("{sdk}\n{workspace}"))
            .replace("{{sdk}}", &sdk)
            .replace("{{commands}}", &commands.join("\n"))
            .replace("{{name}}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_world_that_is_named_like_a_keyword_is_escaped() {
        for (world, included) in
            [(World::Resource, "plugin/%resource@"), (World::Prompt, "plugin/prompt@")]
        {
            let (language, sdk) = (Language::Other, &SdkSource::Registry);
            let order = ProjectSpec { name: "hello", world, language, sdk, is_nested: false };
            let files = files(&order).unwrap();
            let (_, text) = files.iter().find(|(path, _)| path == "wit/component.wit").unwrap();
            assert!(text.contains(&format!("include tenon:{included}")), "{text}");
        }
    }

    #[test]
    fn every_blank_of_every_template_is_filled() {
        for language in Language::value_variants() {
            for world in World::value_variants() {
                let (language, world) = (*language, *world);
                let checkout = SdkSource::Checkout("/tenon/sdk".into());
                for (is_nested, sdk) in [(false, &checkout), (true, &SdkSource::Registry)] {
                    let order = ProjectSpec { name: "hello", world, language, sdk, is_nested };
                    let files = files(&order);
                    let none = (language, world) == (Language::Rhai, World::Provider);
                    assert_eq!(files.is_none(), none);
                    for (path, text) in files.unwrap_or_default() {
                        assert!(!path.contains("{{") && !text.contains("{{"), "{path}: {text}");
                        assert!(text.ends_with('\n') && !text.ends_with("\n\n"), "{path}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_sdk_is_a_dependency_in_each_language() {
        let check = |language, folder: Option<&str>, expected: &str| {
            let sdk = folder.map_or(SdkSource::Registry, |path| SdkSource::Checkout(path.into()));
            let order = ProjectSpec {
                name: "x",
                world: World::Tool,
                language,
                sdk: &sdk,
                is_nested: false,
            };
            assert_eq!(order.dependency(), expected);
        };
        let version = env!("CARGO_PKG_VERSION");
        check(Language::Rust, None, &format!("\"{version}\""));
        check(Language::Rust, Some("/a \"b\"/sdk"), "{ path = '/a \"b\"/sdk' }");
        check(Language::Python, None, &format!("tenon-sdk=={version}"));
        check(Language::Python, Some("/a b/sdk"), "tenon-sdk @ file:///a%20b/sdk/python");
        check(Language::TypeScript, None, version);
        check(Language::TypeScript, Some("/a \"b\"/sdk"), r#"file:/a \"b\"/sdk/javascript"#);
    }

    /// A project that takes a package from a registry names this version.
    #[test]
    fn the_packages_for_authors_have_the_version_of_the_command() {
        let version = env!("CARGO_PKG_VERSION");
        let python: toml::Table =
            include_str!("../../sdk/python/pyproject.toml").parse().expect("it is TOML");
        assert_eq!(python["project"]["version"].as_str(), Some(version));
        assert_eq!(python["project"]["name"].as_str(), Some("tenon-sdk"));
        let javascript: serde_json::Value =
            serde_json::from_str(include_str!("../../sdk/javascript/package.json")).unwrap();
        assert_eq!(javascript["version"], version);
        assert_eq!(javascript["name"], "@tenon/sdk");
    }
}
