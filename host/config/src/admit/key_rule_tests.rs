//! Each key of [`KEY_RULES`], tried: what a project's file and its user's come to together.

use proptest::option;
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;
use tenon_types::ToolAnnotations;
use tenon_types::name::ToolNameStyle;

use super::{Refusal, Rules, admit};
use crate::call_policy::{CallFacts, CallRules};
use crate::config::combine::{
    BelievedServers, CombineRule, KEY_RULES, OriginSettings, PluginOwner, ToolFilters, ToolRules,
    confine, pin_mode, speaking_for,
};
use crate::config::{
    Config, Invisible, OnFailure, ProfileSettings, ResourceTools, Supervision, ToolSettings,
};
use crate::discover::{
    Candidate, CodeSource, Discovery, PluginOrigin, ServerLocation, Sources, discover,
};
use crate::limits::{Limits, LimitsTable};

/// Whom a rule is tried on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TrialPlugin {
    /// What a project brings: the server `p`, and a script that requests something.
    Project,
    /// The user's server `s`, which no guard turns to.
    Server,
    /// The user's script `guard`.
    Guard,
}

impl TrialPlugin {
    const ALL: [Self; 3] = [Self::Project, Self::Server, Self::Guard];

    /// The plugin that is looked at.
    fn id(self) -> &'static str {
        match self {
            Self::Project => "p",
            Self::Server => "s",
            Self::Guard => "guard",
        }
    }

    /// All of this kind.
    fn ids(self) -> &'static [&'static str] {
        match self {
            Self::Project => &["p", "q"],
            Self::Server => &["s"],
            Self::Guard => &["guard", "caller"],
        }
    }

    fn owner(self) -> PluginOwner {
        match self {
            Self::Project => PluginOrigin::Config.into(),
            Self::Server => PluginOrigin::User.into(),
            Self::Guard => PluginOwner { origin: PluginOrigin::User, is_shielded: true },
        }
    }
}

/// Whose plugins a project's word reaches, where the key is one that the stricter of two says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProjectReach {
    /// Its own.
    Own,
    /// Those of its user's servers, too, that no guard turns to.
    Servers,
    /// All.
    All,
}

/// How a key is tried.
struct KeyRuleCase {
    key: &'static str,
    /// Lines that set it, from the loosest to the strictest.
    values: Vec<String>,
    /// How strict what comes of it is: more is stricter.
    strictness: fn(&MergedConfigs, TrialPlugin) -> i64,
    reach: ProjectReach,
}

impl KeyRuleCase {
    /// Whether a project's word reaches plugins of its user's.
    fn reaches(&self, of: TrialPlugin) -> bool {
        match self.reach {
            ProjectReach::Own => false,
            ProjectReach::Servers => of == TrialPlugin::Server,
            ProjectReach::All => of != TrialPlugin::Project,
        }
    }
}

/// What is not there is as strict as can be.
const GONE: i64 = i64::MAX;

/// What nobody says anything of.
const UNSAID: i64 = i64::MIN;

/// Two files, and what they come to.
struct MergedConfigs {
    configs: [Config; 2],
    discovery: Discovery,
}

/// The folder that the files of a test are in.
struct TestFolder(tempfile::TempDir);

impl TestFolder {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().expect("there is room for a folder"));
        for whose in ["p", "u"] {
            let folder = home.0.path().join(whose).join("folder/a");
            fs::create_dir_all(&folder).expect("a folder is made");
            let manifest = "plugin.id = \"a\"\nruntime = { kind = \"rhai\", path = \"a.rhai\" }";
            fs::write(folder.join("plugin.toml"), manifest).expect("a file is written");
        }
        home
    }

    /// What comes of these lines in the project's file and the user's. Both name plugins beside.
    fn world(&self, project: &str, user: &str) -> MergedConfigs {
        let project = with_entries(
            project,
            "\"own.rhai\", { path = \"q.rhai\", capabilities = { messaging = [\"*\"] } }",
            "{ name = \"p\", command = \"true\" }",
        );
        let user = with_entries(
            user,
            "\"guard.rhai\", { path = \"caller.rhai\", capabilities = { tools = [\"g__*\", \"g::*\", \"ext_g_*\"] } }",
            "{ name = \"s\", command = \"true\" }, { name = \"g\", command = \"true\" }",
        );
        let read = |text: &str, whose: &str| {
            let path = self.0.path().join(whose).join("tenon.toml");
            Config::parse(text, path).unwrap_or_else(|error| panic!("{error}: {text}"))
        };
        let configs = [read(&project, "p"), read(&user, "u").of_user()];
        let mut configs = configs.map(Config::into_read);
        Config::inherit(&mut configs);
        let discovery = discover(&Sources { configs: configs.to_vec(), ..Sources::default() });
        MergedConfigs { configs, discovery }
    }
}

