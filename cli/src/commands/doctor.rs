//! `tenon doctor`

use futures::future::join_all;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::sync::Arc;
use tenon_config::diagnostic::chain;
use tenon_config::discover::Candidate;
use tenon_host::types::text::{one_line, visible};
use tenon_host::{
    AccessRecorder, BreakerState, ConfinementState, Diagnostic, Limits, NetworkTraffic, Platform,
    PluginKind, PluginReport, PluginState, Registry, ServerReport,
};

use super::confine::{granted, local_server};
use crate::access_recording::{CallsToMake, RecordingReport, failed};
use crate::error::{Error, Exit};
use crate::hint::as_typed;
use crate::listed_by_plugin::{ListedByPlugin, ListedNames};
use crate::{Common, open, output};

/// Start all plugins and report their state
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tenon doctor
  tenon doctor files
  tenon doctor files --trace --call 'read_text_file path=notes.md'
  tenon --json doctor | jq '.[] | select(.state != \"ready\")'")]
pub(crate) struct Args {
    /// Start and show only these, in full
    #[arg(value_name = "PLUGIN")]
    plugins: Vec<String>,
    /// Show every plugin in full
    #[arg(long, short)]
    verbose: bool,
    /// Record what one confined server is refused, and show the capabilities that would allow it
    #[arg(long, requires = "plugins")]
    trace: bool,
    /// Call this tool meanwhile, with arguments as `tenon call` takes them: JSON, or KEY=VALUE without blanks; can be repeated
    #[arg(long, value_name = "TOOL [ARGUMENTS]", requires = "trace")]
    call: Vec<String>,
}

pub(crate) async fn run(common: &Common, args: Args) -> Result<ExitCode, Error> {
    let Args { plugins, verbose, trace, call } = args;
    let found = open::found(common)?.starting_servers();
    if trace {
        return trace_server(common, found, &plugins, CallsToMake::parse(&call)?).await;
    }
    let discovery = &found.discovery;
    let known = discovery.ids();
    if let Some(unknown) = plugins.iter().find(|id| !known.contains(id.as_str())) {
        return Err(found.unknown(unknown));
    }
    let is_asked = |id: &str| plugins.is_empty() || plugins.iter().any(|plugin| plugin == id);
    let mut warnings = discovery.warnings.clone();
    let (configs, prefixes) = (found.sources.configs.clone(), found.tool_prefixes());
    let platform = found.build(|candidate: &Candidate| is_asked(candidate.id()));
    open::with(common, platform, async |platform| {
        let (reports, mut diagnostics) = (platform.plugins(), platform.diagnostics());
        let listings = listings(platform, is_asked).await;
        // What is held of prompts, resources and templates is known once they are listed.
        diagnostics.extend(held(platform, is_asked));
        if plugins.is_empty() {
            let store = platform.store().clone();
            let checked = tokio::task::spawn_blocking(move || store.check()).await;
            let problem = match checked {
                Ok(checked) => checked.err().map(|error| chain(&error)),
                Err(error) => Some(error.to_string()),
            };
            let problem = problem.map(|problem| format!("state cannot be kept: {problem}"));
            diagnostics.extend(problem.map(Diagnostic::unplaced));
        }
        let is_of =
            |note: &&Diagnostic| note.plugin.as_deref().map_or(plugins.is_empty(), is_asked);
        let reports: Vec<_> = reports.iter().filter(|report| is_asked(&report.plugin)).collect();
        // What of its contributions is left out stands beside a plugin.
        let is_told = |note: &Diagnostic| {
            reports.iter().any(|report| {
                let detail = report.detail.as_deref().unwrap_or_default();
                note.plugin.as_ref() == Some(&report.plugin) && detail.contains(&note.problem)
            })
        };
        let registry = platform.registry();
        // Where all are there that can be, a rule that fits no tool is a slip.
        if plugins.is_empty() && platform.unread().is_empty() {
            let is_ready = |id: &str| registry.plugin(id).is_some();
            let absent = prefixes.iter().filter(|(id, _)| !is_ready(id));
            let absent: Vec<&str> = absent.map(|(_, prefix)| prefix.as_str()).collect();
            let may_fit =
                |pattern: &str| absent.iter().any(|prefix| open::may_name_tool_of(pattern, prefix));
            warnings.extend(registry.unused_rules(&configs, may_fit));
        }
        let notes = diagnostics.iter().chain(&warnings);
        let notes = notes.filter(|note| is_of(note) && !is_told(note)).collect();
        // What is used all the same, as it only varies or its operator says so, is no failure.
        let is_well = |note: &&Diagnostic| registry.pin_warnings().contains(note);
        let well = diagnostics.iter().filter(is_of).all(|note| is_well(&note));
        let checked = DoctorReport { registry, listings, reports, notes, well };
        match (common.json, verbose || !plugins.is_empty()) {
            (true, _) => checked.rows()?,
            (false, true) => checked.whole()?,
            (false, false) => checked.brief()?,
        }
        Ok(checked.code())
    })
    .await
}

