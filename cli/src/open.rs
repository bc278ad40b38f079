//! From the command line to a platform, and back.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;
use tenon_host::admit::{Approvals, Contents, Refusal, Rules, admit};
use tenon_host::config::OnFailure;
use tenon_host::discover::{Candidate, Discovery, LeftOut, Sources, discover};
use tenon_host::name::nearest;
use tenon_host::services::{ApprovalFile, Approver, GrantAll};
use tenon_host::{
    Caller, Config, Diagnostic, Platform, PluginKind, PluginReport, PluginState, Surroundings,
};

use crate::Common;
use crate::approval::{Asking, is_terminal};
use crate::error::Error;
use crate::interrupt::Interrupts;

/// The configuration files that there are: the one that was named, or else the project's and the
/// user's.
pub(crate) fn configs(common: &Common, surroundings: &Surroundings) -> Result<Vec<Config>, Error> {
    let locked = |mut config: Config| {
        config.policy.locked |= common.locked;
        config
    };
    if let Some(path) = &common.config {
        return Ok(vec![locked(Config::read(path)?)]);
    }
    if !common.project.is_dir() {
        let problem = format!("--project {} is not a folder", common.project.display());
        return Err(Error::Input(problem));
    }
    let mut configs = vec![locked(Config::read_optional(common.project.join("tenon.toml"))?)];
    if let Some(folder) = &surroundings.configuration {
        configs.push(Config::read_optional(folder.join("config.toml"))?.of_user());
    }
    Ok(configs)
}

/// What the configuration names. Nothing of it is loaded.
pub(crate) struct Found {
    pub(crate) discovery: Discovery,
    pub(crate) sources: Sources,
    /// Every server is started, also one whose tools are known.
    starts_servers: bool,
}

pub(crate) fn found(common: &Common) -> Result<Found, Error> {
    let surroundings = Surroundings::of_process();
    let configs = configs(common, &surroundings)?;
    let workspace = common.config.is_none().then(|| common.project.clone());
    let sources = Sources { configs, workspace, bundled: Vec::new(), surroundings }.settled();
    let discovery = discover(&sources);
    for left_out in &discovery.left_out {
        let LeftOut { id, reason, named_in, .. } = left_out;
        tracing::info!("plugin \"{id}\" of {} is left out: {reason}", named_in.display());
    }
    Ok(Found { discovery, sources, starts_servers: false })
}

impl Found {
    /// The same, starting every server.
    pub(crate) fn starting_servers(self) -> Self {
        Self { starts_servers: true, ..self }
    }

    /// The user's approvals; nothing where there is no place for them.
    pub(crate) fn approvals(&self) -> Option<ApprovalFile> {
        let folder = self.sources.surroundings.state.as_ref()?;
        Some(ApprovalFile::new(folder.join("approvals.json")))
    }

    /// The same, for what cannot do without.
    pub(crate) fn kept_approvals(&self) -> Result<ApprovalFile, Error> {
        let problem = "there is no home folder to keep approvals in";
        self.approvals().ok_or_else(|| Error::Host(problem.into()))
    }

    /// Says why there is no plugin of an id that somebody named: because what may be it is broken
    /// or was left out, or because there is none.
    pub(crate) fn unknown(&self, id: &str) -> Error {
        let Discovery { candidates, left_out, diagnostics, .. } = &self.discovery;
        // One whose id cannot be read may be in a folder of that name.
        let is_of = |diagnostic: &&Diagnostic| match (&diagnostic.plugin, &diagnostic.file) {
            (Some(plugin), _) => plugin == id,
            (None, Some(file)) => {
                let folder = Path::new(file).parent().and_then(Path::file_name);
                folder.is_some_and(|folder| folder == id)
            }
            (None, None) => false,
        };
        if let Some(diagnostic) = diagnostics.iter().find(is_of) {
            return Error::Input(diagnostic.to_string());
        }
        if let Some(LeftOut { reason, .. }) = left_out.iter().find(|left_out| left_out.id == id) {
            return Error::Input(format!("plugin \"{id}\" is left out: {reason}"));
        }
        let meant = match nearest(id, candidates.iter().map(Candidate::id)) {
            Some(meant) => format!("; did you mean \"{meant}\"?"),
            None => String::new(),
        };
        Error::Input(format!("there is no plugin \"{id}\"{meant}"))
    }

