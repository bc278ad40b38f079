//! Commands in hints, as they must be typed where a command was told which configuration it is for.
//!
//! Hints come from the host, which knows no command line, from verbs and from the log. So what the user has said is
//! noted once, when the command begins, and put where hints are printed.

use std::borrow::Cow;
use std::path::Path;
use std::sync::OnceLock;

use crate::Common;

/// The options with which this command was told.
static OPTIONS: OnceLock<ConfigOptions> = OnceLock::new();

/// The options that say which configuration a command is for.
#[derive(Debug, PartialEq, Eq)]
enum ConfigOptions {
    Default,
    Config(String),
    Project(String),
}

/// The verbs for which the configuration makes a difference.
const VERBS: [&str; 16] = [
    "approve",
    "call",
    "complete",
    "doctor",
    "eval",
    "hook",
    "inspect",
    "plugins",
    "prompts",
    "resources",
    "revoke",
    "serve",
    "state",
    "tools",
    "uninstall",
    "watch",
];

/// Those that are for a project, and refuse `--config`. Where the first word behind them is a folder, that is the
/// project.
const PROJECT_VERBS: [&str; 2] = ["install", "trust"];

/// Notes what the user has said.
pub(crate) fn note(common: &Common) {
    // There is one command in a process.
    let _ = OPTIONS.set(ConfigOptions::of(common));
}

/// A text of ours in which commands stand between backticks, as the user has to type them.
pub(crate) fn as_typed(text: &str) -> Cow<'_, str> {
    OPTIONS.get().map_or(Cow::Borrowed(text), |options| options.as_typed(text))
}

/// What a command of this verb begins with.
pub(crate) fn command(common: &Common, verb: &str) -> String {
    let options = ConfigOptions::of(common).shown().unwrap_or_default();
    format!("tenon{options} {verb}")
}

impl ConfigOptions {
    fn of(common: &Common) -> Self {
        match &common.config {
            Some(config) => Self::Config(config.to_string_lossy().into_owned()),
            None => match &common.named_project {
                Some(named) if named != Path::new(".") => {
                    Self::Project(named.to_string_lossy().into_owned())
                }
                // From the same folder, it is found again.
                _ => Self::Default,
            },
        }
    }

    /// As they stand behind the name of the command.
    fn shown(&self) -> Option<String> {
        match self {
            Self::Default => None,
            Self::Config(file) => Some(format!(" --config{}", quoted(file))),
            Self::Project(folder) => Some(format!(" --project{}", quoted(folder))),
        }
    }

    fn as_typed<'a>(&self, text: &'a str) -> Cow<'a, str> {
        const BEGIN: &str = "`tenon ";
        let Some(options) = self.shown().filter(|_| text.contains(BEGIN)) else {
            return text.into();
        };
        let mut typed = String::with_capacity(text.len() + options.len());
        let mut rest = text;
        while let Some((before, command)) = rest.split_once(BEGIN) {
            let options = if self.are_for(command) { &*options } else { "" };
            typed.push_str(&format!("{before}`tenon{options} "));
            rest = command;
        }
        typed.push_str(rest);
        typed.into()
    }

    /// Whether a command, as it stands behind its name, needs to be told the same.
    fn are_for(&self, command: &str) -> bool {
        let end = command.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(command.len());
        let (verb, rest) = command.split_at(end);
        let has_folder = rest.strip_prefix(' ').is_some_and(|word| !word.starts_with('-'));
        match self {
            Self::Default => false,
            Self::Config(_) => VERBS.contains(&verb),
            Self::Project(_) if PROJECT_VERBS.contains(&verb) => verb == "install" || !has_folder,
            Self::Project(_) => VERBS.contains(&verb),
        }
    }
}

/// A word of a command, and the space before it.
pub(crate) fn quoted(text: &str) -> String {
    match text.is_empty()
        || text.contains(|c: char| !c.is_ascii_alphanumeric() && !"-_./".contains(c))
    {
        true => format!(" '{}'", text.replace('\'', "'\\''")),
        false => format!(" {text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_says_which_configuration_it_is_for() {
        let project = ConfigOptions::Project("a b".into());
        let config = ConfigOptions::Config("c.toml".into());
        let check = |options: &ConfigOptions, text: &str, expected: &str| {
            assert_eq!(options.as_typed(text), expected, "{options:?}");
        };
        let text = "`tenon approve p` shows it, `tenon doctor` more";
        check(&ConfigOptions::Default, text, text);
        check(
            &project,
            text,
            "`tenon --project 'a b' approve p` shows it, `tenon --project 'a b' doctor` more",
        );
        check(&config, "run `tenon tools`", "run `tenon --config c.toml tools`");
        // What says it already, what is for a folder of its own, and what reads no configuration.
        for text in [
            "run `tenon --config c.toml approve p --yes`",
            "run `tenon trust checkout` to review it",
            "`tenon new` makes one, and `tenon build` builds it",
            "a tenon approves",
        ] {
            check(&project, text, text);
        }
        check(&project, "`tenon trust` asks", "`tenon --project 'a b' trust` asks");
        check(&project, "`tenon trust --yes` asks", "`tenon --project 'a b' trust --yes` asks");
        check(&project, "`tenon install x`", "`tenon --project 'a b' install x`");
        check(&config, "`tenon trust` and `tenon install`", "`tenon trust` and `tenon install`");
    }
}
