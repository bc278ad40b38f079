//! Asking the user what plugins may do.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use tenon_config::approvals::{ApprovalFile, FormerApproval};
use tenon_config::policy::ConfinementMode;
use tenon_host::services::{
    ApprovalRequest, Approver, GrantDecision, GrantWarning, ServerParameters,
};
use tenon_host::types::text::one_line;
use tenon_host::{PluginKind, PluginSkills, Skill};

use crate::hint::as_typed;

/// Values by the names of capabilities.
pub(crate) type CapabilityValues = BTreeMap<String, Vec<String>>;

/// Goes by the user's approvals, and asks on a terminal for those that are missing.
pub(crate) struct TerminalApprover {
    file: Option<ApprovalFile>,
    asks: bool,
    /// The plugins of which the user has said no: nobody is asked twice by one command.
    declined: Mutex<BTreeSet<String>>,
    /// A folder whose plugins get what they request: the user writes them.
    authored: Option<PathBuf>,
}

impl TerminalApprover {
    /// Asks where there is a terminal to ask on, and a place to keep the answer.
    pub(crate) fn on_terminal(file: Option<ApprovalFile>) -> Self {
        Self { asks: file.is_some() && is_terminal(), file, ..Self::nobody() }
    }

    /// Knows what was approved before, and has nobody to ask.
    pub(crate) fn unattended(file: Option<ApprovalFile>) -> Self {
        Self { file, ..Self::nobody() }
    }

    /// Has nobody to ask, and no approvals.
    pub(crate) fn nobody() -> Self {
        Self { file: None, asks: false, declined: Mutex::default(), authored: None }
    }

    /// The same, granting the plugins of a folder what their manifests request. Servers are no plugins that are written there,
    /// and are approved as ever.
    pub(crate) fn for_author(self, folder: Option<PathBuf>) -> Self {
        Self { authored: folder, ..self }
    }

    fn is_authored(&self, request: &ApprovalRequest) -> bool {
        let Some(folder) = &self.authored else { return false };
        let is_inside = request.named_in.canonicalize().is_ok_and(|file| file.starts_with(folder));
        is_inside && request.kind != PluginKind::Mcp && request.command.is_none()
    }
}

#[async_trait]
impl Approver for TerminalApprover {
    async fn approve(&self, request: &ApprovalRequest) -> GrantDecision {
        if self.is_authored(request) {
            return GrantDecision::Granted(request.capabilities.clone());
        }
        let Some(file) = &self.file else { return GrantDecision::Undecided };
        let approval = file.approve(request).await;
        let declined = || self.declined.lock().unwrap_or_else(PoisonError::into_inner);
        let is_settled = matches!(approval, GrantDecision::Granted(_));
        if !self.asks || is_settled || declined().contains(&request.plugin) {
            return approval;
        }
        // Where it cannot be read, nothing is known of it.
        let former = file.former(request).ok().flatten();
        match ask(request.clone(), approval.clone(), former).await {
            Some(granted) => {
                if let Err(error) = file.grant(request, granted.clone()) {
                    tracing::warn!(
                        "the approval is not kept: {}",
                        tenon_config::diagnostic::chain(&error)
                    );
                }
                GrantDecision::Granted(granted)
            }
            None => {
                declined().insert(request.plugin.clone());
                approval
            }
        }
    }
}

/// Whether there is somebody to ask, and to show what is asked.
pub(crate) fn is_terminal() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Shows a request and asks for what of it is granted; nothing where the user says no. Who
/// interrupts the command is not waited for.
pub(crate) async fn ask(
    request: ApprovalRequest,
    approval: GrantDecision,
    former: Option<FormerApproval>,
) -> Option<CapabilityValues> {
    let asked = tokio::task::spawn_blocking(move || ask_now(&request, &approval, former.as_ref()));
    asked.await.ok().flatten()
}

