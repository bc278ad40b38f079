//! The projects that `tenon new` makes: files with blanks, one set for each language, and in each
//! set one for each world.

use clap::ValueEnum;
use std::fmt;

use tenon_contract as contract;

/// A language that a plugin can be written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    Rust,
    Python,
    #[value(name = "javascript", alias = "js")]
    JavaScript,
    Rhai,
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
            Self::Rhai => "Rhai",
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
pub(crate) struct Order<'a> {
    pub(crate) name: &'a str,
    pub(crate) world: World,
    pub(crate) language: Language,
    /// The SDK for Rust, as a dependency is written.
    pub(crate) sdk: &'a str,
    /// Whether the folder lies in that of another package for Rust.
    pub(crate) is_nested: bool,
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
pub(crate) fn files(order: &Order<'_>) -> Option<Vec<Made>> {
    let Order { language, world, .. } = *order;
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
        Language::Python => {
            templates.extend([
                ("pyproject.toml", template!("python/pyproject.toml")),
                ("requirements.txt", template!("python/requirements.txt")),
                (".gitignore", template!("python/gitignore")),
                ("app.py", by_world!(world, "python", "app.py")),
                ("logic.py", by_world!(world, "python", "logic.py")),
                ("test_logic.py", by_world!(world, "python", "test_logic.py")),
            ]);
            made.extend(contract::sync_edition().map(|(name, text)| in_wit(name, text)));
        }
        Language::JavaScript => {
            templates.extend([
                ("package.json", template!("javascript/package.json")),
                (".gitignore", template!("javascript/gitignore")),
                ("plugin.js", by_world!(world, "javascript", "plugin.js")),
                ("logic.js", by_world!(world, "javascript", "logic.js")),
                ("logic.test.js", by_world!(world, "javascript", "logic.test.js")),
            ]);
            made.extend(contract::sync_imports().map(|(name, text)| in_wit(name, text)));
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
    if matches!(language, Language::Python | Language::JavaScript) {
        templates.push(("wit/component.wit", template!("shared/component.wit")));
        let (name, text) = contract::KEYVALUE;
        made.push((format!("wit/deps/keyvalue/{name}"), text.into()));
    }
    made.extend(templates.iter().map(|(path, text)| (order.fill(path), order.fill(text))));
    made.sort_unstable();
    Some(made)
}

/// A file of the contract, where the tools of the languages look for it.
fn in_wit(name: &str, text: impl Into<String>) -> Made {
    (format!("wit/deps/tenon-plugin/{name}"), text.into())
}

impl Order<'_> {
    /// Whether the project takes the SDK from crates.io.
    pub(crate) fn is_of_registry(&self) -> bool {
        self.language == Language::Rust && !self.sdk.starts_with('{')
    }

    /// The commands that make and try the plugin, a line each.
    pub(crate) fn commands(&self) -> Vec<String> {
        let before: &[&str] = match self.language {
            Language::Rust => &["cargo test", "tenon build"],
            Language::Python => &[
                "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt",
                "python3 -m unittest",
                "tenon build",
            ],
            Language::JavaScript => &["npm install", "npm test", "tenon build"],
            Language::Rhai => &["tenon check"],
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
        // Cargo would take it for a member of the workspace that it lies in.
        let workspace = if self.is_nested { "\n[workspace]\n" } else { "" };
        text.replace("{{description}}", self.world.description())
            .replace("{{world}}", self.world.identifier())
            .replace("{{kind}}", kind)
            .replace("{{file}}", &self.file())
            .replace("{{sdk}}\n{{workspace}}\n", &format!("{}\n{workspace}", self.sdk))
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
            let (language, sdk) = (Language::Python, "");
            let order = Order { name: "hello", world, language, sdk, is_nested: false };
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
                for is_nested in [false, true] {
                    let order = Order { name: "hello", world, language, sdk: "\"0.1\"", is_nested };
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
}
