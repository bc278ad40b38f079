//! A host with hostile plugins in it, and everything around it.

use futures::FutureExt;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::future::Future;
use std::io;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::time::{Duration, Instant};
use tenon_host::services::GrantAll;
use tenon_host::types::{ResourceBody, ResourceContents};
use tenon_host::{
    Builder, Call, Config, HostEnvironment, Platform, PluginKind, PluginReport, PluginState,
};
use tokio::task::JoinError;
use tracing::instrument::WithSubscriber;

use crate::action::{Action, CallOutcome, Expect, ExpectedLog};
use crate::fakes::{
    ApproveExcept, CallTracingSubscriber, FakeSecretStore, Network, Recorder, RecordingPlugin,
    WITNESS,
};
use crate::fixture::{Fixture, FolderSnapshot};
use crate::plugins::{ServicesSource, configuration, id, plugins};
use crate::row::AttemptEffects;
use crate::server::Server;

/// A host, or why there is none.
pub(crate) struct HostUnderTest {
    platform: Option<Platform>,
    /// Why there is no platform.
    problem: Option<String>,
    fixture: Fixture,
    server: Server,
    other: Server,
    network: Network,
    services: Recorder,
    witness: RecordingPlugin,
}

/// The longest that anything may take that has a limit of its own: what takes longer has none.
const PATIENCE: Duration = Duration::from_secs(60);

/// The longest that a host may take to be built, and to end.
const SETUP: Duration = Duration::from_secs(300);

impl HostUnderTest {
    /// Lays out a project with the plugins that are needed, and has the host built.
    pub(crate) async fn new(
        variant: ServicesSource,
        needed: &BTreeSet<&'static str>,
        cache: Option<&Path>,
        host: &mut impl FnMut(Builder) -> Builder,
    ) -> io::Result<Self> {
        let fixture = Fixture::new()?;
        let (server, other) = (Server::start().await?, Server::start().await?);
        let network = Network::with(server.address);
        let mut world = Self {
            platform: None,
            problem: None,
            fixture,
            server,
            other,
            network,
            services: Recorder::default(),
            witness: RecordingPlugin::default(),
        };
        for plugin in plugins(variant).into_iter().filter(|plugin| needed.contains(plugin.id)) {
            let folder = format!("project/own/{}", plugin.id);
            let manifest = world.fill(&plugin.manifest());
            world.fixture.write_beside(&format!("{folder}/plugin.toml"), manifest)?;
            let code = plugin.code(|text| world.fill(text));
            world.fixture.write_beside(&format!("{folder}/code"), code)?;
        }
        world.fixture.write_beside("project/tenon.toml", configuration())?;
        match world.builder(variant, cache, host) {
            Err(problem) => world.problem = Some(problem),
            Ok(builder) => world.build(builder).await,
        }
        Ok(world)
    }

    fn builder(
        &self,
        variant: ServicesSource,
        cache: Option<&Path>,
        host: &mut impl FnMut(Builder) -> Builder,
    ) -> Result<Builder, String> {
        let config = Config::read(self.fixture.beside("project/tenon.toml"))
            .map_err(|error| format!("the suite's own configuration: {error}"))?;
        let environment = [("SEEN", "one"), ("SEEN_TOKEN", "two-two-two"), ("HIDDEN", "three")];
        let host_environment = HostEnvironment {
            environment: environment.map(|(name, value)| (name.into(), value.into())).into(),
            home: Some(self.fixture.beside("home")),
            cache: Some(cache.map_or_else(|| self.fixture.beside("cache"), Path::to_path_buf)),
            state: None,
            data: None,
            configuration: None,
            servers: None,
        };
        let begun = Platform::builder()
            .host_environment(host_environment)
            .config(config)
            .workspace(self.fixture.beside("project"))
            .approver(GrantAll);
        let builder = std::panic::catch_unwind(AssertUnwindSafe(|| host(begun)))
            .map_err(|panic| format!("its embedder's own set-up panicked: {}", message(&*panic)))?;
        // Nobody gets messages from here, and no record but ours.
        let builder = builder
            .builtin(WITNESS, self.witness.clone())
            .messaging(self.services.clone())
            .memory(self.services.clone())
            .client_features(self.services.clone())
            .state(self.fixture.beside("state"));
        Ok(match variant {
            ServicesSource::Theirs => builder,
            ServicesSource::Ours => builder
                .approver(self.decided())
                .secrets(FakeSecretStore)
                .resolver(self.network.clone())
                .connector(self.network.clone()),
        })
    }

