//! `tenon approve`

use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use tenon_call_approvals::CallApprovalError;
use tenon_config::admit::{ContentDigests, Rules};
use tenon_config::approvals::{ApprovalFile, FormerApproval};
use tenon_config::discover::Candidate;
use tenon_host::runs::RunState;
use tenon_host::services::{
    ApprovalRequest, ApprovalScope, ApproverDecision, GrantDecision, PendingCall,
};
use tenon_host::types::name::nearest;
use tenon_runs::Runs;

use crate::approval::{
    CapabilityValues, answer, approved, ask, command_form, is_terminal, left_out, shown,
};
use crate::call_approval::{self, json_of_standing, of_pending, of_standing};
use crate::error::{Error, Exit};
use crate::hint::{self, quoted};
use crate::open::FoundPlugins;
use crate::paused_run::resume_hint;
use crate::plugin_in_folder::same;
use crate::store::StorePlace;
use crate::{Common, blocking, open, output, pins, store};

/// Approve what plugins request, or calls that wait
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tenon approve weather
  tenon approve --all
  tenon approve weather --yes
  tenon approve notes --yes --grant 'filesystem=read:~/notes/today.md'
  tenon approve notes --yes --all-requested
  tenon approve A-3K7QZ0M2X9TB
  tenon approve A-3K7QZ0M2X9TB --for always --same path --expires 7d --yes

An approval covers a plugin as it is now; a plugin that changes must be approved again. Narrowed \
approvals persist: after an update, `--yes` grants at most what was granted before, and lists the \
rest; `--grant` and `--all-requested` grant more. What a project starts and loads is approved with \
`tenon trust`.

A call that waits is shown with its arguments; `tenon pending` lists all. It is approved for one call that is exactly \
the same within the next hour, or for all of a run, of a session or of the next 30 days, as long as the arguments \
named with `--same` are the same. `--expires` says another time.

Tools of an MCP server whose definitions have changed are held until they are approved in the same \
way; the change is shown.")]
pub(crate) struct Args {
    /// The plugins, or calls as `tenon pending` lists them
    #[arg(value_name = "PLUGIN|ID", required_unless_present = "all", conflicts_with = "all")]
    plugins: Vec<String>,
    /// Every plugin that is not approved yet and needs to be
    #[arg(long)]
    all: bool,
    /// Ask nothing
    #[arg(long)]
    yes: bool,
    /// Grant all that is requested, though less was granted before
    #[arg(long, conflicts_with = "grant")]
    all_requested: bool,
    /// Grant this, and of what is requested nothing else
    #[arg(long, value_name = "CAPABILITY=VALUE", requires = "plugins", value_parser = grant)]
    grant: Vec<(String, String)>,
    #[command(flatten)]
    call: CallScope,
}

/// Which calls an approval of one is good for.
#[derive(clap::Args)]
struct CallScope {
    /// Which calls it is approved for: one, those of the run or of the session, or all [default: once]
    #[arg(long = "for", value_name = "SCOPE")]
    scope: Option<ScopeWord>,
    /// Only this argument has to be the same, and those that are named so too [default: all arguments]
    #[arg(long, value_name = "NAME", requires = "scope")]
    same: Vec<String>,
    /// Whatever the arguments are
    #[arg(long, requires = "scope", conflicts_with = "same")]
    any_arguments: bool,
    /// How long it is approved, such as 10m or 7d [default: 1h for one call, 30d for all; a session is approved for 1d and a run for 7d at most]
    #[arg(long, value_name = "DURATION", value_parser = crate::duration)]
    expires: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ScopeWord {
    Once,
    Run,
    Session,
    Always,
}

impl CallScope {
    fn is_said(&self) -> bool {
        self.scope.is_some() || self.expires.is_some()
    }