/// Lines of a file, with these scripts and servers among those that it names.
fn with_entries(lines: &str, scripts: &str, servers: &str) -> String {
    let mut text = lines.to_string();
    for (key, entries) in [("plugins.scripts", scripts), ("plugins.mcp", servers)] {
        let begin = format!("{key} = [");
        text = match text.contains(&begin) {
            true => text.replace(&begin, &format!("{begin}{entries}, ")),
            false => format!("{begin}{entries}]\n{text}"),
        };
    }
    text
}

impl MergedConfigs {
    /// The profile `x`, of which the keys of profiles are tried.
    fn profile(&self) -> Option<&ProfileSettings> {
        self.first().profiles.get("x")
    }

    fn candidate(&self, id: &str) -> Option<&Candidate> {
        self.discovery.candidates.iter().find(|candidate| candidate.id() == id)
    }

    /// The configuration that speaks for somebody's plugins.
    fn speaking(&self, of: TrialPlugin) -> &Config {
        speaking_for(&self.configs, of.owner().origin).expect("there are configurations")
    }

    /// Whose the plugin of an id is: nobody's, the project's, the user's.
    fn owner_of(&self, id: &str) -> i64 {
        match self.candidate(id) {
            None => 0,
            Some(candidate) if candidate.origin().is_of_project() => 1,
            Some(_) => 2,
        }
    }

    /// How many of somebody's plugins are left out.
    fn left_out(&self, of: TrialPlugin) -> i64 {
        of.ids().iter().filter(|id| self.candidate(id).is_none()).count() as i64
    }

    /// How many of somebody's plugins are left out or refused by a policy.
    fn refused(&self, of: TrialPlugin) -> i64 {
        let rules = Rules::new(&self.configs);
        let is_refused = |id: &&&str| match self.candidate(id) {
            None => true,
            Some(candidate) => {
                matches!(admit(candidate.clone(), &rules), Err(Refusal::Policy { .. }))
            }
        };
        of.ids().iter().filter(is_refused).count() as i64
    }

    /// What plugins may use whose manifests ask for all that there is.
    fn limits(&self, of: TrialPlugin) -> Limits {
        let all: LimitsTable = toml::from_str(
            "cpu = \"9h\"\nwall = \"9h\"\nmemory_mib = 9999\ntable_elements = 9999999\ninstances = 9999\n\
             transfer_mib = 9999\ndownload_mib = 9999\noutput_kib = 9999999\nhost_calls = 9999999\nlog_rate = 9999999",
        )
        .expect("the table is read");
        self.speaking(of).limits_of(of.id(), &all)
    }

    fn own(&self, of: TrialPlugin) -> OriginSettings {
        OriginSettings::of(&self.configs, of.owner().origin)
    }

    /// The rule for the tool `t`.
    fn tool(&self, of: TrialPlugin) -> ToolSettings {
        let name = format!("{}__t", of.id());
        ToolRules::new(&self.configs).of(&name, &name, of.owner())
    }

    /// What becomes of calls of the tool `t` that are those of `x`.
    fn call_decision(&self, of: TrialPlugin) -> i64 {
        let name = format!("{}__t", of.id());
        let rules = CallRules::new(&self.configs);
        let policy = rules.of(&name, &name, of.owner(), ToolAnnotations::default());
        let facts = CallFacts { arguments: &json!({}), principal: Some("x"), profile: None };
        policy.decide(&facts).decision as i64
    }

    /// Whether the tool `t` is not wanted.
    fn unwanted(&self, of: TrialPlugin) -> i64 {
        let filters = ToolFilters::new(&self.configs);
        let mut said = filters.of(of.id(), of.owner());
        said.any(|filter| filter.leaves_out("t").is_some()).into()
    }

    /// What is said of how a server is kept running: of a guard, the one that it turns to.
    fn supervision(&self, of: TrialPlugin, strictness: fn(&Supervision) -> i64) -> i64 {
        let id = if of == TrialPlugin::Guard { "g" } else { of.id() };
        let Some(candidate) = self.candidate(id) else { return GONE };
        let CodeSource::Mcp(server) = &candidate.source else { panic!("it is a server") };
        assert!(matches!(server.place, ServerLocation::Child(_)));
        strictness(&server.supervision)
    }

    /// The configuration that speaks for the host itself.
    fn first(&self) -> &Config {
        &self.configs[0]
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).expect("no test waits that long")
}

/// The number at the end of a text.
fn number(text: &str) -> i64 {
    text.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().expect("it is a number")
}