/// Starts a server, has it list what it offers, and shows what it was refused.
async fn trace_server(
    common: &Common,
    found: open::FoundPlugins,
    plugins: &[String],
    calls: CallsToMake,
) -> Result<ExitCode, Error> {
    let [server] = plugins else {
        return Err(Error::Input("`--trace` is for one server".into()));
    };
    let file = local_server(&found, server)?.named_in().to_path_buf();
    let recorder = AccessRecorder::of_refusals().map_err(failed)?;
    let found = found.recording(server.clone(), recorder.clone());
    let platform = found.build(|candidate: &Candidate| candidate.id() == server);
    open::with(common, platform, async |platform| {
        listings(platform, |id| id == server).await;
        let reports = platform.plugins();
        let report = reports.iter().find(|report| report.plugin == *server);
        let confinement = platform.server(server).and_then(|server| server.confinement);
        let is_confined = confinement.is_some_and(|of| of.is_confined);
        let failure = report.filter(|report| report.state.is_failure());
        if failure.is_some_and(|of| matches!(of.state, PluginState::Refused | PluginState::Denied)) {
            open::require(platform, &[server])?;
        }
        if failure.is_none() && !is_confined {
            return Err(Error::Input(format!(
                "\"{server}\" is not confined, as it has no `capabilities` or the policy turns that off: nothing is \
                 refused to it. `tenon confine {server} --learn` proposes capabilities"
            )));
        }
        let called = match failure {
            Some(_) => Exit::Failed,
            None => calls.make(platform, server).await,
        };
        let recorded = RecordingReport::of(&recorder, &granted(platform, server))?;
        if common.json {
            let mut shown = recorded.to_json();
            shown["server"] = json!(server);
            shown["state"] = json!(report.map(|report| report.state));
            output::json(&shown)?;
        } else {
            if let Some(report) = failure {
                let detail = report.detail.as_deref().unwrap_or_default();
                output::line(format!("{server} failed:"))?;
                details(Some(detail), None)?;
            }
            recorded.print(server, "was refused", &file, called)?;
        }
        Ok(called.into())
    })
    .await
}

/// What plugins list, by their ids. One that fails here says so where it is asked for something.
async fn listings(
    platform: &Platform,
    is_asked: impl Fn(&str) -> bool,
) -> BTreeMap<String, ListedByPlugin> {
    let registry = platform.registry();
    let plugins = registry.plugins().iter().filter(|plugin| is_asked(plugin.id()));
    let listings = plugins.map(async |plugin| {
        (plugin.id().to_string(), ListedByPlugin::of(platform, plugin.id()).await)
    });
    join_all(listings).await.into_iter().collect()
}

/// What is held of the prompts, resources and templates of servers.
fn held(platform: &Platform, is_asked: impl Fn(&str) -> bool) -> Vec<Diagnostic> {
    let registry = platform.registry();
    let servers = registry.plugins().iter();
    let servers =
        servers.filter(|plugin| plugin.kind() == PluginKind::Mcp && is_asked(plugin.id()));
    let held = servers.flat_map(|plugin| {
        let id = plugin.id();
        let held = platform.server(id).map(|server| server.held).unwrap_or_default();
        let remedy = tenon_config::pins::remedy(id);
        held.into_iter().map(move |problem| Diagnostic::of(id, problem).remedy(remedy.clone()))
    });
    held.collect()
}

