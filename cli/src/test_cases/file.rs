//! Files with cases, as they are written.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tenon_config::files;
use tenon_host::types::HookPoint;
use toml::Spanned;

use crate::error::Error;

/// The longest file with cases, in bytes.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// The folder with the cases of a plugin, in its own.
pub(crate) const FOLDER: &str = "cases";

/// A file with cases.
#[derive(Debug)]
pub(crate) struct CaseFile {
    pub(crate) path: PathBuf,
    pub(crate) cases: Vec<Case>,
}

/// One case.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) name: String,
    /// Where it begins in its file.
    pub(super) line: usize,
    pub(super) given: Given,
    /// What is done, one after the other, and what is expected of it.
    pub(super) steps: Vec<(Action, Expected)>,
}

/// What the plugin finds.
#[derive(Debug, Default)]
pub(super) struct Given {
    pub(super) settings: BTreeMap<String, Value>,
    pub(super) secrets: BTreeMap<String, String>,
    /// Variables of the host's environment.
    pub(super) environment: BTreeMap<String, String>,
    /// Texts of files by their paths, which begin with `~/`.
    pub(super) files: BTreeMap<String, String>,
    /// What it keeps for the project, by its keys.
    pub(super) state: BTreeMap<String, Value>,
    /// Answers to HTTP requests.
    pub(super) http: Vec<HttpRow>,
    /// Answers of the default model, in their order; the last is given again.
    pub(super) model: Vec<String>,
    /// What the user does with forms, in their order; the last is done again.
    pub(super) user: Vec<UserRow>,
    /// What is granted in place of what the manifest requests, by capability.
    pub(super) grants: BTreeMap<String, Vec<String>>,
}

/// What is done with a plugin.
#[derive(Debug)]
pub(super) enum Action {
    Call { tool: String, arguments: Value },
    Hook { point: HookPoint, context: Value },
    Evaluate { strategy: String, subject: Value, options: Value },
    Complete { model: String, prompt: String },
    Read { uri: String },
    Prompt { name: String, arguments: BTreeMap<String, String> },
}

/// What is expected of it. What is not said is not looked at, but for errors: where none is expected there is none.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { text = \"…\" }")]
pub(super) struct Expected {
    /// The whole text.
    pub(super) text: Option<String>,
    /// A part of the text.
    pub(super) contains: Option<String>,
    /// The structured result, or the text where it is JSON; of a hook, the context.
    pub(super) json: Option<Value>,
    /// A part of the error.
    pub(super) error: Option<String>,
    /// A part of the reason for which a hook vetoes.
    pub(super) veto: Option<String>,
    /// The score of an evaluation.
    pub(super) score: Option<f64>,
    /// What was requested over HTTP so far, one after the other.
    pub(super) http: Option<Vec<ExpectedRequest>>,
    /// Values that are kept for the project.
    #[serde(default)]
    pub(super) state: BTreeMap<String, Value>,
    /// Parts of what the user was asked so far, form by form.
    pub(super) asked: Option<Vec<String>>,
}

impl Expected {
    /// Whether what is done is to fail.
    pub(super) fn is_failure(&self) -> bool {
        self.error.is_some() || self.veto.is_some()
    }
}

/// A request over HTTP that is expected.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { url = \"…\" }")]
pub(super) struct ExpectedRequest {
    pub(super) url: String,
    pub(super) method: Option<String>,
    /// Headers, which may have others beside them.
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    /// The whole body.
    pub(super) body: Option<String>,
    pub(super) json: Option<Value>,
}

/// An answer to HTTP requests.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { url = \"…\", body = \"…\" }")]
pub(super) struct HttpRow {
    /// The URL, in which `*` stands for any text.
    pub(super) url: String,
    pub(super) method: Option<String>,
    pub(super) status: Option<u16>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Option<String>,
    pub(super) json: Option<Value>,
}