fn ask_now(
    request: &ApprovalRequest,
    approval: &GrantDecision,
    former: Option<&FormerApproval>,
) -> Option<CapabilityValues> {
    say(&shown(request, approval, former));
    // There is nothing to choose from.
    if request.capabilities.is_empty() {
        return match answer("approve it? [y]es, [n]o: ")?.as_str() {
            "y" | "yes" => Some(CapabilityValues::new()),
            _ => None,
        };
    }
    // Who granted less before is not asked to grant more by the same answer.
    let Some(former) = former.filter(|former| former.is_narrowed()) else {
        return match answer("approve it? [y]es, [n]o, [c]hoose: ")?.as_str() {
            "y" | "yes" => Some(request.capabilities.clone()),
            "c" | "choose" => choose(request, all(&request.capabilities)),
            _ => None,
        };
    };
    match answer("approve it? [y]es, as before, [n]o, [c]hoose, [a]ll: ")?.as_str() {
        "y" | "yes" => {
            let mut granted = former.kept(request);
            for (capability, values) in choose(request, former.added(request).into_iter())? {
                granted.entry(capability).or_default().extend(values);
            }
            Some(granted)
        }
        "c" | "choose" => choose(request, all(&request.capabilities)),
        "a" | "all" => Some(request.capabilities.clone()),
        _ => None,
    }
}

/// Values one by one, each with its capability.
fn all(values: &CapabilityValues) -> impl Iterator<Item = (String, String)> {
    values.iter().flat_map(|(name, of)| of.iter().map(|value| (name.clone(), value.clone())))
}

/// Asks for each value.
fn choose(
    request: &ApprovalRequest,
    values: impl Iterator<Item = (String, String)>,
) -> Option<CapabilityValues> {
    let mut granted = CapabilityValues::new();
    for (capability, value) in values {
        let is_it = |w: &&GrantWarning| w.capability == capability && w.value == value;
        let meaning = match request.warnings.iter().find(is_it) {
            Some(warning) => format!(" — {}", warning.meaning),
            None => String::new(),
        };
        let question = format!("  {capability}  {}{meaning}? [y/n]: ", short(&value));
        if matches!(answer(&question)?.as_str(), "y" | "yes") {
            granted.entry(capability).or_default().push(value);
        }
    }
    Some(granted)
}

/// Asks a question on the terminal; nothing where the input has ended. What was typed before it was asked is no answer.
pub(crate) fn answer(question: &str) -> Option<String> {
    discard_typed();
    say(question);
    let mut line = String::new();
    match io::stdin().lock().read_line(&mut line) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(line.trim().to_lowercase()),
    }
}

/// Forgets what was typed on the terminal and not read. What comes from elsewhere is left.
#[cfg(unix)]
fn discard_typed() {
    use rustix::termios::{QueueSelector, tcflush};
    // What is no terminal has nothing to forget.
    let _ = tcflush(io::stdin(), QueueSelector::IFlush);
}

#[cfg(not(unix))]
fn discard_typed() {}

/// Writes to the terminal, in its own colors: what was written before must not hide a question.
pub(crate) fn say(text: &str) {
    // Where standard error is closed there is nobody to ask.
    let _ = io::stderr().write_all(format!("\x1b[0m{text}").as_bytes());
}

/// How many values of a capability are shown, and how much of one: a question has to stay in sight
/// whatever a manifest says.
const MAX_VALUES: usize = 8;
const MAX_VALUE_LENGTH: usize = 200;