/// What there is to say.
struct DoctorReport<'a> {
    registry: Arc<Registry>,
    listings: BTreeMap<String, ListedByPlugin>,
    reports: Vec<&'a PluginReport>,
    /// What is to be said of no plugin, or of one that is there all the same.
    notes: Vec<&'a Diagnostic>,
    /// Whether none of the notes is of something wrong.
    well: bool,
}

impl DoctorReport<'_> {
    fn code(&self) -> ExitCode {
        let failed = self.reports.iter().any(|report| report.state.is_failure());
        if self.well && !failed { Exit::Success } else { Exit::Failed }.into()
    }

    fn rows(&self) -> Result<(), Error> {
        let notes = self.notes.iter().map(|note| row_of_diagnostic(note));
        let rows = self.reports.iter().map(|report| self.row(report)).chain(notes);
        output::json(&rows.collect::<Vec<_>>())
    }

    /// Everything, a plugin after the other.
    fn whole(&self) -> Result<(), Error> {
        for report in &self.reports {
            wrap(self.line(report).split(' '), ["", ""], LINE_WIDTH)
                .iter()
                .try_for_each(output::line)?;
            details(report.detail.as_deref(), report.remedy.as_deref())?;
            for more in self.more(report) {
                details(Some(&more), None)?;
            }
        }
        for note in &self.notes {
            output::line("note:")?;
            details(Some(&note.to_string()), note.remedy.as_deref())?;
        }
        output::line(self.ready())
    }

    /// What else there is to know of a plugin, well or not.
    fn more(&self, report: &PluginReport) -> Vec<String> {
        let mut more = Vec::new();
        let about = report.description.as_deref().unwrap_or_default().lines().next();
        more.extend(about.filter(|about| !about.is_empty()).map(|about| format!("about: {about}")));
        let tools = self.registry.tools();
        let tools = tools.filter(|(plugin, _)| **plugin.id() == *report.plugin);
        let tools: Vec<&str> = tools.map(|(_, tool)| tool.name.as_str()).collect();
        if !tools.is_empty() {
            more.push(format!("tools: {}", tools.join(", ")));
        }
        let listing = self.listings.get(&report.plugin);
        for (what, listed) in listing.into_iter().flat_map(ListedByPlugin::parts) {
            match &listed.0 {
                Ok(names) if names.is_empty() => {}
                Ok(names) => more.push(format!("{what}: {}", names.join(", "))),
                Err(error) => more.push(format!("{what}: not listed: {error}")),
            }
        }
        if let Some(server) = &report.server {
            more.push(server_line(server));
            if !server.stderr.is_empty() && report.state == PluginState::Ready {
                more.push(format!("last output:\n{}", server.stderr.join("\n")));
            }
        }
        for (capability, values) in &report.granted {
            more.push(format!("granted: {capability}: {}", values.join(", ")));
        }
        let limits = report.limits.as_ref().map(Limits::special);
        let limits = limits.filter(|limits| !limits.is_empty());
        more.extend(limits.map(|limits| format!("limits: {limits}")));
        more
    }

    /// What fits a screen: a line for each tier, of those that nothing is to be said of; then the
    /// others, each with the reason and the end of what it said. A remedy that is the same for
    /// several stands below the last of them.
    fn brief(&self) -> Result<(), Error> {
        for kind in [PluginKind::Mcp, PluginKind::Wasm, PluginKind::Rhai, PluginKind::Builtin] {
            let well = self.reports.iter().filter(|of| of.kind == kind && !is_concern(of));
            let mut well: Vec<String> =
                well.map(|report| format!("{},", self.standing(report))).collect();
            if let Some(last) = well.last_mut() {
                last.pop();
                well[0].insert_str(0, &format!("{}: ", tier(kind)));
                // A plugin stands on one line, if it fits there.
                let fits = |plugin: &str| HANGING[1].len() + plugin.chars().count() <= LINE_WIDTH;
                let words = well.iter().flat_map(|plugin| match fits(plugin) {
                    true => vec![plugin.as_str()],
                    false => plugin.split(' ').collect(),
                });
                wrap(words, HANGING, LINE_WIDTH).iter().try_for_each(output::line)?;
            }
        }
        let concerns = self.reports.iter().filter(|report| is_concern(report));
        let concerns = concerns.map(|report| Issue::of_plugin(report, self.standing(report)));
        let mut notes: Vec<Issue> = Vec::new();
        for note in &self.notes {
            let note = Issue::of_note(note);
            match notes.iter_mut().find(|told| told.words == note.words) {
                Some(told) => told.times += 1,
                None => notes.push(note),
            }
        }
        let left_out = notes.len().saturating_sub(MAX_NOTES);
        notes.truncate(MAX_NOTES);
        let concerns: Vec<_> = concerns.chain(notes).collect();
        let last = (MAX_LINES / concerns.len().max(1)).clamp(2, 6);
        for (remedy, concerns) in by_remedy(&concerns) {
            for Issue { words, remark, times, .. } in &concerns {
                let words = match times {
                    1 => words.into(),
                    times => Cow::from(format!("{words} ({times} times)")),
                };
                excerpt(&words, HANGING, last).iter().try_for_each(output::line)?;
                let remark = remark.as_deref().map(|remark| excerpt(remark, BELOW, last));
                remark.iter().flatten().try_for_each(output::line)?;
            }
            match (remedy, concerns.len()) {
                (None, _) => {}
                (Some(_), 1) => details(None, remedy)?,
                (Some(remedy), several) => {
                    details(Some(&format!("fix, for each of these {several}: {remedy}")), None)?;
                }
            }
        }
        if left_out > 0 {
            output::line(format!("and {left_out} more notes"))?;
        }
        match concerns.is_empty() {
            true => output::line(self.ready()),
            false => {
                let ready = format!("{}; `tenon doctor PLUGIN` shows one in full", self.ready());
                let ready = as_typed(&ready);
                wrap(ready.split(' '), HANGING, LINE_WIDTH).iter().try_for_each(output::line)
            }
        }
    }

    fn ready(&self) -> String {
        let count = |is: fn(PluginState) -> bool| {
            self.reports.iter().filter(|report| is(report.state)).count()
        };
        let (ready, failed) =
            (count(|of| of == PluginState::Ready), count(PluginState::is_failure));
        // What could not be read or understood was to be one, too.
        let reported = |id: &str| self.reports.iter().any(|report| report.plugin == id);
        let broken = self.notes.iter().filter_map(|note| note.plugin.as_deref());
        let broken: BTreeSet<&str> = broken.filter(|id| !reported(id)).collect();
        let whole = match failed + broken.len() {
            0 if !self.well => ", though not all is well",
            _ => "",
        };
        let is_unconfined = |report: &&&PluginReport| {
            let confinement = report.server.as_ref().and_then(|of| of.confinement.as_ref());
            report.state == PluginState::Ready && confinement.is_some_and(|of| !of.is_confined)
        };
        let unconfined = match self.reports.iter().filter(is_unconfined).count() {
            0 => String::new(),
            count => format!(", {count} of them unconfined"),
        };
        format!("{ready} of {} plugins are ready{unconfined}{whole}", ready + failed + broken.len())
    }

    fn row(&self, report: &PluginReport) -> Value {
        let listing = self.listings.get(&report.plugin);
        // It has none if it is not there; how many, a plugin that does not list them does not say.
        let count = |of: fn(&ListedByPlugin) -> &ListedNames| {
            listing.map_or(Some(0), |all| of(all).count())
        };
        json!({
            "plugin": report.plugin,
            "kind": report.kind,
            "state": report.state,
            "version": report.version,
            "tools": report.tools,
            "hooks": report.hooks,
            "evals": report.evals,
            "providers": report.providers,
            "resources": count(|listing| &listing.resources),
            "resourceTemplates": count(|listing| &listing.templates),
            "prompts": count(|listing| &listing.prompts),
            "capabilities": report.capabilities,
            "requested": report.requested,
            "granted": report.granted,
            "limits": report.limits,
            "needs": report.needs,
            "server": report.server,
            "detail": report.detail.as_deref().map(as_typed),
            "remedy": report.remedy.as_deref().map(as_typed),
        })
    }

    /// Whether a plugin is there, and with what: `github (ok, 12 tools)`.
    fn standing(&self, report: &PluginReport) -> String {
        let listing = self.listings.get(&report.plugin);
        let count = |of: fn(&ListedByPlugin) -> &ListedNames| {
            listing.map_or(0, |all| of(all).names().len())
        };
        let counts = [
            (report.tools, "tool"),
            (report.hooks, "hook"),
            (report.evals, "eval"),
            (report.providers, "provider"),
            (count(|listing| &listing.resources), "resource"),
            (count(|listing| &listing.templates), "template"),
            (count(|listing| &listing.prompts), "prompt"),
        ];
        let plural = |count: usize, one: &str, many: &str| match count {
            0 => String::new(),
            1 => format!(", 1 {one}"),
            count => format!(", {count} {many}"),
        };
        let counts: String =
            counts.iter().map(|(count, what)| plural(*count, what, &format!("{what}s"))).collect();
        let capabilities = plural(report.capabilities, "capability", "capabilities");
        format!("{} ({}{counts}{capabilities})", report.plugin, report.state)
    }

    /// One line for one plugin: `MCP: github (ok, 12 tools)`, and at the end its version.
    fn line(&self, report: &PluginReport) -> String {
        let line = format!("{}: {}", tier(report.kind), self.standing(report));
        let version = report.version.as_deref().unwrap_or_default();
        let version = one_line(version);
        let room = LINE_WIDTH.saturating_sub(line.chars().count() + 1);
        match version.is_empty() || version.chars().count() > room {
            true => line,
            false => format!("{line} {version:>room$}"),
        }
    }
}