    fn scope(&self) -> Result<ApprovalScope, Error> {
        let fixed = match (self.any_arguments, self.same.is_empty()) {
            (true, _) => Some(Vec::new()),
            (false, true) => None,
            (false, false) => Some(self.same.clone()),
        };
        Ok(match self.scope.unwrap_or(ScopeWord::Once) {
            ScopeWord::Once if fixed.is_some() => {
                let problem = "one call is approved as it is: `--same` and `--any-arguments` are for `--for run`, `session` and `always`";
                return Err(Error::Input(problem.into()));
            }
            ScopeWord::Once => ApprovalScope::Once,
            ScopeWord::Run => ApprovalScope::Run { fixed },
            ScopeWord::Session => ApprovalScope::Session { fixed },
            ScopeWord::Always => ApprovalScope::Standing { fixed },
        })
    }
}

fn grant(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((capability, value)) if !capability.is_empty() && !value.is_empty() => {
            Ok((capability.to_string(), value.to_string()))
        }
        _ => Err("it is not CAPABILITY=VALUE".into()),
    }
}

/// A plugin that is to be approved.
struct PendingApproval {
    request: ApprovalRequest,
    approval: GrantDecision,
    /// What was approved before.
    former: Option<FormerApproval>,
    /// What the user wants to grant, where that is said.
    wanted: Option<CapabilityValues>,
}

pub(crate) async fn run(common: &Common, mut args: Args) -> Result<ExitCode, Error> {
    for named in &mut args.plugins {
        // In small letters it may be a plugin's, too.
        if let Some(id) = call_approval::read_id(named)
            && id != *named
            && !is_plugin(common, named)
        {
            *named = id;
        }
    }
    if args.plugins.iter().any(|named| is_call(named)) {
        // What it asks and keeps waits for the terminal and the store.
        return blocking(common, args, |common, args| approve_calls(common, &args)).await;
    }
    if args.call.is_said() {
        let problem = "`--for` and `--expires` are for calls, as `tenon pending` lists them";
        return Err(Error::Input(problem.into()));
    }
    let found = open::found(common)?;
    let file = found.kept_approvals()?;
    for diagnostic in &found.discovery.diagnostics {
        tracing::warn!("{diagnostic}");
    }
    let candidates = &found.discovery.candidates;
    let host_environment = &found.sources.host_environment;
    let locks = Rules::default().contents(ContentDigests::read(candidates));
    let mut asked = Vec::new();
    for candidate in candidates {
        let is_named = args.plugins.iter().any(|id| id == candidate.id());
        if !args.all && !is_named {
            continue;
        }
        let Some(mut request) = candidate.approval_request() else { continue };
        if let Some(refusal) = locks.not_as_locked(candidate) {
            let problem = format!("plugin \"{}\" cannot be approved: {refusal}", candidate.id());
            return Err(Error::Refused { problem, hint: refusal.remedy() });
        }
        let approval = file.verdict(&request)?;
        if args.all && matches!(approval, GrantDecision::Granted(_)) {
            continue;
        }
        let wanted = match args.grant.is_empty() {
            true if args.all_requested => Some(request.capabilities.clone()),
            true => None,
            false => {
                check_names(&request, &args.grant)?;
                let wanted = candidate.grants_of(&args.grant, host_environment);
                Some(wanted.map_err(Error::Input)?)
            }
        };
        let former = file.former(&request)?;
        // Less than what is requested may be said in other words.
        for granted in wanted.iter().chain(former.as_ref().map(|former| &former.granted)) {
            let deciding = &found.discovery.deciding;
            for warning in candidate.warnings_of(granted, host_environment, deciding) {
                if !request.warnings.contains(&warning) {
                    request.warnings.push(warning);
                }
            }
        }
        asked.push(PendingApproval { request, approval, former, wanted });
    }
    for id in &args.plugins {
        let is_known = found.discovery.candidates.iter().any(|candidate| candidate.id() == *id);
        if !is_known {
            return Err(found.unknown(id));
        }
    }
    if !args.yes && !is_terminal() && !asked.is_empty() {
        for PendingApproval { request, approval, former, .. } in
            asked.iter().filter(|_| !common.json)
        {
            output::write(shown(request, approval, former.as_ref()))?;
        }
        let plugins = asked.into_iter().map(|asked| asked.request.plugin).collect();
        return Err(Error::Unasked { plugins, command: command(common, &args) });
    }
    let mut rows = Vec::new();
    let mut all = true;
    for asked in asked {
        let row = approve(common, &file, asked, args.yes).await?;
        all &= row["approved"] == true;
        rows.push(row);
    }
    let names = &args.plugins;
    let accepted = pins::approve(common, &found, names, args.yes, &command(common, &args)).await?;
    all &= accepted.iter().all(|row| row["approved"] == true);
    rows.extend(accepted);
    match common.json {
        true => output::json(&rows)?,
        false if rows.is_empty() => output::line("there is nothing to approve")?,
        false => {}
    }
    if args.all && !common.json {
        let noted = blocking(common, (), |common, ()| note_waiting_calls(common)).await;
        // What was approved is approved.
        if let Err(error) = noted {
            tracing::warn!("whether calls wait cannot be looked up: {error}");
        }
    }
    Ok(if all { Exit::Success } else { Exit::Refused }.into())
}