/// How strict something is that need not be said: of a project's plugins, nothing holds then.
fn or_unsaid(of: TrialPlugin, said: Option<i64>, unsaid: i64) -> i64 {
    said.unwrap_or(if of == TrialPlugin::Project { UNSAID } else { unsaid })
}

/// Lines that set a key to values.
fn lines(key: &str, values: &[&str]) -> Vec<String> {
    values.iter().map(|value| format!("{key} = {value}")).collect()
}

/// Lines that say something of each plugin under `[policy.plugins]`, or `[settings]`.
fn of_each(table: &str, key: &str, values: &[&str]) -> Vec<String> {
    let line = |id: &str, value: &str| format!("{table}.{id}.{key} = {value}\n");
    let all = |value: &&str| ["p", "q", "s", "guard"].map(|id| line(id, value)).concat();
    values.iter().map(all).collect()
}

/// How strict patterns are: the fewer the stricter.
fn patterns(patterns: Option<&Vec<String>>) -> i64 {
    patterns.map_or(UNSAID, |patterns| -(patterns.len() as i64))
}

/// How each key is tried, in the order of the rules.
fn trials() -> Vec<KeyRuleCase> {
    use ProjectReach::{All, Own, Servers};
    let trial = |key, values: Vec<String>, reach, strictness| KeyRuleCase {
        key,
        values,
        strictness,
        reach,
    };
    let simple = |key: &'static str, values: &[&str], reach, strictness| {
        trial(key, lines(key, values), reach, strictness)
    };
    let supervision =
        |key: &'static str, values: &[&str], strictness| simple(key, values, Own, strictness);
    let policy = |key: &'static str, values: &[&str], reach, strictness| {
        let (table, name) = key.split_once(".*.").expect("it is of a plugin");
        trial(key, of_each(table, name, values), reach, strictness)
    };
    let tool = |key: &'static str, values: &[&str], strictness| {
        trial(key, lines(&key.replace('*', "\"*\""), values), Servers, strictness)
    };
    let profile = |key: &'static str, values: &[&str], strictness| {
        trial(key, lines(&key.replace('*', "x"), values), Own, strictness)
    };
    // An issuer has a URL and an audience, whatever else is said of it.
    let issuer = |key: &'static str, values: &[&str], strictness| {
        let of_value = |value: &&str| {
            let mut table = toml::toml! {
                url = "https://a.example/1"
                audience = "https://b.example/1"
            };
            let key = key.trim_start_matches("issuer.");
            table.extend(toml::from_str::<toml::Table>(&format!("{key} = {value}")).expect(key));
            format!("issuer = {table}", table = toml::Value::Table(table))
        };
        trial(key, values.iter().map(of_value).collect(), Own, strictness)
    };
    let all = "[\"p\", \"q\", \"own\", \"s\", \"g\", \"guard\", \"caller\", \"a\", \"n\"]";
    let minimal = |more: &str| format!("policy.profile = \"minimal\"\n{more}");
    vec![
        simple("plugins.wasm", &["[\"a.wasm\"]"], Own, |w, _| w.owner_of("a")),
        simple("plugins.scripts", &["[\"a.rhai\"]"], Own, |w, _| w.owner_of("a")),
        simple(
            "plugins.mcp",
            &["[{ name = \"g\", command = \"true\" }, { name = \"n\", command = \"true\" }]"],
            Own,
            // A guard may turn to the first.
            |w, of| w.owner_of(if of == TrialPlugin::Guard { "g" } else { "n" }),
        ),
        simple("plugins.folders", &["[\"folder\"]"], Own, |w, _| w.owner_of("a")),
        simple("plugins.resource_tools", &["\"each\"", "\"none\""], Own, |w, of| {
            (w.own(of).resource_tools == ResourceTools::None).into()
        }),
        trial("settings.*", of_each("settings", "k", &["1", "2"]), Own, |w, of| {
            let Some(candidate) = w.candidate(of.id()) else { return GONE };
            candidate.settings.get("k").map_or(GONE, |k| k.as_i64().expect("it is a number"))
        }),
        simple("limits.memory_mib", &["300", "2"], Own, |w, of| -(w.limits(of).memory as i64)),
        simple("limits.table_elements", &["300", "2"], Own, |w, of| {
            -(w.limits(of).table_elements as i64)
        }),
        simple("limits.instances", &["200", "2"], Own, |w, of| -(w.limits(of).instances as i64)),
        simple("limits.cpu", &["\"40s\"", "\"2s\""], Own, |w, of| -millis(w.limits(of).cpu)),
        simple("limits.wall", &["\"50s\"", "\"3s\""], Own, |w, of| -millis(w.limits(of).wall)),
        simple("limits.transfer_mib", &["90", "2"], Own, |w, of| -(w.limits(of).transfer as i64)),
        simple("limits.download_mib", &["90", "2"], Own, |w, of| -(w.limits(of).download as i64)),
        simple("limits.output_kib", &["9000", "2"], Own, |w, of| -(w.limits(of).output as i64)),
        simple("limits.sessions", &["300", "2"], Own, |w, of| -(w.limits(of).sessions as i64)),
        simple("limits.session_idle", &["\"50m\"", "\"3m\""], Own, |w, of| {
            -millis(w.limits(of).session_idle)
        }),
        simple("limits.server_idle", &["\"50m\"", "\"3m\""], Own, |w, of| {
            -millis(w.limits(of).server_idle)
        }),
        simple("limits.server_memory_mib", &["9000", "2"], Own, |w, of| {
            -(w.limits(of).server_memory as i64)
        }),
        simple("limits.state_mib", &["90", "2"], Own, |w, of| -(w.limits(of).state as i64)),
        simple("limits.host_calls", &["9000", "2"], Own, |w, of| -(w.limits(of).host_calls as i64)),
        simple("limits.log_rate", &["900", "2"], Own, |w, of| -i64::from(w.limits(of).log_rate)),
        simple("discovery.max_depth", &["9", "2"], Own, |w, of| {
            -(w.speaking(of).discovery.max_depth as i64)
        }),
        simple("discovery.ignore_dirs", &["[]", "[\"x\"]"], Own, |w, of| {
            w.speaking(of).discovery.ignore_dirs.len() as i64
        }),
        simple("discovery.follow_links", &["true", "false"], Own, |w, of| {
            (!w.speaking(of).discovery.follow_links).into()
        }),
        simple("discovery.disabled", &["[]", all], Servers, MergedConfigs::left_out),
        simple("discovery.allowlist", &[all, "[\"other\"]"], Servers, MergedConfigs::left_out),
        simple(
            "policy.profile",
            &["\"full\"", "\"messaging\"", "\"minimal\""],
            Servers,
            MergedConfigs::refused,
        ),
        trial(
            "policy.allow",
            vec![minimal(&format!("policy.allow = {all}")), minimal("policy.allow = []")],
            Servers,
            MergedConfigs::refused,
        ),
        simple("policy.deny", &["[]", all], Servers, MergedConfigs::refused),
        simple("policy.locked", &["false", "true"], Servers, MergedConfigs::refused),
        simple(
            "policy.calls",
            &["\"trusting\"", "\"careful\"", "\"locked\""],
            Servers,
            MergedConfigs::call_decision,
        ),
        simple(
            "policy.confine",
            &["\"off\"", "\"preferred\"", "\"required\""],
            Servers,
            |w, of| confine(&w.configs, of.owner()) as i64,
        ),
        policy("policy.plugins.*.enabled", &["true", "false"], Servers, MergedConfigs::refused),
        policy(
            "policy.plugins.*.limits",
            &["{ wall = \"40s\" }", "{ wall = \"2s\" }"],
            Own,
            |w, of| -millis(w.limits(of).wall),
        ),
        policy(
            "policy.plugins.*.enabled_tools",
            &["[\"*\"]", "[]"],
            Servers,
            MergedConfigs::unwanted,
        ),
        policy(
            "policy.plugins.*.disabled_tools",
            &["[]", "[\"t\"]"],
            Servers,
            MergedConfigs::unwanted,
        ),
        policy("policy.plugins.*.pins", &["\"off\"", "\"warn\"", "\"hold\""], Servers, |w, of| {
            pin_mode(&w.configs, of.id(), of.owner(), None) as i64
        }),
        policy("policy.plugins.*.believe_annotations", &["true", "false"], Own, |w, of| {
            (!BelievedServers::new(&w.configs).has(of.id(), of.owner())).into()
        }),
        simple("hooks.timeout", &["\"9s\"", "\"2s\""], Own, |w, of| {
            -millis(w.own(of).hooks.timeout)
        }),
        // What a chain does when a handler fails is said once for all.
        simple("hooks.on_failure", &["\"skip\"", "\"stop\""], All, |w, _| {
            (w.first().hooks.on_failure == OnFailure::Stop).into()
        }),
        simple("hooks.deterministic", &["[\"guard\"]", "[]"], Own, |w, of| {
            -(w.own(of).hooks.deterministic.len() as i64)
        }),
        tool("tools.*.enabled", &["true", "false"], |w, of| {
            (w.tool(of).enabled == Some(false)).into()
        }),
        tool("tools.*.timeout", &["\"9s\"", "\"3s\""], |w, of| {
            w.tool(of).timeout.map_or(UNSAID, |time| -millis(time))
        }),
        tool("tools.*.max_attempts", &["9", "2"], |w, of| {
            let most = w.tool(of).max_attempts.map(|most| -i64::from(most.get()));
            or_unsaid(of, most, -1)
        }),
        tool("tools.*.retry_backoff", &["\"300ms\"", "\"1s\""], |w, of| {
            or_unsaid(of, w.tool(of).retry_backoff.map(millis), 200)
        }),
        tool("tools.*.side_effects", &["\"none\"", "\"idempotent\"", "\"repeated\""], |w, of| {
            // What a tool says of itself may be the least, and counts for more than what a project says.
            or_unsaid(of, w.tool(of).side_effects.map(|effects| 2 * effects as i64), 3)
        }),
        tool(
            "tools.*.approve",
            &["\"allow\"", "\"ask\"", "\"deny\""],
            MergedConfigs::call_decision,
        ),
        tool(
            "tools.*.when",
            &[
                "[{ approve = \"allow\", principals = [\"x\"] }]",
                "[{ approve = \"ask\", principals = [\"x\"] }]",
                "[{ approve = \"deny\", principals = [\"x\"] }]",
            ],
            MergedConfigs::call_decision,
        ),
        simple("history.enabled", &["true", "false"], Own, |w, _| w.first().history.enabled.into()),
        simple("history.max_mib", &["9", "2"], Own, |w, _| w.first().history.max_mib.into()),
        simple("store.url", &["\"a1\"", "\"a2\""], Own, |w, _| {
            w.first().store.url.as_deref().map_or(UNSAID, number)
        }),
        simple("store.authorities", &["\"a1\"", "\"a2\""], Own, |w, _| {
            w.first().store.authorities.as_deref().map_or(UNSAID, number)
        }),
        simple("runs.operations", &["9", "2"], Own, |w, _| -(w.first().runs.operations as i64)),
        simple("runs.cpu", &["\"9s\"", "\"2s\""], Own, |w, _| -millis(w.first().runs.cpu)),
        simple("runs.wall", &["\"9s\"", "\"2s\""], Own, |w, _| -millis(w.first().runs.wall)),
        simple("runs.calls", &["9", "2"], Own, |w, _| -i64::from(w.first().runs.calls)),
        simple("runs.parallel", &["9", "2"], Own, |w, _| -i64::from(w.first().runs.parallel)),
        simple("runs.output_kib", &["9", "2"], Own, |w, _| -i64::from(w.first().runs.output_kib)),
        simple("sampling.model", &["\"m1\"", "\"m2\""], Own, |w, _| {
            w.first().client.sampling_model.as_deref().map_or(UNSAID, number)
        }),
        simple("sampling.ask", &["true", "false"], Own, |w, _| {
            w.first().client.sampling_asks.into()
        }),
        simple("messages.command", &["[\"x1\"]", "[\"x2\"]"], Own, |w, _| {
            w.first().client.message_command.first().map_or(UNSAID, |program| number(program))
        }),
        simple("watch.debounce", &["\"9s\"", "\"2s\""], Own, |w, _| {
            millis(w.first().watch.debounce)
        }),
        simple("watch.max_delay", &["\"9s\"", "\"3s\""], Own, |w, _| {
            millis(w.first().watch.max_delay)
        }),
        simple("results.max_mib", &["9", "2"], Own, |w, _| w.first().results.max_mib.into()),
        simple("results.max_result_mib", &["9", "2"], Own, |w, _| {
            w.first().results.max_result_mib.into()
        }),
        simple("results.invisible", &["\"raw\"", "\"escape\""], Own, |w, _| {
            (w.first().results.invisible == Invisible::Escape).into()
        }),
        profile("profiles.*.tools", &["[\"a\"]", "[]"], |w, _| {
            patterns(w.profile().and_then(|profile| profile.tools.as_ref()))
        }),
        profile("profiles.*.resources", &["[\"a:*\"]", "[]"], |w, _| {
            patterns(w.profile().and_then(|profile| profile.resources.as_ref()))
        }),
        profile("profiles.*.prompts", &["[\"a\"]", "[]"], |w, _| {
            patterns(w.profile().and_then(|profile| profile.prompts.as_ref()))
        }),
        profile("profiles.*.prefix", &["false", "true"], |w, _| {
            w.profile().and_then(|profile| profile.prefix).map_or(UNSAID, i64::from)
        }),
        profile("profiles.*.calls_per_minute", &["9", "2"], |w, _| {
            let calls = w.profile().and_then(|profile| profile.calls_per_minute);
            calls.map_or(UNSAID, |calls| -i64::from(calls.get()))
        }),
        profile("profiles.*.calls", &["\"trusting\"", "\"locked\""], |w, _| {
            w.profile().and_then(|profile| profile.calls).map_or(UNSAID, |mode| mode as i64)
        }),
        profile("profiles.*.mode", &["\"tools\"", "\"code\""], |w, _| {
            w.profile().and_then(|profile| profile.mode).map_or(UNSAID, |mode| mode as i64)
        }),
        issuer("issuer.url", &["\"https://a9\"", "\"https://a2\""], |w, _| {
            w.first().issuer.as_ref().map_or(UNSAID, |issuer| -number(&issuer.url))
        }),
        issuer("issuer.audience", &["\"https://a9\"", "\"https://a2\""], |w, _| {
            w.first().issuer.as_ref().map_or(UNSAID, |issuer| -number(&issuer.audience))
        }),
        issuer("issuer.jwks", &["\"https://a9\"", "\"https://a2\""], |w, _| {
            let jwks = w.first().issuer.as_ref().and_then(|issuer| issuer.jwks.as_ref());
            jwks.map_or(UNSAID, |jwks| -number(jwks))
        }),
        issuer("issuer.scopes", &["[\"a\"]", "[\"a\", \"b\"]"], |w, _| {
            w.first().issuer.as_ref().map_or(UNSAID, |issuer| issuer.scopes.len() as i64)
        }),
        issuer("issuer.profile", &["\"p9\"", "\"p2\""], |w, _| {
            let profile = w.first().issuer.as_ref().and_then(|issuer| issuer.profile.as_ref());
            profile.map_or(UNSAID, |profile| -number(profile))
        }),
        issuer("issuer.profile_claim", &["\"c9\"", "\"c2\""], |w, _| {
            let claim = w.first().issuer.as_ref().and_then(|issuer| issuer.profile_claim.as_ref());
            claim.map_or(UNSAID, |claim| -number(claim))
        }),
        simple("context.passthrough", &["true", "false"], Own, |w, of| {
            let of_candidate = |candidate: &Candidate| (!candidate.context.passthrough).into();
            w.candidate(of.id()).map_or(GONE, of_candidate)
        }),
        supervision("supervision.max_restarts", &["9", "2"], |w, of| {
            w.supervision(of, |s| -i64::from(s.max_restarts))
        }),
        supervision("supervision.restart_window", &["\"1s\"", "\"2h\""], |w, of| {
            w.supervision(of, |s| millis(s.restart_window))
        }),
        supervision("supervision.backoff", &["\"1ms\"", "\"9s\""], |w, of| {
            w.supervision(of, |s| millis(s.backoff))
        }),
        supervision("supervision.max_backoff", &["\"1ms\"", "\"99s\""], |w, of| {
            w.supervision(of, |s| millis(s.max_backoff))
        }),
        supervision("supervision.breaker_failures", &["9", "2"], |w, of| {
            w.supervision(of, |s| -i64::from(s.breaker_failures))
        }),
        supervision("supervision.breaker_cooldown", &["\"1ms\"", "\"99s\""], |w, of| {
            w.supervision(of, |s| millis(s.breaker_cooldown))
        }),
        supervision("supervision.shutdown_grace", &["\"9s\"", "\"2s\""], |w, of| {
            w.supervision(of, |s| -millis(s.shutdown_grace))
        }),
        supervision("supervision.max_message", &["99999999", "2"], |w, of| {
            w.supervision(of, |s| -(s.max_message as i64))
        }),
        supervision("supervision.concurrent_starts", &["9", "2"], |w, _| {
            let starts = w.first().supervision.concurrent_starts;
            starts.map_or(UNSAID, |starts| starts.get().into())
        }),
        simple(
            "names.style",
            &["\"server__tool\"", "\"namespace::tool\"", "\"ext_id_tool\""],
            Own,
            |w, of| match w.own(of).names.style {
                ToolNameStyle::ServerTool => 0,
                ToolNameStyle::NamespaceTool => 1,
                ToolNameStyle::ExtIdTool => 2,
            },
        ),
        simple("names.origin_prefix", &["false", "true"], Own, |w, of| {
            w.own(of).names.origin_prefix.into()
        }),
    ]
}