/// How many lines of what they said are shown of all concerns together; each has two at least.
const MAX_LINES: usize = 12;

/// How many notes of different words are shown.
const MAX_NOTES: usize = 8;

/// Something that a reader should know.
struct Issue<'a> {
    /// What, and why.
    words: String,
    /// What is not as usual with its server.
    remark: Option<String>,
    remedy: Option<&'a str>,
    /// How often there is something of these words.
    times: usize,
}

impl<'a> Issue<'a> {
    fn of_plugin(report: &'a PluginReport, standing: String) -> Self {
        let detail = report.detail.as_deref().map(|detail| format!(": {detail}"));
        let tier = tier(report.kind);
        let remarks = report.server.as_ref().and_then(remarks);
        Self {
            words: format!("{tier}: {standing}{}", detail.unwrap_or_default()),
            remark: remarks.map(|remarks| format!("server: {remarks}")),
            remedy: report.remedy.as_deref(),
            times: 1,
        }
    }

    fn of_note(note: &'a Diagnostic) -> Self {
        let words = format!("note: {note}");
        Self { words, remark: None, remedy: note.remedy.as_deref(), times: 1 }
    }
}

/// Whether more is to be said of a plugin than how it stands. What was left out was meant to be.
fn is_concern(report: &PluginReport) -> bool {
    match report.state {
        PluginState::Ready => {
            report.detail.is_some() || report.server.as_ref().and_then(remarks).is_some()
        }
        state => state.is_failure(),
    }
}

