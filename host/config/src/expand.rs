//! `~` and `${…}` in configuration, expanded once.
//!
//! `${VAR}` and `${env:VAR}` are a variable of the environment, `${VAR:-default}` is one with a
//! default for when it is unset or empty, and `~` at the beginning of a path is the home folder. A
//! bare `$VAR` is left as it is, and what comes out of an expansion is not expanded again.
//!
//! Entries for servers know the words of editors besides, by [`ExpandContext`]: `${workspaceFolder}`,
//! `${workspaceFolderBasename}`, `${userHome}`, `${pathSeparator}` or `${/}`, and `${input:NAME}`.
//! Where they allow it, `${secret:NAME}` is the place of a secret, which is put there when the
//! server is loaded: nobody has approved it before.

use std::path::{MAIN_SEPARATOR_STR, Path};
use tenon_types::name::is_slip;

use crate::entry::{InputOptions, shown_options};
use crate::host_environment::HostEnvironment;

/// Why a text cannot be expanded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpandError {
    /// A variable has no value and no default.
    #[error("the variable {0} is not set; set it, or write ${{{0}:-default}}")]
    Unset(String),
    /// A variable has no value, and its name is nearly that of the plugin's folder for data.
    #[error("the variable {0} is not set; did you mean ${{data}}?")]
    NotData(String),
    /// A `${` has no `}`.
    #[error("\"{0}\" has a `${{` without its `}}`")]
    Unclosed(String),
    /// There is no home folder to put for `~`.
    #[error("\"{0}\" begins with `~`, and no home folder is known")]
    NoHome(String),
    /// There is no such folder.
    #[error("no folder is known for ${{{0}}}")]
    NoFolder(String),
    /// Nobody says what an editor would ask its user for.
    #[error(
        "the input `{0}` has no value and no default; run `tenon trust` to enter it, or set the variable {name}",
        name = input_variable(.0)
    )]
    NoInput(String),
    /// What an editor would have its user pick is something else.
    #[error(
        "the input `{id}` must be one of {}; run `tenon trust` to choose, or set the variable {name}",
        shown_options(.options),
        name = input_variable(.id)
    )]
    NotAnOption {
        /// The input.
        id: String,
        /// What it can be.
        options: Vec<String>,
    },
    /// There is a secret where none can be.
    #[error("the secret \"{0}\" can be used only in values of `env` and `headers`")]
    NoSecret(String),
    /// It has a character that no text of the operating system can have.
    #[error("it contains a zero byte")]
    Zero,
}

/// What the texts of an entry for a server are expanded with.
#[derive(Clone, Copy)]
pub struct ExpandContext<'a> {
    pub(crate) host_environment: &'a HostEnvironment,
    /// The project's folder, absolute.
    pub workspace: Option<&'a Path>,
    /// What the inputs of an editor's file can be of which not every value is one.
    pub(crate) input_options: &'a InputOptions,
}

impl ExpandContext<'_> {
    /// Expands a text.
    pub fn text(&self, text: &str) -> Result<String, ExpandError> {
        self.expand(text, |word| self.word(word))
    }

    /// Expands a text in which secrets have places. See [`put_secrets`].
    pub fn text_with_secrets(&self, text: &str) -> Result<String, ExpandError> {
        let word = |word: &str| match word.strip_prefix("secret:") {
            Some(name) => Ok(format!("\0{name}\0")),
            None => self.word(word),
        };
        self.expand(text, word)
    }

    /// Expands a path, and `~` at its beginning.
    pub fn path(&self, text: &str) -> Result<String, ExpandError> {
        with_home(text, self.text(text)?, self.host_environment.home.as_deref(), str::to_string)
    }

    fn expand(
        &self,
        text: &str,
        word: impl Fn(&str) -> Result<String, ExpandError>,
    ) -> Result<String, ExpandError> {
        match text.contains('\0') {
            true => Err(ExpandError::Zero),
            false => expand(text, word, str::to_string),
        }
    }

    fn word(&self, word: &str) -> Result<String, ExpandError> {
        let folder = match word {
            "workspaceFolder" => self.workspace,
            "workspaceFolderBasename" => self.workspace.and_then(Path::file_name).map(Path::new),
            "userHome" => self.host_environment.home.as_deref(),
            "pathSeparator" | "/" => return Ok(MAIN_SEPARATOR_STR.into()),
            _ if let Some(input) = word.strip_prefix("input:") => return self.input(input),
            _ if let Some(name) = word.strip_prefix("secret:") => {
                return Err(ExpandError::NoSecret(name.into()));
            }
            _ => return variable(word, self.host_environment),
        };
        let folder = folder.and_then(Path::to_str);
        folder.map(str::to_string).ok_or_else(|| ExpandError::NoFolder(word.into()))
    }

    /// What an editor would ask its user for.
    fn input(&self, input: &str) -> Result<String, ExpandError> {
        let (id, default) = match input.split_once(":-") {
            Some((id, default)) => (id, Some(default)),
            None => (input, None),
        };
        let variable = self.host_environment.variable(&input_variable(id));
        let said = variable.filter(|value| !value.is_empty());
        let value = said.or(default).ok_or_else(|| ExpandError::NoInput(id.into()))?;
        match self.input_options.get(id) {
            Some(options) if !options.iter().any(|option| option == value) => {
                Err(ExpandError::NotAnOption { id: id.into(), options: options.clone() })
            }
            _ => Ok(value.into()),
        }
    }
}

