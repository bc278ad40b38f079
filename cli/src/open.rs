//! From the command line to a platform, and back.

mod call_precheck;
pub(crate) mod trust;

use std::collections::BTreeSet;
use std::env::consts::EXE_SUFFIX;
use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;
use tenon_config::admit::{Admitted, ContentDigests, Refusal, Rules, admit};
use tenon_config::approvals::ApprovalFile;
use tenon_config::config::OnFailure;
use tenon_config::discover::trust::TrustBasis;
use tenon_config::discover::{Candidate, Discovery, SkippedEntry, Sources, discover_trusted};
use tenon_host::services::{Approver, ClientFeatures, GrantAll, Offers, ask_approver};
use tenon_host::types::McpOperation;
use tenon_host::types::name::nearest;
use tenon_host::{
    AccessRecorder, Allocation, CallError, Caller, Config, Diagnostic, HostEnvironment, Platform,
    PluginKind, PluginReport, PluginState,
};
use tenon_serve::{AllClientFeatures, Profile};
use tokio::sync::oneshot;

use crate::Common;
use crate::approval::{TerminalApprover, is_terminal};
use crate::call_approval::TerminalCallApprover;
use crate::client::Client;
use crate::error::{Error, Exit};
use crate::hint::quoted;
use crate::interrupt::Interrupts;
use crate::keychain::secret_store;
use crate::login::{LoginStore, LoginTokenCache};
use crate::output;
use crate::progress::{self, ServerStartProgress};
use crate::source_snapshot::SourceSnapshot;
use crate::store;
use crate::templates::Language;
use crate::tool_arguments::RawArguments;

/// Where a command looks for plugins: in what was named, or else in the project and in what is the
/// user's. Nothing is read yet.
pub(crate) fn sources(common: &Common) -> Result<Sources, Error> {
    let host_environment = HostEnvironment::of_process();
    let locked = |config: Config| if common.locked { config.locked() } else { config };
    if let Some(path) = &common.config {
        let configs = vec![locked(Config::of_file(path))];
        return Ok(Sources { configs, host_environment, ..Sources::default() });
    }
    if !common.project.is_dir() {
        let problem = format!("--project {} is not a folder", common.project.display());
        return Err(Error::Input(problem));
    }
    let project = project_folder(&common.project);
    let mut configs = vec![locked(Config::of_optional_file(project.join("tenon.toml")))];
    if let Some(folder) = &host_environment.configuration {
        let user = Config::of_optional_file(folder.join("config.toml")).of_user();
        configs.push(locked(user));
    }
    let workspace = Some(project);
    let trust = trust::of(common, &host_environment);
    Ok(Sources { configs, workspace, trust, host_environment, ..Sources::default() })
}

/// The project's folder by the one name that it has however somebody has named it: what its servers are started
/// with is compared with what its user trusted.
fn project_folder(named: &Path) -> PathBuf {
    match (std::path::absolute(named), named.canonicalize()) {
        (Ok(absolute), Ok(real)) if absolute != real => real,
        _ => named.to_path_buf(),
    }
}

/// What the configuration names. Nothing of it is loaded.
pub(crate) struct FoundPlugins {
    pub(crate) discovery: Discovery,
    pub(crate) sources: Sources,
    /// Every server is started, also one whose tools are known.
    starts_servers: bool,
    /// What plugins and servers get of their host.
    client: Client,
    /// There is somebody to see how far the start of servers has come.
    shows_progress: bool,
    /// MCP clients use the platform, and standard input may be theirs: nobody is asked on the terminal.
    is_served: bool,
    /// The folder of the plugins that the user of this command writes, if it is for them.
    authored: Option<PathBuf>,
    /// What records a server, by its id.
    recorder: Option<(String, AccessRecorder)>,
}

/// Checks that the configurations can be read.
pub(crate) fn check_configs(common: &Common) -> Result<(), Error> {
    configs(common).map(drop)
}

/// The configurations, as they are read.
pub(crate) fn configs(common: &Common) -> Result<Vec<Config>, Error> {
    let mut sources = sources(common)?;
    let (_, errors) = discover_trusted(&mut sources);
    match errors.into_iter().next() {
        Some(error) => Err(error.into()),
        None => Ok(sources.configs),
    }
}