#[test]
fn every_rule_is_tried() {
    let tried: Vec<&str> = trials().iter().map(|trial| trial.key).collect();
    let rules: Vec<&str> = KEY_RULES.iter().map(|rule| rule.key).collect();
    assert_eq!(tried, rules);
}

/// A row for each key and each two values of it: what is expected follows from the rule alone.
#[test]
fn each_key_combines_as_its_rule_says() {
    let home = TestFolder::new();
    for (trial, rule) in trials().iter().zip(KEY_RULES) {
        let (key, rule) = (trial.key, rule.rule);
        let seen =
            |project: &str, user: &str, of| (trial.strictness)(&home.world(project, user), of);
        // What a value comes to where only the one who speaks for these plugins says it.
        let alone = |value: &str, of| match of {
            TrialPlugin::Project if rule != CombineRule::UserOnly => seen(value, "", of),
            _ => seen("", value, of),
        };
        if rule == CombineRule::Both {
            let value = &trial.values[0];
            assert_eq!(seen("", "", TrialPlugin::Project), 0, "{key}");
            assert_eq!(seen(value, "", TrialPlugin::Project), 1, "{key}");
            assert_eq!(seen("", value, TrialPlugin::Project), 2, "{key}");
            assert_eq!(seen(value, value, TrialPlugin::Guard), 2, "{key}");
            continue;
        }
        for of in TrialPlugin::ALL {
            let unsaid = seen("", "", of);
            let reaches = trial.reaches(of);
            let own: Vec<i64> = trial.values.iter().map(|value| alone(value, of)).collect();
            // A trial that sees no difference would find everything right.
            let differs = match rule {
                CombineRule::UserOnly => own.windows(2).all(|two| two[0] != two[1]),
                _ if of == TrialPlugin::Project => own.windows(2).all(|two| two[0] < two[1]),
                _ => own.is_sorted() && own.first() < own.last(),
            };
            assert!(differs, "{key} for {of:?}: {own:?}");
            for (u, user) in trial.values.iter().enumerate() {
                // The project says nothing.
                let found = seen("", user, of);
                let holds = match (rule, of) {
                    (CombineRule::OwnPlugins, TrialPlugin::Project) => true,
                    (CombineRule::UserOnly, _) | (_, TrialPlugin::Server | TrialPlugin::Guard) => {
                        found == own[u]
                    }
                    _ => found >= own[u],
                };
                assert!(holds, "{key} for {of:?}: {found} of the user's {user}");
                for (p, project) in trial.values.iter().enumerate() {
                    let expected = match (rule, of) {
                        (CombineRule::UserOnly, _) => own[u],
                        // What suits the user is no stricter for being another.
                        (_, TrialPlugin::Project) if key == "settings.*" => own[u],
                        (CombineRule::OwnPlugins, TrialPlugin::Project) => own[p],
                        (_, TrialPlugin::Project) => own[p].max(own[u]),
                        _ if reaches => own[p].max(own[u]),
                        _ => own[u],
                    };
                    assert_eq!(
                        seen(project, user, of),
                        expected,
                        "{key} for {of:?}: {project} and {user}"
                    );
                }
            }
            for project in &trial.values {
                // The user says nothing.
                let found = seen(project, "", of);
                let holds = match (rule, of) {
                    (CombineRule::UserOnly, _) => found == unsaid,
                    (_, TrialPlugin::Project) => true,
                    _ if reaches => found >= unsaid,
                    _ => found == unsaid,
                };
                assert!(
                    holds,
                    "{key} for {of:?}: {found} of the project's {project}, not {unsaid}"
                );
            }
        }
        if rule == CombineRule::UserOnly {
            // What has no effect is said to have none.
            let world = home.world(trial.values.last().expect("there are values"), "");
            let mut keys = world.first().keys_for_user_only();
            // An issuer that is not named so is none.
            keys.retain(|set| *set == key || !["issuer.url", "issuer.audience"].contains(set));
            assert_eq!(keys, [key]);
        }
    }
}