/// What the user does with a form.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "lowercase", expecting = "{ accept = { … } }, \"decline\" or \"cancel\"")]
pub(super) enum UserRow {
    Accept(BTreeMap<String, Value>),
    Decline,
    Cancel,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseFileToml {
    #[serde(default)]
    case: Vec<TestCaseRow>,
}

/// A case, as it is written: with one step of its own, or with several.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TestCaseRow {
    name: Spanned<String>,
    #[serde(default)]
    settings: BTreeMap<String, Value>,
    #[serde(default)]
    secrets: BTreeMap<String, String>,
    #[serde(default)]
    environment: BTreeMap<String, String>,
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default)]
    state: BTreeMap<String, Value>,
    #[serde(default)]
    http: Vec<HttpRow>,
    #[serde(default, deserialize_with = "one_or_several")]
    model: Vec<String>,
    #[serde(default, deserialize_with = "one_or_several")]
    user: Vec<UserRow>,
    #[serde(default)]
    grants: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    steps: Vec<StepRow>,
    call: Option<String>,
    #[serde(default, deserialize_with = "hook_point")]
    hook: Option<HookPoint>,
    eval: Option<String>,
    complete: Option<String>,
    resource: Option<String>,
    prompt: Option<String>,
    arguments: Option<Value>,
    context: Option<Value>,
    subject: Option<Value>,
    options: Option<Value>,
    text: Option<String>,
    expect: Option<Expected>,
}

/// A step, as it is written.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table such as { call = \"…\" }")]
struct StepRow {
    call: Option<String>,
    #[serde(default, deserialize_with = "hook_point")]
    hook: Option<HookPoint>,
    eval: Option<String>,
    complete: Option<String>,
    resource: Option<String>,
    prompt: Option<String>,
    arguments: Option<Value>,
    context: Option<Value>,
    subject: Option<Value>,
    options: Option<Value>,
    text: Option<String>,
    expect: Option<Expected>,
}

/// Reads a list, or one value where there is no list.
fn one_or_several<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    from: D,
) -> Result<Vec<T>, D::Error> {
    let values = match toml::Value::deserialize(from)? {
        toml::Value::Array(values) => values,
        one => vec![one],
    };
    let values = values.into_iter().map(|value| value.try_into().map_err(D::Error::custom));
    values.collect()
}

fn hook_point<'de, D: Deserializer<'de>>(from: D) -> Result<Option<HookPoint>, D::Error> {
    let name = String::deserialize(from)?;
    name.parse().map(Some).map_err(D::Error::custom)
}

impl CaseFile {
    /// Reads all files with cases of a plugin, by their names; none where there is no folder of them.
    ///
    /// # Errors
    ///
    /// Where one cannot be read or understood.
    pub(crate) fn read_all(plugin: &Path) -> Result<Vec<Self>, Error> {
        let folder = plugin.join(FOLDER);
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Error::Read(folder, error)),
        };
        let paths = entries.flatten().map(|entry| entry.path());
        let mut paths: Vec<PathBuf> =
            paths.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
        paths.sort();
        paths.into_iter().map(Self::read).collect()
    }

    fn read(path: PathBuf) -> Result<Self, Error> {
        let text = files::read_text(&path, MAX_FILE_BYTES)
            .map_err(|error| Error::Read(path.clone(), error))?;
        let wrong = |problem: &str| Error::Input(format!("{}: {problem}", path.display()));
        let table: CaseFileToml =
            toml::from_str(&text).map_err(|error| wrong(error.to_string().trim_end()))?;
        if table.case.is_empty() {
            return Err(wrong("there is no [[case]] in it"));
        }
        let line = |at: usize| text[..at].matches('\n').count() + 1;
        let cases = table.case.into_iter().map(|row| {
            let line = line(row.name.span().start);
            Case::of(row, line).map_err(|problem| format!("line {line}: {problem}"))
        });
        let cases = cases.collect::<Result<Vec<_>, _>>().map_err(|problem| wrong(&problem))?;
        Ok(Self { path, cases })
    }
}

impl Case {
    fn of(row: TestCaseRow, line: usize) -> Result<Self, String> {
        let name = row.name.into_inner();
        let own = StepRow {
            call: row.call,
            hook: row.hook,
            eval: row.eval,
            complete: row.complete,
            resource: row.resource,
            prompt: row.prompt,
            arguments: row.arguments,
            context: row.context,
            subject: row.subject,
            options: row.options,
            text: row.text,
            expect: row.expect,
        };
        let rows = match (own.is_empty(), row.steps.is_empty()) {
            (false, true) => vec![own],
            (true, false) => row.steps,
            (true, true) => return Err(format!("case {name:?}: {NO_ACTION}")),
            (false, false) => {
                return Err(format!("case {name:?} has `steps` and beside them a step of its own"));
            }
        };
        let steps = rows.into_iter().map(StepRow::read);
        let steps = steps.collect::<Result<Vec<_>, _>>();
        let steps = steps.map_err(|problem| format!("case {name:?}: {problem}"))?;
        if let Some(path) = row.files.keys().find(|path| !path.starts_with("~/")) {
            return Err(format!(
                "case {name:?}: the path {path:?} of a file does not begin with `~/`"
            ));
        }
        let given = Given {
            settings: row.settings,
            secrets: row.secrets,
            environment: row.environment,
            files: row.files,
            state: row.state,
            http: row.http,
            model: row.model,
            user: row.user,
            grants: row.grants,
        };
        Ok(Self { name, line, given, steps })
    }
}