/// Whether there is a plugin of this id.
fn is_plugin(common: &Common, id: &str) -> bool {
    let candidates = open::candidates(common).unwrap_or_default();
    candidates.iter().any(|candidate| candidate.id() == id)
}

/// Whether a call is meant: the ids of plugins have small letters.
fn is_call(named: &str) -> bool {
    named.starts_with("A-")
}

/// Approves calls that wait, if the user says so.
fn approve_calls(common: &Common, args: &Args) -> Result<ExitCode, Error> {
    if let Some(plugin) = args.plugins.iter().find(|named| !is_call(named)) {
        let problem = format!("\"{plugin}\" is no call that waits; approve plugins by themselves");
        return Err(Error::Input(problem));
    }
    if args.all_requested || !args.grant.is_empty() {
        let problem = "`--grant` and `--all-requested` are for plugins";
        return Err(Error::Input(problem.into()));
    }
    let scope = args.call.scope()?;
    let (approvals, now) = (call_approval::approvals(common)?, store::now());
    let waiting = approvals.list(now)?;
    // All are looked up before one is approved.
    let mut calls: Vec<&PendingCall> = Vec::new();
    for id in &args.plugins {
        let call = waiting.iter().find(|call| call.id == *id);
        let call = call.ok_or_else(|| CallApprovalError::NotFound(id.clone()))?;
        if calls.iter().all(|other| other.id != call.id) {
            calls.push(call);
        }
    }
    let candidates = open::candidates(common).unwrap_or_default();
    let mut rows = Vec::new();
    for call in calls {
        let id = &call.id;
        if !common.json {
            output::write(of_pending(call, now))?;
        }
        if is_of_other_code(call, &candidates) {
            output::note(&format!(
                "plugin \"{}\" is another one here than the one that {id} waits for: an approval is good for that one only, \
                 and what this one is called for has to be approved anew",
                call.plugin
            ));
        }
        let decided = decide(common, args, call, &scope)?;
        let (is_approved, standing, came_to) = match decided {
            ApproverDecision::Approved { scope, holds } => {
                let holds = holds.or(args.call.expires);
                (true, approvals.approve(id, scope, holds, now)?, "approved")
            }
            ApproverDecision::Denied { reason } => {
                approvals.deny(id, reason, now)?;
                (false, None, "denied")
            }
            ApproverDecision::Undecided => (false, None, "not decided"),
        };
        if !common.json {
            match &standing {
                // It is taken back by another id than the call had.
                Some(standing) => {
                    output::line(format!("{id} is approved, as"))?;
                    output::line(format!("  {}", of_standing(standing)))?;
                }
                None => output::line(format!("{id} is {came_to}"))?,
            }
        }
        if is_approved && !common.json {
            note_waiting_run(common, call)?;
        }
        let standing = standing.as_ref().map(json_of_standing);
        rows.push(json!({
            "id": id,
            "tool": call.tool,
            "run": call.call.run,
            "approved": is_approved,
            "standing": standing,
        }));
    }
    if common.json {
        output::json(&rows)?;
    }
    let all = rows.iter().all(|row| row["approved"] == true);
    Ok(if all { Exit::Success } else { Exit::Refused }.into())
}