/// A request as people see it.
pub(crate) fn shown(
    request: &ApprovalRequest,
    approval: &GrantDecision,
    former: Option<&FormerApproval>,
) -> String {
    let digest = |digest: &Option<String>| match digest {
        Some(digest) => format!("  sha256:{}", &digest[..digest.len().min(16)]),
        None => String::new(),
    };
    let plugin = &request.plugin;
    let mut text = format!(
        "plugin \"{plugin}\" ({})\n  code      {}{}\n  named in  {}{}\n",
        request.kind,
        short(&request.source),
        digest(&request.component),
        short(&request.named_in.display().to_string()),
        digest(&request.manifest),
    );
    if let Some(command) = &request.command {
        text.push_str(if command.url.is_some() { "  turns to\n" } else { "  runs\n" });
        text.push_str(&command_lines(command));
    }
    for argument in &request.arguments {
        text.push_str(&format!("  argument  {}\n", unmistakable(argument)));
    }
    if request.confinement == Some(ConfinementMode::Unconfined) {
        text.push_str("  unconfined: it reaches whatever you can\n");
    }
    if let Some(skills) = &request.skills {
        text.push_str("  carries skills, on which agents act outside of its sandbox\n");
        text.push_str(&skill_lines(plugin, skills));
    }
    if !request.capabilities.is_empty() || request.command.is_none() && request.skills.is_none() {
        text.push_str("  requests\n");
        text.push_str(&listed(plugin, &request.capabilities, &request.warnings));
    }
    if let GrantDecision::Stale(changes) = approval {
        text.push_str("  since it was approved\n");
        for change in changes.iter().take(MAX_VALUES) {
            text.push_str(&format!("    {}\n", short(&change.to_string())));
        }
        text.push_str(&more(plugin, changes.len()));
    }
    if let Some(former) = former.filter(|former| former.is_narrowed()) {
        let was = if matches!(approval, GrantDecision::Granted(_)) { "is" } else { "was" };
        let kept = former.kept(request);
        let nothing = if kept.is_empty() { ": nothing of it" } else { "" };
        text.push_str(&format!("  {was} granted{nothing}\n"));
        text.push_str(&listed(plugin, &kept, &request.warnings));
    }
    text
}

/// PluginSkills, a line each, with the folder where the user can read them.
fn skill_lines(plugin: &str, skills: &PluginSkills) -> String {
    let line = |skill: &Skill| {
        let (name, files) = (short(&skill.name), skill.files().count());
        let folder = skills.folder_of(skill).display().to_string();
        let files = if files == 1 { "1 file".into() } else { format!("{files} files") };
        format!(
            "    {name:<11}  {}\n      {files} in {}\n",
            short(&skill.description),
            short(&folder)
        )
    };
    let mut lines: String = skills.all().iter().take(MAX_VALUES).map(line).collect();
    lines.push_str(&more(plugin, skills.all().len()));
    lines
}

/// What was approved, and what of the request was not.
pub(crate) fn approved(request: &ApprovalRequest, granted: &CapabilityValues) -> String {
    let plugin = &request.plugin;
    let is_asked_otherwise = request.command.is_some() || request.skills.is_some();
    let nothing = match (granted.is_empty(), is_asked_otherwise) {
        (false, _) => "; it is granted",
        (true, false) => ", and is granted nothing",
        (true, true) if request.capabilities.is_empty() => "",
        (true, true) => ", and is granted nothing of what it requests",
    };
    let mut text = format!("plugin \"{plugin}\" is approved{nothing}\n");
    text.push_str(&listed(plugin, granted, &request.warnings));
    let left_out = left_out(request, granted);
    if !left_out.is_empty() {
        text.push_str("  and of its request not, or not all of it\n");
        text.push_str(&listed(plugin, &left_out, &request.warnings));
        text.push_str(&as_typed(&format!(
            "  `tenon approve {plugin} --all-requested` grants all, `--grant` what you say\n"
        )));
    }
    text
}

/// What is requested and not granted.
pub(crate) fn left_out(request: &ApprovalRequest, granted: &CapabilityValues) -> CapabilityValues {
    let mut left_out = request.capabilities.clone();
    left_out.retain(|capability, values| {
        values.retain(|value| !granted.get(capability).is_some_and(|of| of.contains(value)));
        !values.is_empty()
    });
    left_out
}

/// How a server is started or reached, as a whole: what is not shown is not approved.
pub(crate) fn command_lines(command: &ServerParameters) -> String {
    let line = |(word, text): (&str, String)| format!("    {word:<11}  {}\n", unmistakable(&text));
    command.lines().into_iter().map(line).collect()
}