    /// Why one of some plugins is not there that could not be read or understood.
    fn broken(&self, is_one: impl Fn(&str) -> bool) -> Option<Error> {
        self.discovery.diagnostics.iter().find_map(|diagnostic| {
            let plugin = diagnostic.plugin.clone().filter(|plugin| is_one(plugin))?;
            let detail = Diagnostic { plugin: None, ..diagnostic.clone() }.to_string();
            let remedy = diagnostic.remedy.clone();
            Some(Error::NotThere { plugin, detail, remedy, refused: false, failure: None })
        })
    }

    /// A platform with the plugins that are wanted. The others are not started. Nobody is asked to
    /// approve any.
    pub(crate) async fn build(
        self,
        wanted: impl Fn(&Candidate) -> bool,
    ) -> Result<Platform, Error> {
        match self.approvals() {
            Some(approvals) => self.build_with(wanted, approvals).await,
            None => self.build_with(wanted, Asking::nobody()).await,
        }
    }

    async fn build_with(
        mut self,
        wanted: impl Fn(&Candidate) -> bool,
        approver: impl Approver,
    ) -> Result<Platform, Error> {
        self.discovery.candidates.retain(wanted);
        let state = self.sources.surroundings.state.clone();
        let pins = self.pins();
        let builder = Platform::builder().sources(self.sources).approver(approver);
        let builder = match pins {
            Some(pins) => builder.pins(pins),
            None => builder,
        };
        let builder = match state {
            Some(folder) => builder.state(folder),
            None => builder,
        };
        let builder = if self.starts_servers { builder.start_servers() } else { builder };
        // What is there by then is not dropped: it is to end as it should.
        let mut interrupts = Interrupts::listen();
        let builder = builder.until(async move { interrupts.next().await });
        Ok(builder.discovery(self.discovery).build().await?)
    }

    /// The same, for work that plugins with hooks may have a say in. One that is not there is
    /// reported; where a hook that fails is to stop what it guards, so does one that is missing.
    pub(crate) async fn platform(
        self,
        wanted: impl Fn(&Candidate) -> bool,
    ) -> Result<Platform, Error> {
        self.platform_of(wanted, &[]).await
    }

    /// The same for work with some plugins, of which it is said otherwise where they are not there.
    async fn platform_of(
        self,
        wanted: impl Fn(&Candidate) -> bool,
        ids: &[&str],
    ) -> Result<Platform, Error> {
        let hooks = self.sources.configs.first().map(|config| config.hooks.on_failure);
        // What could not be read or understood may be a guard.
        let unknown = self.discovery.diagnostics.first().filter(|_| hooks == Some(OnFailure::Stop));
        if let Some(diagnostic) = unknown {
            let remedy = diagnostic.remedy.clone();
            return Err(Error::Unguarded { problem: diagnostic.to_string(), remedy });
        }
        let Discovery { diagnostics, warnings, .. } = &self.discovery;
        for diagnostic in diagnostics.iter().chain(warnings) {
            tracing::warn!("{diagnostic}");
        }
        let approver = Asking::on_terminal(self.approvals());
        let platform = self.build_with(wanted, approver).await?;
        for report in platform.plugins().iter().filter(|report| report.state.is_failure()) {
            if hooks == Some(OnFailure::Stop) && report.kind != PluginKind::Mcp {
                let error = not_there(report);
                platform.shutdown().await;
                return Err(error);
            }
            let detail = in_a_line(report.detail.as_deref().unwrap_or_default());
            match &report.remedy {
                _ if ids.contains(&report.plugin.as_str()) => {}
                Some(remedy) if report.awaits_approval => tracing::warn!(
                    "plugin \"{}\" is not there, and if it has hooks they are not run: {detail}; \
                     {remedy}",
                    report.plugin
                ),
                _ => tracing::warn!("plugin \"{}\" is not there: {detail}", report.plugin),
            }
        }
        Ok(platform)
    }