/// The variable that says what an input of an editor's file is.
pub fn input_variable(id: &str) -> String {
    let upper = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("TENON_INPUT_{}", id.chars().map(upper).collect::<String>())
}

/// The names of the secrets that have a place in an expanded text.
pub fn secrets_in(text: &str) -> impl Iterator<Item = &str> {
    // No variable, argument or header has a zero byte: those that are there are ours.
    text.split('\0').skip(1).step_by(2)
}

/// Puts secrets in their places, or says which one there is not.
pub fn put_secrets<'a>(
    text: &'a str,
    secret: impl Fn(&str) -> Option<&'a str>,
) -> Result<String, String> {
    let parts = text.split('\0').enumerate().map(|(number, part)| match number % 2 {
        0 => Ok(part),
        _ => secret(part).ok_or_else(|| part.to_string()),
    });
    parts.collect()
}

/// Expands a text; `word` gives the value of what is in braces, `put` what is put for a value.
fn expand(
    text: &str,
    word: impl Fn(&str) -> Result<String, ExpandError>,
    put: impl Fn(&str) -> String,
) -> Result<String, ExpandError> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, after) = rest.split_at(start);
        expanded.push_str(before);
        let inner = &after[2..];
        let end = inner.find('}').ok_or_else(|| ExpandError::Unclosed(text.to_string()))?;
        expanded.push_str(&put(&word(&inner[..end])?));
        rest = &inner[end + 1..];
    }
    expanded.push_str(rest);
    Ok(expanded)
}

/// Expands a path: its variables, and `~` at its beginning.
pub fn path(text: &str, host_environment: &HostEnvironment) -> Result<String, ExpandError> {
    let word = |word: &str| variable(word, host_environment);
    path_with(text, host_environment, word, str::to_string)
}

/// Expands a glob over the paths of a plugin, which may have a folder for its data. What is put into it is no glob: a
/// wildcard there is a character.
pub fn glob(
    text: &str,
    host_environment: &HostEnvironment,
    data_folder: Option<&Path>,
) -> Result<String, ExpandError> {
    let word = |word: &str| match word {
        DATA => data_path(data_folder).map(str::to_string),
        _ => variable(word, host_environment).map_err(|error| match error {
            ExpandError::Unset(name) if is_slip(&name, DATA) => ExpandError::NotData(name),
            other => other,
        }),
    };
    path_with(text, host_environment, word, escaped)
}

/// Expands `~` or `${data}` at the beginning of a plugin's setting, where a path begins with them. Nothing else is
/// expanded: variables of the environment are not for plugins.
pub fn setting(
    text: &str,
    host_environment: &HostEnvironment,
    data_folder: Option<&Path>,
) -> Result<String, ExpandError> {
    let is_path = |rest: &str| rest.is_empty() || rest.starts_with('/');
    match text.strip_prefix("${data}").filter(|rest| is_path(rest)) {
        Some(rest) => Ok(format!("{}{rest}", data_path(data_folder)?)),
        None => with_home(text, text.to_string(), host_environment.home.as_deref(), str::to_string),
    }
}

/// The word for a plugin's folder for its data.
const DATA: &str = "data";

fn data_path(folder: Option<&Path>) -> Result<&str, ExpandError> {
    folder.and_then(Path::to_str).ok_or_else(|| ExpandError::NoFolder(DATA.into()))
}

/// The characters that stand in a glob behind a `\` if they mean themselves.
pub const GLOB_CHARACTERS: [char; 7] = ['*', '?', '[', ']', '{', '}', '\\'];

/// A glob that a text is the only one to match.
pub fn escaped(text: &str) -> String {
    let mut glob = String::with_capacity(text.len());
    for c in text.chars() {
        if GLOB_CHARACTERS.contains(&c) {
            glob.push('\\');
        }
        glob.push(c);
    }
    glob
}

fn path_with(
    text: &str,
    host_environment: &HostEnvironment,
    word: impl Fn(&str) -> Result<String, ExpandError>,
    put: impl Fn(&str) -> String,
) -> Result<String, ExpandError> {
    let expanded = expand(text, word, &put)?;
    with_home(text, expanded, host_environment.home.as_deref(), put)
}