    /// What is approved of plugins that do not get what they request.
    fn decided(&self) -> ApproveExcept {
        let mut instead = Vec::new();
        let mut say = |plugin, capability, values: &[&str]| {
            let values = values.iter().map(|value| self.fill(value)).collect();
            instead.push((plugin, capability, values));
        };
        // Less than was requested, and something else.
        say("narrow-files", "filesystem", &["read:{fixture}/**/a.txt"]);
        say("narrow-files", "environment", &["SEEN", "HIDDEN"]);
        for plugin in ["narrow-web", "narrow-script"] {
            say(plugin, "network", &["GET http://{server}/ok/*"]);
        }
        for plugin in ["narrow-asking", "narrow-script"] {
            say(plugin, "tools", &["conformance-witness__echo"]);
            say(plugin, "providers", &["conformance-witness/known"]);
            say(plugin, "messaging", &["none"]);
            say(plugin, "memory", &["search"]);
            say(plugin, "secrets", &["other"]);
        }
        // What is approved is more than what both request, and what both need.
        say("both-files", "filesystem", &["readwrite:{fixture}/**"]);
        say("both-files", "environment", &["SEEN", "SEEN_TOKEN", "HIDDEN"]);
        for plugin in ["both-web", "both-script"] {
            say(plugin, "network", &["http://{server}/*", "http://public.example.com/*"]);
        }
        for plugin in ["both-asking", "both-script"] {
            say(plugin, "tools", &["conformance-witness__*"]);
            say(plugin, "providers", &["*"]);
            say(plugin, "messaging", &["*"]);
            say(plugin, "memory", &["search"]);
            say(plugin, "secrets", &["api-key", "other"]);
        }
        // More than was requested.
        say("wide-files", "filesystem", &["readwrite:/**"]);
        say("wide-files", "environment", &["SEEN", "HIDDEN"]);
        say("wide-files", "network", &["http://*:*/*"]);
        say("wide-web", "network", &["http://{server}/*", "http://*:*/*"]);
        for plugin in ["wide-asking", "wide-script"] {
            say(plugin, "tools", &["*"]);
            say(plugin, "providers", &["*"]);
            say(plugin, "messaging", &["*"]);
            say(plugin, "memory", &["search"]);
            say(plugin, "secrets", &["api-key", "other"]);
            say(plugin, "network", &["http://{server}/*", "http://*:*/*"]);
        }
        let instead = instead.into_iter().map(|(plugin, of, values)| (id(plugin), of, values));
        ApproveExcept {
            instead: instead.collect(),
            undecided: vec![id("undecided")],
            stale: vec![id("stale")],
        }
    }

    async fn build(&mut self, builder: Builder) {
        let built = AssertUnwindSafe(tokio::time::timeout(SETUP, builder.build())).catch_unwind();
        self.problem = match built.await {
            Ok(Ok(Ok(platform))) => {
                self.platform = Some(platform);
                None
            }
            Ok(Ok(Err(error))) => Some(format!("the host was not built: {error}")),
            Ok(Err(_)) => Some(format!("the host was not built within {SETUP:?}")),
            Err(panic) => Some(format!("the host panicked: {}", message(&*panic))),
        };
    }

    /// A text with the places that it names.
    pub(crate) fn fill(&self, text: &str) -> String {
        if !text.contains('{') {
            return text.to_string();
        }
        let base = self.fixture.base().to_string_lossy();
        let mut names = base.split('/').filter(|part| !part.is_empty());
        let up = "../".repeat(names.clone().count() + 1);
        let first = names.next().unwrap_or_default();
        text.replace("{fixture}", &base)
            .replace("{first}", first)
            // From a folder in the fixture to the root.
            .replace("{up}", &up)
            .replace("{fd}", &self.fixture.held().to_string())
            .replace("{server}", &self.server.address.to_string())
            .replace("{other}", &self.other.address.to_string())
            .replace("{port}", &self.server.address.port().to_string())
    }