    /// A platform with the plugin of an id, and with all where there is none of it, or where it may
    /// turn to others.
    pub(crate) async fn platform_with(self, id: &str) -> Result<Platform, Error> {
        let is_it = |candidate: &Candidate| candidate.id() == id;
        let known = self.discovery.candidates.iter().find(|candidate| is_it(candidate));
        if known.is_none()
            && let Some(error) = self.broken(|plugin| plugin == id)
        {
            return Err(error);
        }
        let alone = known.is_some_and(|candidate| !turns_to_others(candidate));
        let ids = known.map(|_| id);
        // What it has is asked of it now, not taken from the last time.
        let found = self.starting_servers();
        let wanted = |candidate: &Candidate| !alone || is_it(candidate);
        having(found.platform_of(wanted, ids.as_slice()).await?, ids.as_slice()).await
    }

    /// Whether any of some plugins will be there, as far as can be told before they are asked about.
    async fn lets_in_any(&self, candidates: Vec<Candidate>) -> bool {
        if candidates.is_empty() || is_terminal() {
            return !candidates.is_empty();
        }
        let Some(approvals) = self.approvals() else { return false };
        let rules = Rules::new(&self.sources.configs).contents(Contents::read(&candidates));
        let said = Approvals::ask(&candidates, &rules, &approvals).await;
        let rules = rules.approve(said);
        candidates.into_iter().any(|candidate| admit(candidate, &rules).is_ok())
    }

    /// A platform with the plugins that may have a tool of this name, and with those that may have
    /// hooks for its call.
    pub(crate) async fn platform_for_tool(self, name: &str) -> Result<Platform, Error> {
        let style = self.sources.configs.first().map(|config| config.names.style);
        let style = style.unwrap_or_default();
        let owner = |candidate: &&Candidate| {
            name.starts_with(&style.prefix(candidate.id(), candidate.namespace()))
        };
        let owners = self.discovery.candidates.iter().filter(owner);
        let owners: Vec<String> = owners.map(|owner| owner.id().to_string()).collect();
        if owners.is_empty()
            && let Some(error) = self.broken(|id| name.starts_with(&style.prefix(id, id)))
        {
            return Err(error);
        }
        let is_owner = |id: &str| owners.iter().any(|owner| owner == id);
        let is_wanted = |candidate: &Candidate| {
            owners.is_empty() || is_owner(candidate.id()) || candidate.kind() != PluginKind::Mcp
        };
        // One that has a part in the call may call tools of servers.
        let parts = self.discovery.candidates.iter().filter(|candidate| is_wanted(candidate));
        let turning = parts.filter(|candidate| turns_to_others(candidate));
        let all = self.lets_in_any(turning.cloned().collect()).await;
        let wanted = |candidate: &Candidate| all || is_wanted(candidate);
        // What the tool is, its server is asked now.
        let found = if owners.is_empty() || all { self } else { self.starting_servers() };
        let owners: Vec<&str> = owners.iter().map(String::as_str).collect();
        let platform = found.platform_of(wanted, &owners).await?;
        if platform.registry().tool(name).is_some() {
            return Ok(platform);
        }
        having(platform, &owners).await
    }
}

/// Words of several lines, as the log has them.
fn in_a_line(words: &str) -> String {
    words.replace('\n', " | ")
}

/// A platform that has the plugins that something is asked of, or why one is not there.
async fn having(platform: Platform, ids: &[&str]) -> Result<Platform, Error> {
    match require(&platform, ids) {
        Ok(()) => Ok(platform),
        Err(error) => {
            platform.shutdown().await;
            Err(error)
        }
    }
}

/// What every host has against a plugin, whatever it is granted.
pub(crate) async fn refusal(candidate: &Candidate) -> Option<Refusal> {
    let rules = Rules::default();
    let approvals = Approvals::ask(std::slice::from_ref(candidate), &rules, &GrantAll).await;
    admit(candidate.clone(), &rules.approve(approvals)).err()
}

/// Whether a plugin may call others' tools, or ask their models.
fn turns_to_others(candidate: &Candidate) -> bool {
    let requested = candidate.requested();
    ["tools", "providers"].iter().any(|name| requested.contains_key(*name))
}