/// Concerns with the same remedy together, each where the first of them is.
fn by_remedy<'a>(concerns: &'a [Issue<'_>]) -> Vec<(Option<&'a str>, Vec<&'a Issue<'a>>)> {
    let mut groups: Vec<(Option<&str>, Vec<&Issue>)> = Vec::new();
    for concern in concerns {
        let same = groups.iter_mut().find(|(of, _)| of.is_some() && *of == concern.remedy);
        match same {
            Some((_, same)) => same.push(concern),
            None => groups.push((concern.remedy, vec![concern])),
        }
    }
    groups
}

/// How many lines the first line of a text may take in an excerpt.
const FIRST_NOTES: usize = 2;

/// The first line of a text, and so many of its last: what is wrong, and the end of what was said of
/// it. What is left out is marked.
fn excerpt(text: &str, margins: [&str; 2], last: usize) -> Vec<String> {
    let text = as_typed(text);
    let text = visible(&text);
    let mut lines = text.lines();
    let mut shown = wrap(lines.next().unwrap_or_default().split(' '), margins, LINE_WIDTH);
    if shown.len() > FIRST_NOTES {
        shown.truncate(FIRST_NOTES);
        shown[FIRST_NOTES - 1] = cut(&format!("{} …", shown[FIRST_NOTES - 1]));
    }
    let rest: Vec<&str> = lines.filter(|line| !line.trim().is_empty()).collect();
    let left_out = rest.len().saturating_sub(last);
    let mut margin = if left_out > 0 { "  … " } else { margins[1] };
    for line in &rest[left_out..] {
        shown.push(cut(&format!("{margin}{}", line.trim_end().replace('\t', "  "))));
        margin = margins[1];
    }
    shown
}