/// What is let in by one file alone is not let in.
#[test]
fn a_plugin_that_the_user_does_not_let_in_is_not_let_in_by_its_project() {
    let home = TestFolder::new();
    for user in ["policy.profile = \"minimal\"", "policy.locked = true", "policy.deny = [\"p\"]"] {
        for project in ["policy.allow = [\"p\", \"q\"]", "policy.plugins.p.enabled = true"] {
            let world = home.world(project, user);
            let rules = Rules::new(&world.configs);
            let refused = admit(world.candidate("p").expect("it is there").clone(), &rules);
            assert!(matches!(refused, Err(Refusal::Policy { .. })), "{project} and {user}");
        }
    }
}

/// What of the user's settings a project's plugin gets.
#[test]
fn a_projects_plugin_gets_no_key_that_its_user_set_for_another_of_its_id() {
    let home = TestFolder::new();
    let check = |project: &str, user: &str, expected: &[(&str, &str)], withheld: &str| {
        let world = home.world(project, user);
        let candidate = world.candidate("p").expect("it is there");
        let found: Vec<(&str, &str)> = candidate
            .settings
            .iter()
            .map(|(key, value)| (&**key, value.as_str().expect("it is a text")))
            .collect();
        assert_eq!(found, expected, "{project} and {user}");
        let said = world.discovery.warnings.iter().map(ToString::to_string);
        let said: Vec<String> = said.filter(|said| said.contains("[settings.p]")).collect();
        assert_eq!(said.is_empty(), withheld.is_empty(), "{said:?}");
        assert!(said.iter().all(|said| said.ends_with(withheld)), "{said:?}");
    };
    let users = "settings.p = { api_key = \"u\", region = \"u\" }";
    check("", users, &[], ": api_key, region");
    check("settings.p.region = \"p\"", users, &[("region", "u")], ": api_key");
    check("settings.p.own = \"p\"", users, &[("own", "p")], ": api_key, region");
    check("settings.p.region = \"p\"", "", &[("region", "p")], "");
    // Its user's own gets all.
    let world = home.world("settings.s.k = \"p\"", "settings.s.api_key = \"u\"");
    let settings = &world.candidate("s").expect("it is there").settings;
    assert_eq!(serde_json::json!(settings), serde_json::json!({ "api_key": "u" }));
}