/// On whose behalf a command calls: nobody's, in the trace that it was started in.
pub(crate) fn caller(timeout: Option<Duration>) -> Caller {
    Caller { timeout, traceparent: std::env::var("TRACEPARENT").ok(), ..Caller::default() }
}

/// Says why a plugin that something is asked of is not there.
fn require(platform: &Platform, ids: &[&str]) -> Result<(), Error> {
    let reports = platform.plugins();
    let is_ready = |id: &str| {
        reports.iter().any(|report| report.plugin == id && report.state == PluginState::Ready)
    };
    let missing = reports
        .iter()
        .find(|report| ids.contains(&report.plugin.as_str()) && !is_ready(&report.plugin));
    missing.map_or(Ok(()), |report| Err(not_there(report)))
}

/// Says why no plugin serves a model, where one may that nobody has approved.
pub(crate) fn unserved(platform: &Platform, model: &str) -> Option<Error> {
    let reports = platform.plugins();
    if let Some((id, _)) = model.split_once('/')
        && let Some(report) = reports.iter().find(|report| report.plugin == id)
    {
        return (report.state != PluginState::Ready).then(|| not_there(report));
    }
    let plugins: Vec<String> = { reports.iter() }
        .filter(|report| report.awaits_approval)
        .map(|report| report.plugin.clone())
        .collect();
    (!plugins.is_empty()).then(|| Error::Unserved { model: model.into(), plugins })
}

fn not_there(report: &PluginReport) -> Error {
    Error::NotThere {
        plugin: report.plugin.clone(),
        detail: report.detail.clone().unwrap_or_default(),
        remedy: report.remedy.clone(),
        refused: matches!(report.state, PluginState::Refused | PluginState::Denied),
        failure: report.failure.clone(),
    }
}

/// Does something with a platform, and ends the platform. What came of it is said before, as ending
/// may take its time. Interrupted, the work is dropped, and what it waited for is cancelled; the
/// platform is ended all the same, so that plugins can say good-bye. Who interrupts that does not want
/// to wait.
pub(crate) async fn with(
    common: &Common,
    building: impl Future<Output = Result<Platform, Error>>,
    work: impl AsyncFnOnce(&Platform) -> Result<ExitCode, Error>,
) -> Result<ExitCode, Error> {
    with_until(common, building, Err(Error::Interrupted), work).await
}

/// The same, saying what comes of work that is interrupted.
pub(crate) async fn with_until(
    common: &Common,
    building: impl Future<Output = Result<Platform, Error>>,
    interrupted: Result<ExitCode, Error>,
    work: impl AsyncFnOnce(&Platform) -> Result<ExitCode, Error>,
) -> Result<ExitCode, Error> {
    let mut interrupts = Interrupts::listen();
    let mut building = pin!(building);
    let (built, early) = tokio::select! {
        built = &mut building => (built, false),
        () = interrupts.next() => {
            // It does not wait for plugins any more.
            let built = tokio::select! {
                built = building => built,
                () = interrupts.next() => return Err(Error::Interrupted),
            };
            (built.map_err(|_| Error::Interrupted), true)
        }
    };
    let platform = built?;
    let result = match early {
        true => interrupted,
        false => tokio::select! {
            () = interrupts.next() => interrupted,
            result = work(&platform) => result,
        },
    };
    let code = result.unwrap_or_else(|error| error.report(common.json));
    let mut ending = pin!(platform.shutdown());
    tokio::select! {
        () = interrupts.next() => return Ok(code),
        () = &mut ending => return Ok(code),
        () = tokio::time::sleep(PATIENCE) => {}
    }
    if io::stderr().is_terminal() {
        // Where standard error is closed there is nobody to tell.
        let _ = writeln!(io::stderr(), "waiting for plugins to end; Ctrl-C does not wait");
    }
    tokio::select! {
        () = interrupts.next() => {}
        () = ending => {}
    }
    Ok(code)
}

/// How long plugins may take to end before somebody who watches is told what is waited for.
const PATIENCE: Duration = Duration::from_secs(1);