    fn fill_all(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.fill(text).into(),
            Value::Array(items) => items.iter().map(|item| self.fill_all(item)).collect(),
            Value::Object(members) => {
                let filled = members.iter().map(|(key, value)| (key.clone(), self.fill_all(value)));
                Value::Object(filled.collect())
            }
            other => other.clone(),
        }
    }

    /// Why nothing can be tried on a plugin, if that is so.
    pub(crate) fn absence(&self, plugin: &str) -> Option<String> {
        let report = match self.report(plugin) {
            Err(absence) => return Some(absence),
            Ok(report) if report.state == PluginState::Ready => return None,
            Ok(report) => report,
        };
        let detail = report.detail.as_deref().unwrap_or("it does not say why");
        Some(format!("plugin \"{}\" is {}: {detail}", report.plugin, report.state))
    }

    /// What the host says of a plugin.
    pub(crate) fn report(&self, plugin: &str) -> Result<PluginReport, String> {
        let Some(platform) = &self.platform else {
            return Err(self.problem.clone().unwrap_or_else(|| "there is no host".into()));
        };
        let (plugin, reports) = (id(plugin), platform.plugins());
        // One that is part of the host may have taken its id, which is not who is meant.
        let mut found = reports.iter().filter(|report| report.kind != PluginKind::Builtin);
        let report = found.find(|report| report.plugin == plugin).cloned();
        report.ok_or_else(|| format!("the host does not have the plugin \"{plugin}\""))
    }

    /// What there is none of on this system.
    pub(crate) fn lacks(&self, what: &str) -> bool {
        self.fixture.lacking().contains(&what)
    }

    /// Has plugins write to their log and console, whatever comes of it. The first time that `tracing` meets a place
    /// in the host's code that logs, it can miss a subscriber that another thread sets at that moment; the next
    /// subscriber mends that.
    pub(crate) async fn log_once(&self) {
        for (plugin, tool) in
            [("plain", "log_lines"), ("plain", "write_lines"), ("plain-script", "log_lines")]
        {
            if self.absence(plugin).is_none() {
                let name = format!("{}__{tool}", id(plugin));
                let call = self.call(name, json!({ "text": "1" }));
                ended(call.with_subscriber(CallTracingSubscriber::default())).await;
            }
        }
    }

    /// Does a deed. Gives what is wrong with what came of it.
    pub(crate) async fn check(&self, deed: &Action) -> Option<String> {
        self.done(deed).await.err()
    }

    /// Does a deed. Gives what came of it, or what is wrong with that.
    pub(crate) async fn done(&self, deed: &Action) -> Result<CallOutcome, String> {
        if let Some(absence) = self.absence(deed.plugin) {
            return Err(absence);
        }
        let has = self.report(deed.plugin)?.limits;
        let reader = CallTracingSubscriber::default();
        let name = format!("{}__{}", id(deed.plugin), deed.tool);
        let call = self.call(name, self.fill_all(&deed.arguments));
        let began = Instant::now();
        let came = match &deed.logged {
            Some(_) => ended(call.with_subscriber(reader.clone())).await,
            None => ended(call).await,
        };
        let took = began.elapsed();
        let expect = deed.expect.filled(|text| self.fill(text));
        if let Some(wrong) = expect.judge(&id(deed.plugin), &came, took, has.as_ref()) {
            return Err(wrong);
        }
        if let Expect::Cut(whole, _) = &expect {
            self.is_kept(&came, whole).await?;
        }
        let Some(ExpectedLog { present, least, most, rate, absent }) = deed.logged else {
            return Ok(came);
        };
        let log = reader.log.take();
        let lines = |text: &str| log.iter().filter(|line| line.contains(text)).count();
        let found = lines(present);
        let most = most + (took.as_secs_f64() * rate as f64).ceil() as usize;
        if !(least..=most).contains(&found) {
            let all = log.len();
            return Err(format!(
                "{found} of {all} lines in the log have {present:?} in them, not {least} to {most}"
            ));
        }
        match absent.filter(|text| lines(text) > 0) {
            Some(text) => Err(format!("{text:?} in the log")),
            None => Ok(came),
        }
    }

    /// Whether the whole of an answer that was cut is kept where it says.
    async fn is_kept(&self, came: &CallOutcome, whole: &str) -> Result<(), String> {
        let platform = self.platform.as_ref().ok_or("there is no host")?;
        let uri = came.whole().ok_or("it does not say where the whole is")?;
        let kept = platform.read_result(&uri).await.map_err(|error| format!("{uri}: {error}"))?;
        let is_whole = |contents: &ResourceContents| match &contents.body {
            ResourceBody::Text(text) => text == whole,
            ResourceBody::Blob(_) => false,
        };
        match kept.iter().any(is_whole) {
            true => Ok(()),
            false => Err(format!("the whole is not at {uri}")),
        }
    }

    /// A call in a task of its own, so that a host that panics is seen and not followed.
    fn call(
        &self,
        name: String,
        arguments: Value,
    ) -> impl Future<Output = CallOutcome> + Send + 'static {
        let platform = self.platform.clone();
        async move {
            let Some(platform) = platform else {
                return CallOutcome::Panicked("there is no host".into());
            };
            match platform.call(Call::new(name, arguments)).await {
                Ok(result) => CallOutcome::Answer(result),
                Err(error) => CallOutcome::Error(error),
            }
        }
    }

    /// What was left in the world since the last time, but for files.
    pub(crate) async fn traces(&self) -> AttemptEffects {
        let mut silent = 0;
        for server in [&self.server, &self.other] {
            // Who cannot be reached was not.
            silent += server.silent().await.unwrap_or_default();
        }
        AttemptEffects {
            silent,
            files: Vec::new(),
            server: self.server.heard(),
            other: self.other.heard(),
            connected: self.network.connected.take(),
            services: self.services.take(),
            called: self.witness.called.take(),
        }
    }

    pub(crate) fn survey(&self) -> FolderSnapshot {
        self.fixture.survey()
    }

    pub(crate) fn base(&self) -> &Path {
        self.fixture.base()
    }

    /// Puts the files there again.
    pub(crate) fn lay_again(
        &mut self,
        before: &FolderSnapshot,
        after: &FolderSnapshot,
    ) -> io::Result<()> {
        self.fixture.lay_again(before, after)
    }

    /// Ends the host.
    pub(crate) async fn end(&mut self) -> Result<(), String> {
        let Some(platform) = self.platform.take() else { return Ok(()) };
        let ending = AssertUnwindSafe(platform.shutdown_within(Duration::from_secs(10)));
        let ended = tokio::time::timeout(PATIENCE, ending.catch_unwind()).await;
        match ended {
            Ok(Ok(())) => Ok(()),
            Ok(Err(panic)) => Err(format!("the host panicked: {}", message(&*panic))),
            Err(_) => Err(format!("the host did not end within {PATIENCE:?}")),
        }
    }

    /// The files with this text in them that the host keeps of calls.
    pub(crate) fn recorded(&self, text: &str) -> Vec<String> {
        let has = |bytes: &[u8]| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        let mut found = Vec::new();
        let mut folders = vec![self.fixture.beside("state")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else if std::fs::read(&path).is_ok_and(|bytes| has(&bytes)) {
                    found.push(path.display().to_string());
                }
            }
        }
        found
    }
}

/// What comes of a call, which is given up when it does not end.
async fn ended(call: impl Future<Output = CallOutcome> + Send + 'static) -> CallOutcome {
    let mut task = tokio::spawn(call);
    match tokio::time::timeout(PATIENCE, &mut task).await {
        Ok(Ok(came)) => came,
        Ok(Err(error)) => CallOutcome::Panicked(reason(error)),
        Err(_) => {
            task.abort();
            CallOutcome::NoEnd(PATIENCE)
        }
    }
}

fn reason(error: JoinError) -> String {
    match error.try_into_panic() {
        Ok(panic) => message(&*panic),
        Err(error) => error.to_string(),
    }
}

/// What somebody said who panicked.
pub(crate) fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without words").to_string()
}