/// What one file says: numbers of a key, of a value and of the tools that it is for.
type KeySetting = (usize, usize, usize);

/// A file in which no key is set twice: what it says, and which keys.
fn file(
    trials: &[KeyRuleCase],
    said: impl Iterator<Item = KeySetting>,
) -> (String, BTreeSet<&'static str>) {
    let (mut text, mut set, mut keys) = (String::new(), BTreeSet::new(), BTreeSet::new());
    for (trial, value, tool) in said {
        let trial = &trials[trial % trials.len()];
        let tools = ["\"*\"", "p__t", "s__t", "guard__t"];
        let value = &trial.values[value % trial.values.len()];
        let value = match trial.key.starts_with("tools.") {
            true => value.replace("\"*\"", tools[tool % tools.len()]),
            false => value.clone(),
        };
        let names = |text: &str| -> Vec<String> {
            let names = text.lines().filter_map(|line| line.split(" = ").next());
            names.map(str::to_string).collect()
        };
        let names = names(&value);
        if names.iter().any(|name| set.contains(name)) {
            continue;
        }
        set.extend(names);
        keys.insert(trial.key);
        text.push_str(value.trim_end());
        text.push('\n');
    }
    (text, keys)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn no_project_weakens_its_user(
        // Keys, what the project and the user say of each, and for which tools.
        said in proptest::collection::vec(
            (any::<usize>(), option::of(0..12usize), option::of(0..12usize), 0..4usize),
            0..12,
        ),
    ) {
        let trials = trials();
        let home = TestFolder::new();
        let of_project = said.iter().filter_map(|(key, value, _, tool)| Some((*key, (*value)?, *tool)));
        let of_user = said.iter().filter_map(|(key, _, value, tool)| Some((*key, (*value)?, *tool)));
        let ((project, _), (user, keys)) = (file(&trials, of_project), file(&trials, of_user));
        let both = home.world(&project, &user);
        let alone = home.world("", &user);
        // What the user says, said of a project's plugins.
        let said = home.world(&user, "");
        for (trial, rule) in trials.iter().zip(KEY_RULES) {
            let is_said = keys.contains(trial.key);
            let seen = |world: &MergedConfigs, of| (trial.strictness)(world, of);
            for of in TrialPlugin::ALL {
                let (found, before) = (seen(&both, of), seen(&alone, of));
                let reaches = trial.reaches(of);
                let holds = match (rule.rule, of) {
                    (CombineRule::UserOnly, _) => found == before,
                    (CombineRule::Both, TrialPlugin::Guard) => !is_said || found == 2 || before != 2,
                    (CombineRule::Both | CombineRule::OwnPlugins, TrialPlugin::Project) => true,
                    (CombineRule::Both, TrialPlugin::Server) => true,
                    (_, TrialPlugin::Project) if trial.key == "settings.*" => {
                        !is_said || found == GONE || found == seen(&said, of)
                    }
                    (_, TrialPlugin::Project) => !is_said || found >= seen(&said, of),
                    _ if reaches => found >= before,
                    // It may do without a server of its user's.
                    (_, TrialPlugin::Server) => found == before || both.candidate("s").is_none(),
                    (_, TrialPlugin::Guard) => found == before,
                };
                prop_assert!(holds, "{} for {of:?}: {found}, not {before}\n{project}\n--\n{user}", trial.key);
            }
        }
    }
}