/// A text as it stands, or else, where something of it would not be seen or it might be taken for one
/// of these, in quotes and with escapes: no two texts look the same.
fn unmistakable(text: &str) -> Cow<'_, str> {
    match seen(text) {
        Cow::Borrowed(text) if !text.starts_with('"') => text.into(),
        _ => seen(&format!("{text:?}")).into_owned().into(),
    }
}

/// How many spaces are shown one after the other.
const MAX_SPACES: usize = 8;

/// A text in one line, of which nothing is hidden: more spaces than a few, which would move what follows out
/// of sight, are counted.
pub(crate) fn seen(text: &str) -> Cow<'_, str> {
    let line = one_line(text);
    let mut shown = String::with_capacity(line.len());
    let mut rest = &*line;
    while let Some(at) = rest.find(char::is_whitespace) {
        let (before, from_here) = rest.split_at(at);
        rest = from_here.trim_start();
        let spaces = &from_here[..from_here.len() - rest.len()];
        shown.push_str(before);
        match spaces.chars().count() {
            ..=MAX_SPACES => shown.push_str(spaces),
            many => shown.push_str(&format!("\\[{many} spaces]")),
        }
    }
    shown.push_str(rest);
    if shown == line { line } else { shown.into() }
}

/// The same as JSON has it, where a path is text.
pub(crate) fn command_form(command: &ServerParameters) -> Value {
    let mut command = command.clone();
    command.folder = command.folder.map(|folder| folder.to_string_lossy().into_owned().into());
    json!(command)
}

/// Values, a line each. Those with a warning go first, and all of them are shown: a manifest must not
/// hide one among many.
fn listed(plugin: &str, values: &CapabilityValues, warnings: &[GrantWarning]) -> String {
    let mut text = String::new();
    for (capability, values) in values {
        let meaning = |value: &String| {
            let is_it = |w: &&GrantWarning| w.capability == *capability && w.value == *value;
            warnings.iter().find(is_it).map(|warning| warning.meaning.as_str())
        };
        let (warned, others): (Vec<_>, Vec<_>) =
            values.iter().partition(|value| meaning(value).is_some());
        let capability = short(capability);
        for value in &warned {
            let meaning = meaning(value).unwrap_or_default();
            text.push_str(&format!("    {capability:<11}  {} — {meaning}\n", short(value)));
        }
        for value in others.iter().take(MAX_VALUES) {
            text.push_str(&format!("    {capability:<11}  {}\n", short(value)));
        }
        text.push_str(&more(plugin, others.len()));
    }
    text
}

/// What is said of those that are not shown.
fn more(plugin: &str, all: usize) -> String {
    match all.saturating_sub(MAX_VALUES) {
        0 => String::new(),
        more => {
            as_typed(&format!("    and {more} more: `tenon inspect {plugin}` shows all\n")).into()
        }
    }
}

/// A value in one line of bounded length.
fn short(value: &str) -> String {
    let shown = seen(value);
    match shown.char_indices().nth(MAX_VALUE_LENGTH) {
        None => shown.into_owned(),
        Some((cut, _)) => format!("{}… ({} bytes)", &shown[..cut], value.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_arguments_look_the_same() {
        let check = |text: &str, expected: &str| assert_eq!(unmistakable(text), expected);
        check("a b", "a b");
        check(r"a\nb", r"a\nb");
        check("a\nb", r#""a\nb""#);
        check(r#""a""#, r#""\"a\"""#);
        check(r"C:\new", r"C:\new");
        check("\\\u{202e}", r#""\\\u{202e}""#);
        check("a        b", "a        b");
        check("a         b\u{a0}\u{2003}c", r#""a\[9 spaces]b\u{a0}\u{2003}c""#);
        assert_eq!(seen(&format!("a{}b", "\u{2003}".repeat(9))), r"a\[9 spaces]b");
        check(r"a\[9 spaces]b", r"a\[9 spaces]b");
        check("a\\[9 spaces]b          ", r#""a\\[9 spaces]b\[10 spaces]""#);
    }
}