/// Whether a call has waited for other code than the plugin has here. Of one that is not here nobody can tell.
fn is_of_other_code(call: &PendingCall, candidates: &[Candidate]) -> bool {
    let here = candidates.iter().find(|candidate| candidate.id() == call.plugin);
    here.zip(call.code.as_ref()).is_some_and(|(here, code)| !here.fingerprint().is_code_of(code))
}

/// Says how a run goes on that has waited for the approval of a call.
fn note_waiting_run(common: &Common, call: &PendingCall) -> Result<(), Error> {
    let Some(id) = &call.call.run else { return Ok(()) };
    let runs = Runs::new(StorePlace::find(common)?.open()?);
    if let Some(run) = runs.get(id, store::now())?
        && matches!(&run.state, RunState::Paused { approval, .. } if *approval == call.id)
    {
        output::note(&resume_hint(common, &run));
    }
    Ok(())
}

/// Says that calls wait, where there are any.
fn note_waiting_calls(common: &Common) -> Result<(), Error> {
    // To look makes no store.
    if !StorePlace::find(common)?.is_there() {
        return Ok(());
    }
    let waiting = call_approval::approvals(common)?.list(store::now())?;
    match waiting.iter().filter(|call| call.is_undecided()).count() {
        0 => {}
        1 => output::note("one call waits, which is approved by its id: `tenon pending` shows it"),
        calls => output::note(&format!(
            "{calls} calls wait, which are approved by their ids: `tenon pending` shows them"
        )),
    }
    Ok(())
}

/// What the user decides of a call that is shown.
fn decide(
    common: &Common,
    args: &Args,
    call: &PendingCall,
    scope: &ApprovalScope,
) -> Result<ApproverDecision, Error> {
    let as_said = || ApproverDecision::Approved { scope: scope.clone(), holds: args.call.expires };
    if args.yes {
        return Ok(as_said());
    }
    if !is_terminal() {
        let (plugins, command) = (vec![call.id.clone()], command(common, args));
        return Err(Error::Unasked { plugins, command });
    }
    if !args.call.is_said() {
        let asked = call_approval::ask(call.call.session.is_some(), call.call.run.is_some());
        return Ok(asked.unwrap_or(ApproverDecision::Undecided));
    }
    Ok(match answer("approve it so? [y]es, [n]o: ").as_deref() {
        Some("y" | "yes") => as_said(),
        _ => ApproverDecision::Undecided,
    })
}

/// Approves the plugin with a manifest that was installed, if it needs that and the user says so,
/// and gives what came of it. Where nobody is there to be asked it says how to approve it.
pub(crate) async fn installed(
    common: &Common,
    found: &FoundPlugins,
    id: &str,
    manifest: &Path,
    yes: bool,
) -> Result<Option<Value>, Error> {
    // Another of its id may go before it, and is not what the user means.
    let is_it =
        |candidate: &&Candidate| candidate.id() == id && same(candidate.named_in(), manifest);
    let candidate = found.discovery.candidates.iter().find(is_it);
    let Some(request) = candidate.and_then(Candidate::approval_request) else { return Ok(None) };
    let file = found.kept_approvals()?;
    let approval = file.verdict(&request)?;
    if matches!(approval, GrantDecision::Granted(_)) {
        return Ok(None);
    }
    let former = file.former(&request)?;
    if yes || is_terminal() {
        let asked = PendingApproval { request, approval, former, wanted: None };
        return approve(common, &file, asked, yes).await.map(Some);
    }
    let command = format!("{} {id}", hint::command(common, "approve"));
    if !common.json {
        output::write(shown(&request, &approval, former.as_ref()))?;
        output::line(format!(
            "it is not approved yet: `{command}` asks, and with `--yes` does not"
        ))?;
    }
    Ok(Some(json!({
        "plugin": id,
        "approved": false,
        "requested": request.capabilities,
        "warnings": request.warnings,
        "command": command,
    })))
}