/// What of a text fits a line.
fn cut(text: &str) -> String {
    match text.chars().count() <= LINE_WIDTH {
        true => text.to_string(),
        false => text.chars().take(LINE_WIDTH - 1).chain(['…']).collect(),
    }
}

/// What is wrong with something that is no plugin, or not wholly one, in the form of the others.
fn row_of_diagnostic(diagnostic: &Diagnostic) -> Value {
    json!({
        "plugin": diagnostic.plugin,
        "kind": null,
        "state": "note",
        "version": null,
        "tools": 0,
        "hooks": 0,
        "evals": 0,
        "providers": 0,
        "resources": 0,
        "resourceTemplates": 0,
        "prompts": 0,
        "capabilities": 0,
        "requested": {},
        "granted": {},
        "limits": null,
        "needs": [],
        "server": null,
        "detail": as_typed(&diagnostic.to_string()),
        "remedy": diagnostic.remedy.as_deref().map(as_typed),
    })
}

/// How a server fares, in a line: `server: ready, speaks 2025-11-25`, and what is not as usual.
fn server_line(server: &ServerReport) -> String {
    let speaks = server.revision.as_ref().map(|revision| format!(", speaks {revision}"));
    let remarks = remarks(server).map(|remarks| format!("; {remarks}"));
    let [speaks, remarks] = [speaks, remarks].map(Option::unwrap_or_default);
    let confined = server.confinement.as_ref().map(|confinement| match confinement {
        ConfinementState { is_confined: true, lacks_namespaces: true, .. } => {
            ", confined without namespaces (nothing is hidden or recorded)".to_string()
        }
        ConfinementState { is_confined: true, .. } => ", confined".to_string(),
        ConfinementState { problem: Some(problem), .. } => format!(", unconfined: {problem}"),
        _ => ", unconfined".to_string(),
    });
    let confined = confined.unwrap_or_default();
    let traffic = server.network.filter(|of| *of != NetworkTraffic::default());
    let traffic = traffic.map(|NetworkTraffic { sent_bytes, received_bytes, .. }| {
        format!(", sent {sent_bytes} bytes and received {received_bytes}")
    });
    let traffic = traffic.unwrap_or_default();
    format!("server: {}{speaks}{confined}{traffic}{remarks}", server.state)
}

/// What is not as usual with a server that is there.
fn remarks(server: &ServerReport) -> Option<String> {
    let mut remarks = Vec::new();
    if server.starts > 1 {
        remarks.push(format!("it was started {} times", server.starts));
        remarks.extend(server.last_error.clone());
    }
    if server.breaker_state != BreakerState::Closed {
        remarks.push(format!("the breaker {} is {}", server.breaker, server.breaker_state));
    }
    if server.skipped_lines > 0 {
        remarks.push(format!("{} lines of its output are no messages", server.skipped_lines));
    }
    remarks.extend(server.left_out.iter().cloned());
    (!remarks.is_empty()).then(|| remarks.join("; "))
}