/// Whether the user's configuration has a profile of this name, as the command that serves finds it. Where no configuration
/// can be read, nobody can say that it has not.
pub(crate) fn has_profile(common: &Common, name: &str) -> bool {
    let Ok(configs) = configs(common) else { return true };
    name == Profile::default().name
        || configs.first().is_some_and(|config| config.profiles.contains_key(name))
}

pub(crate) fn found(common: &Common) -> Result<FoundPlugins, Error> {
    found_in(common, sources(common)?)
}

/// The same to be served to MCP clients, over HTTP at this address: each of them answers what is asked in its calls.
pub(crate) fn served(common: &Common, address: Option<SocketAddr>) -> Result<FoundPlugins, Error> {
    let mut sources = Sources { served_at: address, ..sources(common)? };
    sources.note_served().map_err(|own| {
        Error::Input(format!(
            "{} is served already by the `tenon serve` that started this one; leave it out of its own servers",
            own.display()
        ))
    })?;
    Ok(FoundPlugins { is_served: true, ..found_in(common, sources)? })
}

fn found_in(common: &Common, mut sources: Sources) -> Result<FoundPlugins, Error> {
    let (discovery, errors) = discover_trusted(&mut sources);
    if let Some(error) = errors.into_iter().next() {
        return Err(error.into());
    }
    if let Some(untrusted) = &discovery.untrusted {
        tracing::warn!("{untrusted}; {}", untrusted.remedy());
    }
    for left_out in &discovery.left_out {
        let SkippedEntry { id, reason, named_in, .. } = left_out;
        tracing::info!("plugin \"{id}\" of {} is left out: {reason}", named_in.display());
    }
    let settings = sources.configs.first().map(|config| config.client.clone());
    let client = Client::new(common, settings.unwrap_or_default())?;
    let shows_progress = progress::is_seen(common);
    let (starts_servers, is_served, authored, recorder) = (false, false, None, None);
    Ok(FoundPlugins {
        discovery,
        sources,
        starts_servers,
        client,
        shows_progress,
        is_served,
        authored,
        recorder,
    })
}

/// The plugins that there are, with nothing said about what is wrong. Nothing of them is loaded.
pub(crate) fn candidates(common: &Common) -> Result<Vec<Candidate>, Error> {
    Ok(discover_trusted(&mut sources(common)?).0.candidates)
}

/// What there is where the project is looked at, trusted or not. Nothing of it is to be loaded.
pub(crate) fn reviewed(common: &Common) -> Result<Discovery, Error> {
    let mut sources = Sources { trust: TrustBasis::Review, ..sources(common)? };
    Ok(discover_trusted(&mut sources).0)
}

impl FoundPlugins {
    /// The same, starting every server.
    pub(crate) fn starting_servers(self) -> Self {
        Self { starts_servers: true, ..self }
    }

    /// The same, recording a server.
    pub(crate) fn recording(self, server: String, recorder: AccessRecorder) -> Self {
        Self { recorder: Some((server, recorder)), ..self }
    }

    /// The same for who writes the plugins of a folder: these get what they request.
    pub(crate) fn authored_in(self, folder: PathBuf) -> Self {
        Self { authored: Some(folder), ..self }
    }

    /// What asks for approvals.
    fn approver(&self) -> TerminalApprover {
        let approver = match self.is_served {
            true => TerminalApprover::unattended(self.approvals()),
            false => TerminalApprover::on_terminal(self.approvals()),
        };
        approver.for_author(self.authored.clone())
    }

    /// What plugins and servers get of their host.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// What servers may ask for.
    pub(crate) fn offers(&self) -> Offers {
        self.client.offers()
    }

    /// The user's approvals; nothing where there is no place for them.
    pub(crate) fn approvals(&self) -> Option<ApprovalFile> {
        let folder = self.sources.host_environment.state.as_ref()?;
        Some(ApprovalFile::new(folder.join("approvals.json")))
    }

    /// The files with what the user has decided about plugins, and with logins to their servers.
    fn decision_files(&self) -> Vec<PathBuf> {
        let approvals = self.approvals().map(|file| file.path().to_path_buf());
        let trusted = trust::file(&self.sources.host_environment);
        let trusted = trusted.map(|file| file.path().to_path_buf());
        let logins = LoginStore::new(&self.sources.host_environment);
        let servers = self.discovery.candidates.iter().filter_map(Candidate::server_url);
        let logins = logins.iter().flat_map(|logins| {
            let servers = servers.clone();
            servers.flat_map(|server| logins.files(server.as_str()))
        });
        approvals.into_iter().chain(trusted).chain(logins).collect()
    }