/// Checks that what is to be granted is something that the plugin requests.
fn check_names(request: &ApprovalRequest, grants: &[(String, String)]) -> Result<(), Error> {
    let mut names = grants.iter().map(|(name, _)| name);
    let Some(name) = names.find(|name| !request.capabilities.contains_key(*name)) else {
        return Ok(());
    };
    let requested = request.capabilities.keys().map(String::as_str);
    let meant = match nearest(name, requested) {
        Some(meant) => format!("; did you mean `{meant}`?"),
        None => String::new(),
    };
    let plugin = &request.plugin;
    Err(Error::Input(format!("plugin \"{plugin}\" does not request `{name}`{meant}")))
}

/// The command that does the same without asking.
fn command(common: &Common, args: &Args) -> String {
    let mut command = hint::command(common, "approve");
    if args.all {
        command.push_str(" --all");
    }
    args.plugins.iter().for_each(|plugin| command.push_str(&quoted(plugin)));
    command.push_str(" --yes");
    if args.all_requested {
        command.push_str(" --all-requested");
    }
    if let Some(scope) = args.call.scope {
        command.push_str(&format!(" --for {scope:?}").to_lowercase());
    }
    args.call.same.iter().for_each(|name| command.push_str(&format!(" --same{}", quoted(name))));
    if args.call.any_arguments {
        command.push_str(" --any-arguments");
    }
    if let Some(expires) = args.call.expires {
        let expires = humantime::format_duration(expires).to_string().replace(' ', "");
        command.push_str(&format!(" --expires {expires}"));
    }
    for (capability, value) in &args.grant {
        command.push_str(&format!(" --grant{}", quoted(&format!("{capability}={value}"))));
    }
    command
}

/// Approves one plugin, if the user says so, and gives what came of it.
async fn approve(
    common: &Common,
    file: &ApprovalFile,
    asked: PendingApproval,
    yes: bool,
) -> Result<Value, Error> {
    let PendingApproval { request, approval, former, wanted } = asked;
    let granted = match yes {
        true => {
            if !common.json {
                output::write(shown(&request, &approval, former.as_ref()))?;
            }
            let narrowed =
                former.filter(FormerApproval::is_narrowed).map(|former| former.kept(&request));
            Some(wanted.or(narrowed).unwrap_or_else(|| request.capabilities.clone()))
        }
        // What the user wants is what is asked about.
        false => match wanted {
            Some(wanted) => {
                let mut narrower = request.clone();
                narrower.capabilities = wanted;
                ask(narrower, approval, None).await
            }
            None => ask(request.clone(), approval, former).await,
        },
    };
    if let Some(granted) = &granted {
        file.grant(&request, granted.clone())?;
    }
    if !common.json {
        match &granted {
            Some(granted) => output::write(approved(&request, granted))?,
            None => output::line(format!("plugin \"{}\" is not approved", request.plugin))?,
        }
    }
    Ok(json!({
        "plugin": request.plugin,
        "approved": granted.is_some(),
        "command": request.command.as_ref().map(command_form),
        "requested": request.capabilities,
        "warnings": request.warnings,
        "notGranted": granted.as_ref().map(|granted| left_out(&request, granted)),
        "granted": granted,
    }))
}