/// How wide the table is, in characters.
const LINE_WIDTH: usize = 80;

/// What begins the first line of a text, and what its others: of one that begins at the edge, and of
/// one below it.
const HANGING: [&str; 2] = ["", "    "];
const BELOW: [&str; 2] = ["  ", "    "];

/// Prints why something is as it is, and what to do about it, below its line. Only the first line of
/// each begins where they do: what a plugin says cannot look like a remedy.
fn details(detail: Option<&str>, remedy: Option<&str>) -> Result<(), Error> {
    let remedy = remedy.map(|remedy| format!("fix: {remedy}"));
    for text in [detail, remedy.as_deref()].into_iter().flatten() {
        let text = &as_typed(text);
        let mut margins = BELOW;
        for text in visible(text).lines() {
            wrap(text.split(' '), margins, LINE_WIDTH).iter().try_for_each(output::line)?;
            margins = [BELOW[1]; 2];
        }
    }
    Ok(())
}

/// Words in lines of so many characters, broken between them where there is a place. The first line
/// begins with the first margin, and the others with the other.
fn wrap<'a>(
    words: impl Iterator<Item = &'a str>,
    [first, others]: [&str; 2],
    width: usize,
) -> Vec<String> {
    let mut lines = vec![first.to_string()];
    let mut empty = true;
    for word in words {
        let mut rest = word;
        loop {
            let line = lines.last_mut().expect("there is always one");
            let space = usize::from(!empty);
            let room = width.saturating_sub(line.chars().count());
            if space + rest.chars().count() <= room {
                line.push_str(if empty { "" } else { " " });
                line.push_str(rest);
                empty &= rest.is_empty();
                break;
            }
            if empty {
                let cut = rest.char_indices().nth(room).map_or(rest.len(), |(cut, _)| cut);
                line.push_str(&rest[..cut]);
                rest = &rest[cut..];
            }
            lines.push(others.to_string());
            empty = true;
        }
    }
    lines
}

fn tier(kind: PluginKind) -> &'static str {
    match kind {
        PluginKind::Wasm => "WASM",
        PluginKind::Mcp => "MCP",
        PluginKind::Rhai => "Rhai",
        PluginKind::Builtin => "Built-in",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_as_wide_as_they_may_be() {
        let check = |text: &str, margins, expected: &[&str]| {
            assert_eq!(wrap(text.split(' '), margins, 8), expected, "{text}");
        };
        let edge = ["", ""];
        check("", edge, &[""]);
        check("one two three", edge, &["one two", "three"]);
        check("12345678 9", edge, &["12345678", "9"]);
        check("a/very/long/path", edge, &["a/very/l", "ong/path"]);
        check("é éééééééé", edge, &["é", "éééééééé"]);
        check("one two three", ["", "  "], &["one two", "  three"]);
        check("one two 1234567", [" ", "  "], &[" one two", "  123456", "  7"]);
    }

    #[test]
    fn an_excerpt_is_the_reason_and_the_last_words() {
        let check = |text: &str, expected: &[&str]| {
            assert_eq!(excerpt(text, HANGING, 2), expected, "{text}")
        };
        check("", &[""]);
        check("why:\none\n\n\ttwo \n", &["why:", "    one", "      two"]);
        check("why:\none\ntwo\nthree\n", &["why:", "  … two", "    three"]);
        check("why:\none\n\u{1b}[2J", &["why:", "    one", "    \\u{1b}[2J"]);
        let words = |count: usize| ["123456789"].repeat(count).join(" ");
        check(&words(20), &[&words(8), &format!("    {} …", words(7))]);
        let wide = "é".repeat(500);
        let shown = excerpt(&format!("{wide}\n{wide}"), BELOW, 2);
        assert_eq!(shown.len(), 3);
        assert!(shown.iter().all(|line| line.chars().count() == LINE_WIDTH), "{shown:?}");
    }
}