    /// The same, for what cannot do without.
    pub(crate) fn kept_approvals(&self) -> Result<ApprovalFile, Error> {
        let problem = "no folder for approvals: HOME is not set";
        self.approvals().ok_or_else(|| Error::Host(problem.into()))
    }

    /// The plugin of an id that somebody named.
    pub(crate) fn candidate(&self, id: &str) -> Result<&Candidate, Error> {
        let found = self.discovery.candidates.iter().find(|candidate| candidate.id() == id);
        found.ok_or_else(|| self.unknown(id))
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
        if let Some(SkippedEntry { reason, .. }) =
            left_out.iter().find(|left_out| left_out.id == id)
        {
            return Error::Input(format!("plugin \"{id}\" is left out: {reason}"));
        }
        if let Some(untrusted) = &self.discovery.untrusted {
            return trust::unknown(&format!("plugin \"{id}\""), untrusted);
        }
        let nearest = nearest(id, candidates.iter().map(Candidate::id)).map(str::to_string);
        Error::NoPlugin { id: id.to_string(), nearest }
    }

    /// Why one of some plugins is not there that could not be read or understood.
    pub(crate) fn broken(&self, is_one: impl Fn(&str) -> bool) -> Option<Error> {
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
            Some(approvals) => self.build_with(wanted, &[], approvals).await,
            None => self.build_with(wanted, &[], TerminalApprover::nobody()).await,
        }
    }

    async fn build_with(
        mut self,
        wanted: impl Fn(&Candidate) -> bool,
        ids: &[&str],
        approver: impl Approver,
    ) -> Result<Platform, Error> {
        self.discovery.candidates.retain(wanted);
        if self.authored.is_none() {
            self.discovery.candidates.iter().for_each(warn_of_newer_source);
        }
        let host_environment = self.sources.host_environment.clone();
        let state = host_environment.state.clone();
        let secrets = secret_store(host_environment.clone());
        let pins = self.pins();
        let decisions = self.decision_files();
        let store = self.sources.configs.first().map(|config| config.store.clone());
        // Where MCP clients are served, or a developer types, standard input is not for answers.
        let asks_on_terminal = !self.is_served && self.authored.is_none() && is_terminal();
        let client = self.client;
        let builder = Platform::builder().sources(self.sources).approver(approver);
        let builder = builder.backtraces(self.authored.is_some()).secrets(secrets);
        let builder = match LoginStore::new(&host_environment) {
            Some(logins) => builder.access_tokens(LoginTokenCache::new(logins)),
            None => builder,
        };
        let builder = match server_launcher() {
            Some(launcher) => builder.server_launcher(launcher),
            None => builder,
        };
        let builder = match self.recorder {
            Some((server, recorder)) => builder.record_server(server, recorder),
            None => builder,
        };
        let builder = match self.is_served {
            true => builder.client_features(AllClientFeatures),
            // A pool would not be used often enough to be worth its time.
            false => builder.client_features(client.clone()).allocation(Allocation::OnDemand),
        };
        let builder = match asks_on_terminal {
            true => builder.call_approver(TerminalCallApprover::new()),
            false => builder,
        };
        let builder = builder.messaging(client.clone());
        let builder = match pins {
            Some(pins) => builder.pins(pins),
            None => builder,
        };
        let builder = match state {
            Some(folder) => builder.state(folder),
            None => builder,
        };
        let address = store.map(|store| store::shared(&store, &host_environment)).transpose()?;
        let builder = match address.flatten() {
            Some(address) => builder.store_opened_by(move || address.open()),
            None => builder,
        };
        let builder = builder.decision_files(decisions);
        let builder = if self.starts_servers { builder.start_servers() } else { builder };
        // What is there by then is not dropped: it is to end as it should.
        let mut interrupts = Interrupts::listen();
        let builder = builder.until(async move { interrupts.next().await });
        let builder = builder.start_first(ids.iter().copied());
        let starts = self.shows_progress.then(ServerStartProgress::new);
        let builder = match &starts {
            Some(starts) => builder.on_start_progress(starts.observer()),
            None => builder,
        };
        let built = builder.discovery(self.discovery).build().await;
        // What follows is said in place of it.
        drop(starts);
        let platform = built?;
        client.ask_models_of(&platform);
        Ok(platform)
    }

    /// The same, for work that plugins with hooks may have a say in. One that is not there is
    /// reported; where a hook that fails is to stop what it guards, so does one that is missing.
    pub(crate) async fn platform(
        self,
        wanted: impl Fn(&Candidate) -> bool,
    ) -> Result<Platform, Error> {
        self.platform_of(wanted, &[]).await
    }

    /// A platform with all plugins, to look at what they contribute. That fires no hook, so no guard has to
    /// be there for it.
    pub(crate) async fn platform_to_list(self) -> Result<Platform, Error> {
        self.platform_guarded(|_| true, &[], None).await
    }

    /// The same for work with some plugins, of which it is said otherwise where they are not there.
    async fn platform_of(
        self,
        wanted: impl Fn(&Candidate) -> bool,
        ids: &[&str],
    ) -> Result<Platform, Error> {
        let on_failure = self.sources.configs.first().map(|config| config.hooks.on_failure);
        self.platform_guarded(wanted, ids, on_failure).await
    }

    /// The same, with what it means that a plugin which may be a guard is missing.
    async fn platform_guarded(
        self,
        wanted: impl Fn(&Candidate) -> bool,
        ids: &[&str],
        on_failure: Option<OnFailure>,
    ) -> Result<Platform, Error> {
        let stops = on_failure == Some(OnFailure::Stop);
        // What could not be read or understood may be a guard.
        let unknown = self.discovery.diagnostics.first().filter(|_| stops);
        if let Some(diagnostic) = unknown {
            let remedy = diagnostic.remedy.clone();
            return Err(Error::Unguarded { problem: diagnostic.to_string(), remedy });
        }
        // Whoever asks something of a plugin that is there need not hear of others, nor of what has no
        // consequences. What may be a guard is told of in any case: without it, the call goes unguarded.
        let is_for_all = ids.is_empty();
        let Discovery { diagnostics, warnings, .. } = &self.discovery;
        let is_told = |diagnostic: &&Diagnostic| {
            is_for_all || diagnostic.plugin.as_deref().is_some_and(|plugin| ids.contains(&plugin))
        };
        for diagnostic in diagnostics.iter().filter(|of| is_told(of) || !of.is_local) {
            tracing::warn!("{diagnostic}");
        }
        for warning in warnings.iter().filter(is_told) {
            match &warning.remedy {
                Some(remedy) => tracing::warn!("{warning}; {remedy}"),
                None => tracing::warn!("{warning}"),
            }
        }
        let approver = self.approver();
        if let Some(refused) = self.refused(ids, &approver).await? {
            return Err(refused);
        }
        let handlers = self.discovery.candidates.iter().filter(|plugin| plugin.may_handle_hooks());
        let handlers: BTreeSet<String> = handlers.map(|plugin| plugin.id().to_string()).collect();
        let may_guard = |report: &PluginReport| {
            report.kind != PluginKind::Mcp || handlers.contains(&*report.plugin)
        };
        let platform = self.build_with(wanted, ids, approver).await?;
        for warning in platform.registry().pin_warnings() {
            let is_of_one = |plugin: &String| ids.contains(&plugin.as_str());
            if is_for_all || warning.plugin.as_ref().is_some_and(is_of_one) {
                tracing::warn!("{warning}");
            }
        }
        for report in platform.plugins().iter().filter(|report| report.state.is_failure()) {
            if stops && may_guard(report) {
                let error = not_there(report);
                platform.shutdown().await;
                return Err(error);
            }
            let detail = in_a_line(report.detail.as_deref().unwrap_or_default());
            match &report.remedy {
                _ if ids.contains(&report.plugin.as_str()) => {}
                _ if !is_for_all && !may_guard(report) => {}
                Some(remedy) if report.awaits_approval => tracing::warn!(
                    "plugin \"{}\" is not loaded, and its hooks, if it has any, do not run: {detail}; \
                     {remedy}",
                    report.plugin
                ),
                _ => tracing::warn!("plugin \"{}\" is not loaded: {detail}", report.plugin),
            }
        }
        Ok(platform)
    }

    /// A platform with the plugin of an id, with those that may have hooks for what is asked of it, and
    /// with those that one of them may turn to. Where there is none of it, nothing is started.
    pub(crate) async fn platform_with(self, id: &str) -> Result<Platform, Error> {
        let is_it = |candidate: &Candidate| candidate.id() == id;
        if !self.discovery.candidates.iter().any(is_it) {
            return Err(self.broken(|plugin| plugin == id).unwrap_or_else(|| self.unknown(id)));
        }
        let is_wanted = |candidate: &Candidate| is_it(candidate) || candidate.may_handle_hooks();
        let turned_to = self.turned_to(is_wanted).await;
        // What it has is asked of it now, not taken from the last time.
        let found = self.starting_servers();
        let wanted =
            |candidate: &Candidate| is_wanted(candidate) || turned_to.contains(candidate.id());
        having(found.platform_of(wanted, &[id]).await?, &[id]).await
    }

    /// A platform with those that may have hooks, and with those that one of them may turn to.
    pub(crate) async fn platform_with_hooks(self) -> Result<Platform, Error> {
        let turned_to = self.turned_to(Candidate::may_handle_hooks).await;
        self.platform(|candidate| {
            candidate.may_handle_hooks() || turned_to.contains(candidate.id())
        })
        .await
    }

    /// The servers whose tools one of some plugins may call, by their ids.
    async fn turned_to(&self, is_one: impl Fn(&Candidate) -> bool) -> BTreeSet<String> {
        let found = self.discovery.candidates.iter();
        let turning: Vec<Candidate> = found
            .filter(|candidate| is_one(candidate) && calls_tools(candidate))
            .cloned()
            .collect();
        let requested = turning.iter().filter_map(|plugin| plugin.requested().remove(TOOLS));
        let patterns: Vec<String> = requested.flatten().collect();
        if !self.lets_in_any(turning).await {
            return BTreeSet::new();
        }
        let servers = self.discovery.candidates.iter();
        let servers = servers.filter(|candidate| candidate.kind() == PluginKind::Mcp);
        let is_meant = |server: &&Candidate| {
            let prefix = self.tool_prefix(server);
            patterns.iter().any(|pattern| may_name_tool_of(pattern, &prefix))
        };
        servers.filter(is_meant).map(|server| server.id().to_string()).collect()
    }

    /// A platform with the plugins of these ids and no other. Where one is unknown, nothing is started;
    /// where one is not there, there is no platform.
    pub(crate) async fn platform_with_only(self, ids: &[&str]) -> Result<Platform, Error> {
        if let Some(error) = ids.iter().find_map(|id| self.not_a_candidate(id)) {
            return Err(error);
        }
        let wanted = |candidate: &Candidate| ids.contains(&candidate.id());
        having(self.platform_of(wanted, ids).await?, ids).await
    }

    /// Why what goes by an id is no candidate: it is broken or was left out.
    fn not_a_candidate(&self, id: &str) -> Option<Error> {
        if self.discovery.candidates.iter().any(|candidate| candidate.id() == id) {
            return None;
        }
        Some(self.broken(|plugin| plugin == id).unwrap_or_else(|| self.unknown(id)))
    }

    /// The plugin that a name is about: the one with this id, or else the one whose tool has this name.
    pub(crate) fn owner_of(&self, name: &str) -> Option<&str> {
        let candidates = &self.discovery.candidates;
        let by_id = candidates.iter().find(|candidate| candidate.id() == name);
        let longest = |candidate: &&Candidate| self.tool_prefix(candidate).len();
        by_id.or_else(|| self.owners_of_tool(name).max_by_key(longest)).map(Candidate::id)
    }

    /// The plugins that a tool of this name may be of.
    fn owners_of_tool(&self, name: &str) -> impl Iterator<Item = &Candidate> {
        let candidates = self.discovery.candidates.iter();
        candidates.filter(move |candidate| name.starts_with(&self.tool_prefix(candidate)))
    }

    /// Whether any of some plugins will be there, as far as can be told before they are asked about.
    async fn lets_in_any(&self, candidates: Vec<Candidate>) -> bool {
        if candidates.is_empty() || is_terminal() {
            return !candidates.is_empty();
        }
        let Some(approvals) = self.approvals() else { return false };
        let rules = self.rules(&candidates, &approvals).await;
        candidates.into_iter().any(|candidate| admit(candidate, &rules).is_ok())
    }

    /// What some plugins are held against, with what was approved of them.
    async fn rules(&self, candidates: &[Candidate], approver: &dyn Approver) -> Rules {
        let rules = Rules::new(&self.sources.configs).contents(ContentDigests::read(candidates));
        let said = ask_approver(candidates, &rules, approver).await;
        rules.approve(said)
    }

    /// Which of the plugins that are wanted are let in, and why others are not. Whoever may approve them is asked;
    /// none is loaded.
    pub(crate) async fn admit(
        &self,
        wanted: impl Fn(&Candidate) -> bool,
    ) -> Vec<(String, Result<Candidate, Refusal>)> {
        let candidates = self.discovery.candidates.iter().filter(|candidate| wanted(candidate));
        let candidates: Vec<Candidate> = candidates.cloned().collect();
        let approver = self.approver();
        let rules = self.rules(&candidates, &approver).await;
        let admitted = candidates.into_iter().map(|candidate| {
            let id = candidate.id().to_string();
            (id, admit(candidate, &rules).map(Admitted::into_candidate))
        });
        admitted.collect()
    }

    /// Why none of the plugins that something is asked of is let in. Whoever may approve them is asked before any
    /// other plugin is started for them.
    async fn refused(
        &self,
        ids: &[&str],
        approver: &TerminalApprover,
    ) -> Result<Option<Error>, Error> {
        let asked = self.discovery.candidates.iter();
        let asked = asked.filter(|candidate| ids.contains(&candidate.id()));
        let asked: Vec<Candidate> = asked.cloned().collect();
        let mut interrupts = Interrupts::listen();
        let rules = tokio::select! {
            rules = self.rules(&asked, approver) => rules,
            () = interrupts.next() => return Err(Error::Interrupted),
        };
        let mut first = None;
        for candidate in asked {
            let plugin = candidate.id().to_string();
            match admit(candidate, &rules) {
                Ok(_) => return Ok(None),
                Err(refusal) => first = first.or(Some(refused(plugin, &refusal))),
            }
        }
        Ok(first)
    }

    /// What the names of a plugin's tools begin with. A long prefix is cut in names, and here.
    fn tool_prefix(&self, candidate: &Candidate) -> String {
        let style = self.sources.name_style(candidate);
        let mut prefix = style.prefix(candidate.id(), candidate.namespace());
        if prefix.is_char_boundary(MIN_PREFIX) {
            prefix.truncate(MIN_PREFIX);
        }
        prefix
    }

    /// What the names of tools begin with, by the ids of all plugins that were found, also of those that were left out.
    pub(crate) fn tool_prefixes(&self) -> Vec<(String, String)> {
        let Discovery { candidates, left_out, .. } = &self.discovery;
        let found = candidates.iter().map(|of| (of.id().to_string(), self.tool_prefix(of)));
        let styles = || self.sources.configs.iter().map(|config| config.names.style);
        let others = left_out.iter().flat_map(|SkippedEntry { id, .. }| {
            styles().map(|style| (id.clone(), style.prefix(id, id)))
        });
        found.chain(others).collect()
    }

    /// Whether a tool's name may be one of a plugin that could not be understood.
    fn names_plugin(&self, tool: &str, id: &str) -> bool {
        let styles = self.sources.configs.iter().map(|config| config.names.style);
        styles.into_iter().any(|style| tool.starts_with(&style.prefix(id, id)))
    }

    /// A platform with the plugins that may have a tool of this name, and with those that may have
    /// hooks for its call. What is known to fail for its name or arguments starts nothing.
    pub(crate) async fn platform_for_tool(
        self,
        name: &str,
        arguments: &RawArguments,
    ) -> Result<Platform, Error> {
        let asked = name;
        let of_one = call_precheck::of_one_plugin(&self, name, arguments);
        let (name, arguments) = match &of_one {
            Some((name, arguments)) => (name.as_str(), arguments),
            None => (name, arguments),
        };
        let owners: Vec<&Candidate> = self.owners_of_tool(name).collect();
        let refusal = call_precheck::refusal(&self, &owners, name, arguments);
        let owners: Vec<String> = owners.iter().map(|owner| owner.id().to_string()).collect();
        if owners.is_empty() && McpOperation::of_tool(name).is_some() {
            // It names no plugin that there is.
            return Err(match arguments.text(McpOperation::PLUGIN_ARGUMENT).as_deref() {
                Some(id) => self.unknown(id),
                None => Error::Call(CallError::without_plugin(name)),
            });
        }
        if owners.is_empty()
            && let Some(error) = self.broken(|id| self.names_plugin(name, id))
        {
            return Err(error);
        }
        if let (true, Some(untrusted)) = (owners.is_empty(), &self.discovery.untrusted) {
            let is_known = refusal.is_some();
            if is_known {
                return Err(trust::unknown(&format!("tool \"{name}\""), untrusted));
            }
        }
        if let Some(refusal) = refusal {
            return Err(match (refusal, &of_one) {
                // Not the tool is missing, but what it is for.
                (Error::Known { error, plugin }, Some(_))
                    if matches!(*error, CallError::NotFound { .. }) =>
                {
                    match CallError::nothing_for_shared_tool(asked, &plugin) {
                        Some(error) => Error::Known { error: error.into(), plugin },
                        None => Error::Call(CallError::without_plugin(asked)),
                    }
                }
                (refusal, _) => refusal,
            });
        }
        let is_owner = |id: &str| owners.iter().any(|owner| owner == id);
        let is_wanted =
            |candidate: &Candidate| is_owner(candidate.id()) || candidate.may_handle_hooks();
        // One that has a part in the call may call tools of servers.
        let turned_to = self.turned_to(is_wanted).await;
        let wanted =
            |candidate: &Candidate| is_wanted(candidate) || turned_to.contains(candidate.id());
        // What the tool is, its server is asked now.
        let is_alone = turned_to.is_empty() && !owners.is_empty();
        let found = if is_alone { self.starting_servers() } else { self };
        let owners: Vec<&str> = owners.iter().map(String::as_str).collect();
        let untrusted = found.discovery.untrusted.clone();
        let platform = found.platform_of(wanted, &owners).await?;
        if platform.registry().tool(name).is_some() {
            return Ok(platform);
        }
        let platform = having(platform, &owners).await?;
        match untrusted {
            Some(untrusted) => {
                platform.shutdown().await;
                Err(trust::unknown(&format!("tool \"{name}\""), &untrusted))
            }
            None => Ok(platform),
        }
    }
}