/// What is said of a step that does nothing.
const NO_ACTION: &str =
    "it says nothing to do: one of `call`, `hook`, `eval`, `complete`, `resource`, `prompt`";

impl StepRow {
    fn is_empty(&self) -> bool {
        let Self { call, hook, eval, complete, resource, prompt, expect, .. } = self;
        let names = [call, eval, complete, resource, prompt];
        names.iter().all(|name| name.is_none()) && hook.is_none() && expect.is_none()
    }

    fn read(self) -> Result<(Action, Expected), String> {
        let empty = || Value::Object(serde_json::Map::new());
        let mut actions = Vec::new();
        let arguments = self.arguments;
        actions.extend(
            self.call.map(|tool| Action::Call {
                tool,
                arguments: arguments.clone().unwrap_or_else(empty),
            }),
        );
        actions.extend(
            self.hook
                .map(|point| Action::Hook { point, context: self.context.unwrap_or_else(empty) }),
        );
        actions.extend(self.eval.map(|strategy| Action::Evaluate {
            strategy,
            subject: self.subject.unwrap_or_else(empty),
            options: self.options.unwrap_or_else(empty),
        }));
        actions.extend(
            self.complete
                .map(|model| Action::Complete { model, prompt: self.text.unwrap_or_default() }),
        );
        actions.extend(self.resource.map(|uri| Action::Read { uri }));
        if let Some(name) = self.prompt {
            let arguments = arguments.unwrap_or_else(empty);
            let arguments = serde_json::from_value(arguments)
                .map_err(|_| "the `arguments` of a prompt are texts")?;
            actions.push(Action::Prompt { name, arguments });
        }
        match <[Action; 1]>::try_from(actions) {
            Ok([action]) => Ok((action, self.expect.unwrap_or_default())),
            Err(actions) if actions.is_empty() => Err(NO_ACTION.into()),
            Err(_) => Err("it says two things to do; `steps` has several".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is wrong with a file; nothing where it has cases.
    fn problem(text: &str) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(FOLDER)).unwrap();
        fs::write(folder.path().join(FOLDER).join("a.toml"), text).unwrap();
        CaseFile::read_all(folder.path()).err().map(|error| error.to_string())
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said() {
        let check = |text: &str, expected: &str| {
            let problem = problem(text).unwrap_or_default();
            assert!(problem.contains(expected), "{text}: {problem}");
        };
        check("", "there is no [[case]]");
        check("[[case]]\nname = \"a\"", "line 2: case \"a\": it says nothing to do");
        check("[[case]]\nname = \"a\"\ncall = \"b\"\nresource = \"c\"", "two things to do");
        check("[[case]]\nname = \"a\"\ncall = \"b\"\nsteps = [{ call = \"b\" }]", "beside them");
        check("[[case]]\nname = \"a\"\nsteps = [{ expect.text = \"b\" }]", "nothing to do");
        check("[[case]]\nname = \"a\"\ncall = \"b\"\nfiles.\"/etc/x\" = \"\"", "begin with `~/`");
        check("[[case]]\nname = \"a\"\ncall = \"b\"\nexpect.txt = \"c\"", "line 4, column 8");
        check("[[case]]\nname = \"a\"\ncal = \"b\"", "unknown field `cal`");
        check("[[case]]\nname = \"a\"\nhook = \"nope\"", "line 3");
        check("[[case]]\nname = \"a\"\n[[case]]\nname = \"b\"", "line 2: case \"a\": it says");
        check("[[case]]\nname = \"a\"\ncall = \"b\"\nexpect = 1", "expected a table such as");
        check("[[case]]\nname = \"a\"\nuser = \"maybe\"", "unknown variant `maybe`");
    }

    #[test]
    fn a_case_has_one_step_or_several() {
        let check = |text: &str| assert_eq!(problem(text), None, "{text}");
        check("[[case]]\nname = \"a\"\ncall = \"b\"\narguments = { c = 1 }\nexpect.text = \"d\"");
        check(
            "[[case]]\nname = \"a\"\nsteps = [{ call = \"b\" }, { resource = \"c\", expect.text = \"\" }]",
        );
        check(
            "[[case]]\nname = \"a\"\nhook = \"before-plan\"\nuser = [{ accept = { n = 1 } }, \"decline\"]",
        );
    }
}