/// An expanded path, with the home folder for `~` at the beginning of what it was expanded from.
fn with_home(
    text: &str,
    expanded: String,
    home: Option<&Path>,
    put: impl Fn(&str) -> String,
) -> Result<String, ExpandError> {
    if text != "~" && !text.starts_with("~/") {
        return Ok(expanded);
    }
    let home = home.and_then(Path::to_str).ok_or_else(|| ExpandError::NoHome(text.to_string()))?;
    Ok(format!("{}{}", put(home), &expanded[1..]))
}

fn variable(inner: &str, host_environment: &HostEnvironment) -> Result<String, ExpandError> {
    let inner = inner.strip_prefix("env:").unwrap_or(inner);
    let (name, default) = match inner.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inner, None),
    };
    match (host_environment.variable(name), default) {
        (Some(value), None) => Ok(value.to_string()),
        (Some(value), Some(_)) if !value.is_empty() => Ok(value.to_string()),
        (_, Some(default)) => Ok(default.to_string()),
        (None, None) => Err(ExpandError::Unset(name.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host_environment() -> HostEnvironment {
        let environment =
            [("A", "1"), ("EMPTY", ""), ("NESTED", "${A}"), ("TENON_INPUT_A_B", "said")]
                .map(|(k, v)| (k.into(), v.into()))
                .into();
        HostEnvironment { environment, home: Some("/home/u".into()), ..HostEnvironment::default() }
    }

    #[test]
    fn rows() {
        let check = |text: &str, expected: &str| {
            assert_eq!(path(text, &host_environment()).as_deref(), Ok(expected), "{text}");
        };
        check("x${A}y${env:A}", "x1y1");
        check("${B:-two}", "two");
        check("${EMPTY:-two}", "two");
        check("${EMPTY}", "");
        check("$A $ {A}", "$A $ {A}");
        check("${NESTED}", "${A}");
        check("~/x", "/home/u/x");
        check("~", "/home/u");
        check("~other/x", "~other/x");
        check("a/~", "a/~");
    }

    #[test]
    fn a_slip_of_the_word_for_data_is_told() {
        let check = |text: &str, expected: &str| {
            let error = glob(text, &host_environment(), Some(Path::new("/d"))).unwrap_err();
            assert_eq!(error.to_string(), expected);
        };
        check("${date}/*", "the variable date is not set; did you mean ${data}?");
        check("${HOMES}/*", "the variable HOMES is not set; set it, or write ${HOMES:-default}");
    }

    #[test]
    fn entries_have_words_of_their_own() {
        let host_environment = host_environment();
        let options = ["a-b", "x"].map(|id| (id.to_string(), vec!["said".into(), "c".into()]));
        let context = ExpandContext {
            host_environment: &host_environment,
            workspace: Some(Path::new("/w")),
            input_options: &options.into(),
        };
        let check = |text: &str, expected: &str| {
            assert_eq!(context.path(text).as_deref(), Ok(expected), "{text}");
        };
        check("${workspaceFolder}/x", "/w/x");
        check("${userHome}/${A}$A", "/home/u/1$A");
        check("~/${B:-b}", "/home/u/b");
        check("${workspaceFolderBasename}${/}x${pathSeparator}", "w/x/");
        check("${input:a-b:-c}${input:none:-}", "said");
        let nobody = context.text("${input:Some-Key.1}").unwrap_err().to_string();
        assert!(nobody.ends_with("or set the variable TENON_INPUT_SOME_KEY_1"), "{nobody}");
        check("${input:x:-c}", "c");
        let refused = context.text("${input:x:-d}").unwrap_err().to_string();
        let expected = "the input `x` must be one of \"said\", \"c\"; run `tenon trust` to choose, or set the \
                        variable TENON_INPUT_X";
        assert_eq!(refused, expected);
        let bare = ExpandContext { workspace: None, ..context };
        assert_eq!(
            bare.text("${workspaceFolder}"),
            Err(ExpandError::NoFolder("workspaceFolder".into()))
        );
        assert_eq!(context.text("\0x\0"), Err(ExpandError::Zero));
        assert_eq!(context.text("${secret:x}"), Err(ExpandError::NoSecret("x".into())));
    }

    #[test]
    fn secrets_are_put_in_their_places() {
        let host_environment = host_environment();
        let input_options = &InputOptions::new();
        let context =
            ExpandContext { host_environment: &host_environment, workspace: None, input_options };
        let text = context.text_with_secrets("Bearer ${secret:token} ${A}").unwrap();
        assert_eq!(secrets_in(&text).collect::<Vec<_>>(), ["token"]);
        let put = |name: &str| (name == "token").then_some("hunter2");
        assert_eq!(put_secrets(&text, put).as_deref(), Ok("Bearer hunter2 1"));
        assert_eq!(put_secrets(&text, |_| None), Err("token".into()));
    }

    #[test]
    fn an_unset_variable_is_named() {
        let error = path("${NOPE}", &host_environment()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the variable NOPE is not set; set it, or write ${NOPE:-default}"
        );
        assert!(matches!(path("${A", &host_environment()), Err(ExpandError::Unclosed(_))));
    }
}