/// How much of a long prefix is in names at least.
const MIN_PREFIX: usize = 48;

/// Says that a component is older than its source, where that lies beside its manifest.
fn warn_of_newer_source(candidate: &Candidate) {
    let Some(component) = candidate.component().filter(|_| candidate.lock_entry.is_none()) else {
        return;
    };
    let Some(folder) = candidate.named_in().parent().filter(|_| candidate.has_manifest()) else {
        return;
    };
    if Language::of_component(folder).is_err() {
        return;
    }
    let tree = SourceSnapshot::read(folder);
    if let Some(newer) = tree.newer_than(component) {
        let newer = newer.strip_prefix(folder).unwrap_or(newer).display();
        let folder = quoted(&folder.to_string_lossy());
        tracing::warn!(
            "plugin \"{}\" is older than its source, {newer}; `tenon build{folder}` builds it",
            candidate.id()
        );
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
    let approvals = ask_approver(std::slice::from_ref(candidate), &rules, &GrantAll).await;
    admit(candidate.clone(), &rules.approve(approvals)).err()
}

/// Whether a plugin requests to call others' tools. Models are of plugins that are there in any case: no server
/// has any.
fn calls_tools(candidate: &Candidate) -> bool {
    candidate.requested().contains_key(TOOLS)
}

/// Whether a pattern of tools may fit one of a plugin whose tools have names with this prefix, or one that is there
/// for all plugins.
pub(crate) fn may_name_tool_of(pattern: &str, prefix: &str) -> bool {
    let shared = McpOperation::TOOLS.map(McpOperation::name);
    match pattern.split_once('*') {
        Some((head, _)) => {
            head.starts_with(prefix)
                || [prefix].iter().chain(&shared).any(|name| name.starts_with(head))
        }
        None => pattern.starts_with(prefix) || shared.contains(&pattern),
    }
}

/// The capability to call others' tools.
const TOOLS: &str = "tools";

/// On whose behalf a command calls: nobody's, in the trace that it was started in.
pub(crate) fn caller(timeout: Option<Duration>) -> Caller {
    Caller { timeout, traceparent: std::env::var("TRACEPARENT").ok(), ..Caller::default() }
}

/// Says why a plugin that something is asked of is not there.
pub(crate) fn require(platform: &Platform, ids: &[&str]) -> Result<(), Error> {
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

/// The exit code for plugins that are declared and failed: that of the worst failure. One that waits
/// for an approval has not failed.
pub(crate) fn code_of_failures(platform: &Platform) -> Exit {
    let reports = platform.plugins();
    let failed = reports.iter().filter(|of| of.state.is_failure() && !of.awaits_approval);
    let codes = failed.map(|report| not_there(report).exit_code());
    // What could not be read or understood is wrong configuration; what a plugin that is there offers
    // and nobody can use is its own affair.
    codes.chain(platform.unread().iter().map(|_| Exit::Input)).max().unwrap_or(Exit::Success)
}

/// That a plugin is not there because it is not let in.
pub(crate) fn refused(plugin: String, refusal: &Refusal) -> Error {
    Error::NotThere {
        plugin,
        detail: refusal.to_string(),
        remedy: Some(refusal.remedy()),
        refused: true,
        failure: None,
    }
}

fn not_there(report: &PluginReport) -> Error {
    Error::NotThere {
        plugin: report.plugin.clone(),
        detail: report.detail.clone().unwrap_or_default(),
        remedy: report.remedy.clone(),
        refused: matches!(report.state, PluginState::Refused | PluginState::Denied),
        failure: report.failure.clone().map(Box::new),
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
    let (platform, early) = built(&mut interrupts, building).await?;
    let result = match early {
        true => interrupted,
        false => tokio::select! {
            biased;
            () = interrupts.next() => interrupted,
            result = work(&platform) => result,
        },
    };
    end(common, interrupts, platform, result).await
}

/// The same for work that ends by itself when it is told to. Who interrupts a second time does not wait for that.
pub(crate) async fn with_stop(
    common: &Common,
    building: impl Future<Output = Result<Platform, Error>>,
    work: impl AsyncFnOnce(&Platform, oneshot::Receiver<()>) -> Result<ExitCode, Error>,
) -> Result<ExitCode, Error> {
    let mut interrupts = Interrupts::listen();
    let (platform, early) = built(&mut interrupts, building).await?;
    let result = match early {
        true => Ok(ExitCode::SUCCESS),
        false => {
            let (stop, stopped) = oneshot::channel();
            let mut work = pin!(work(&platform, stopped));
            tokio::select! {
                result = &mut work => result,
                () = interrupts.next() => {
                    let _ = stop.send(());
                    tokio::select! {
                        result = &mut work => result,
                        () = interrupts.next() => Err(Error::Interrupted),
                    }
                }
            }
        }
    };
    end(common, interrupts, platform, result).await
}

/// Builds a platform. Gives whether that was interrupted: an interruption ends the wait for plugins as well, so it is
/// looked at first, and what is built of the plugins that were there by then is not worked with.
async fn built(
    interrupts: &mut Interrupts,
    building: impl Future<Output = Result<Platform, Error>>,
) -> Result<(Platform, bool), Error> {
    let mut building = pin!(building);
    tokio::select! {
        biased;
        () = interrupts.next() => {
            // It does not wait for plugins any more.
            let built = tokio::select! {
                built = building => built,
                () = interrupts.next() => return Err(Error::Interrupted),
            };
            Ok((built.map_err(|_| Error::Interrupted)?, true))
        }
        built = &mut building => Ok((built?, false)),
    }
}

/// Ends a platform, so that plugins can say good-bye, and reports what came of the work.
async fn end(
    common: &Common,
    mut interrupts: Interrupts,
    platform: Platform,
    result: Result<ExitCode, Error>,
) -> Result<ExitCode, Error> {
    let code = result.unwrap_or_else(|error| output::report(&error, common.json));
    let mut ending = pin!(platform.shutdown());
    tokio::select! {
        () = interrupts.next() => return Ok(code),
        () = &mut ending => return Ok(code),
        () = tokio::time::sleep(PROGRESS_DELAY) => {}
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

/// What starts servers in a sandbox: the program for it that is installed with this one, or else this one.
fn server_launcher() -> Option<PathBuf> {
    let this = std::env::current_exe().ok()?;
    let launcher = this.with_file_name(format!("tenon-launcher{EXE_SUFFIX}"));
    Some(if launcher.is_file() { launcher } else { this })
}

/// How long plugins may take to end before somebody who watches is told what is waited for.
const PROGRESS_DELAY: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_names_tools_of_those_whose_names_it_may_fit() {
        let check = |pattern: &str, expected: bool| {
            assert_eq!(may_name_tool_of(pattern, "files__"), expected, "{pattern}");
        };
        check("files__read", true);
        check("files__*", true);
        check("fi*", true);
        check("*", true);
        check("*__read", true);
        check("filesystem__*", false);
        check("other__*", false);
        check("file", false);
        // Of all plugins.
        check("read_resource", true);
        check("list_*", true);
        check("get_*", true);
        check("put_*", false);
    }
}
