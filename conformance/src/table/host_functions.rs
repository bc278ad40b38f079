//! What plugins ask the host itself for: its environment, secrets, services, models, other tools.

use serde_json::{Value, json};

use crate::action::{Action, Expect, ExpectedLog, RefusalText};
use crate::case::{ApiSurface, Capability};
use crate::fakes::SECRET;
use crate::plugins::ServicesSource;
use crate::row::{AttemptEffects, AttemptKind, Control, Row, answered, lines, refused};
use crate::table::filesystem;

/// The ways to ask, and who asks so.
const PLUGIN_VARIANTS: [PluginsByGrant; 2] = [
    PluginsByGrant {
        by: ApiSurface::Import,
        plugin: "asking",
        free: "free-asking",
        both: "both-asking",
    },
    PluginsByGrant {
        by: ApiSurface::Rhai,
        plugin: "script",
        free: "free-script",
        both: "both-script",
    },
];

/// A way to ask.
#[derive(Clone, Copy)]
struct PluginsByGrant {
    by: ApiSurface,
    /// Who is granted a part of what can be asked for.
    plugin: &'static str,
    /// Who is granted all of it.
    free: &'static str,
    /// Who has requested all of it, and got it, where others did not.
    both: &'static str,
}

pub(super) fn rows() -> Vec<Row> {
    let mut rows = filesystem::environment();
    rows.extend(secrets());
    for way in PLUGIN_VARIANTS {
        rows.extend(messaging(way));
        rows.extend(memory(way));
        rows.extend(providers(way));
        rows.extend(tools(way));
        rows.extend(approved(way));
    }
    let listed = "conformance-asking__call conformance-script__call conformance-script__fork \
                  conformance-witness__echo";
    let list = answered("asking", "list", json!({}), listed);
    // It is granted all, and shown what is not listed to the other.
    let more = Control::Call(
        list.by("free-asking", Expect::Tells(&["conformance-witness__other"])),
        AttemptEffects::default(),
    );
    rows.push(
        Row::new(
            Capability::Tools,
            ApiSurface::Import,
            "list the tools that were granted",
            list,
            more,
        )
        .with(&["script", "files"]),
    );
    rows
}

fn secrets() -> Vec<Row> {
    let row = |tried: &str, deed, control| {
        Row::new(Capability::Secrets, ApiSurface::Import, tried, deed, control)
            .on(ServicesSource::Ours)
    };
    let get = |plugin, name: &str, plain: bool, expect| {
        Action::new(plugin, "secret", json!({ "name": name, "plain": plain }), expect)
    };
    let masked = || get("secretive", "api-key", true, Expect::answer("it is [redacted]"));
    let refused = || Expect::Refused(None, RefusalText::Request("secrets"));
    // Spelt so that nobody recognizes it.
    let spelt = |plugin: &str| {
        let secret = format!("{SECRET}{}", crate::plugins::id(plugin));
        Expect::answer(secret.chars().map(|c| format!("{c} ")).collect::<String>())
    };
    // The plugin has it, and says it in a way that nothing masks.
    let has = |plugin| {
        let spelt = get(plugin, "api-key", false, spelt(plugin));
        Control::never(spelt, "a secret is masked wherever it is seen")
    };
    let used = get("secretive", "api-key", false, spelt("secretive"));
    let logged = ExpectedLog {
        present: "the secret is [redacted]",
        least: 1,
        most: 1,
        rate: 0,
        absent: Some(SECRET),
    };
    // The arguments of a call are recorded, whoever has put a secret into them.
    let name = format!("{SECRET}{}", crate::plugins::id("recorded"));
    let recorded = get("recorded", &name, true, refused());
    let recorded = AttemptKind::Recorded(recorded, SECRET, "\"name\":\"[redacted]\"");
    let mut record = Row::trying(
        Capability::Secrets,
        ApiSurface::Import,
        "write a secret into the record of calls",
        "a record in which it is masked",
        recorded,
        has("recorded"),
    );
    record.variant = ServicesSource::Ours;
    let unset = Expect::Says(&["the secret unset is not set"]);
    let unset = get("secretive", "unset", true, unset);
    // Of one that is not granted it is not even told whether somebody has set it.
    let unset_control = Control::Refused(unset.by("narrow-asking", refused()));
    let other = || Expect::Says(&["the secret other is not set"]);
    let both = |deed: &Action, expect| {
        Control::Call(deed.by("both-asking", expect), AttemptEffects::default())
    };
    let not_granted = get("secretive", "other", true, refused());
    let not_approved = get("narrow-asking", "api-key", true, refused());
    let not_requested = get("wide-asking", "other", true, refused());
    let (granted, set) = (both(&not_granted, other()), Expect::answer("it is [redacted]"));
    let (approved, requested) = (both(&not_approved, set), both(&not_requested, other()));
    let refused = Control::Refused(used.by("narrow-asking", refused()));
    vec![
        row("use a secret that was granted", used, refused),
        row("answer with a secret", masked(), has("secretive")),
        row("log a secret", masked().logged(logged), has("secretive")),
        row("use a secret that is not set", unset, unset_control).then(masked()),
        row("use a secret that was not granted", not_granted, granted).then(masked()),
        row("use a secret that was requested and not approved", not_approved, approved),
        row("use a secret that was approved and not requested", not_requested, requested),
        record,
    ]
}

/// What services are told by a plugin.
fn told(plugin: &str, what: &str) -> AttemptEffects {
    AttemptEffects {
        services: vec![format!("conformance-{plugin} {what}")],
        ..AttemptEffects::default()
    }
}

fn messaging(PluginsByGrant { by, plugin, free, .. }: PluginsByGrant) -> Vec<Row> {
    let row =
        |tried: &str, deed, control| Row::new(Capability::Messaging, by, tried, deed, control);
    let denied = |arguments, what| {
        let deed = refused(plugin, "send", arguments, "messaging");
        let control = Control::call(&deed, free, "sent").leaving(told(free, what));
        (deed, control)
    };
    let well = || well(plugin);
    let send = answered(plugin, "send", json!({ "channel": "ops", "text": "hi" }), "sent");
    let refusal = Expect::Refused(None, RefusalText::Request("messaging"));
    let not_send = Control::Refused(send.by(bare(by), refusal));
    let (other, may_other) = denied(json!({ "channel": "all", "text": "hi" }), "to all: hi");
    let (user, may_user) = denied(json!({ "text": "hi" }), "to the user: hi");
    vec![
        row("send a message to a channel that was granted", send, not_send)
            .leaves(told(plugin, "to ops: hi")),
        row("send a message to another channel", other, may_other).then(well()),
        row("send a message to the user", user, may_user).then(well()),
    ]
}

/// A component of which nothing is granted has no import for it, so that a script is the control.
fn memory(PluginsByGrant { by, plugin, .. }: PluginsByGrant) -> Vec<Row> {
    let tried = "search the memory, which finds more than was asked for";
    let search = answered(plugin, "recall", json!({ "query": "tea" }), "tea 0; tea 1; tea 2");
    let refusal = Expect::Refused(None, RefusalText::Request("memory"));
    let control = Control::Refused(search.by("bare-script", refusal));
    let row = Row::new(Capability::Memory, by, tried, search, control);
    vec![row.leaves(told(plugin, "searches tea"))]
}

fn providers(PluginsByGrant { by, plugin, free, .. }: PluginsByGrant) -> Vec<Row> {
    let row =
        |tried: &str, deed, control| Row::new(Capability::Providers, by, tried, deed, control);
    let ask = |model: &str| json!({ "model": model, "prompt": "may I?" });
    let known = answered(plugin, "ask", ask("conformance-witness/known"), "yes");
    let refusal = Expect::Refused(None, RefusalText::Request("providers"));
    let bare = Control::Refused(known.by(bare(by), refusal));
    let other = refused(plugin, "ask", ask("conformance-witness/other"), "providers");
    let may_other = Control::call(&other, free, "yes").leaving(called(&["model other"]));
    let short = refused(plugin, "ask", ask("known"), "providers");
    let may_short = Control::call(&short, free, "yes").leaving(called(&["model known"]));
    vec![
        row("ask a model that was granted", known, bare).leaves(called(&["model known"])),
        row("ask another model", other, may_other).then(well(plugin)),
        row("ask a model by another name", short, may_short).then(well(plugin)),
    ]
}

fn tools(PluginsByGrant { by, plugin, free, .. }: PluginsByGrant) -> Vec<Row> {
    let row = |tried: &str, deed, control| Row::new(Capability::Tools, by, tried, deed, control);
    let refusal = || Expect::Refused(None, RefusalText::Request("tools"));
    let bare = Control::Refused(well(plugin).by(bare(by), refusal()));
    let other = refused(plugin, "call", call("conformance-witness__other", json!({})), "tools");
    let may_other = Control::call(&other, free, "other was called").leaving(called(&["other {}"]));
    let none = refused(plugin, "call", call("conformance-nobody__x", json!({})), "tools");
    // Where any may be called, it is told that there is none.
    let may_none = Expect::Says(&["conformance-nobody__x"]);
    let may_none = Control::Call(none.by(free, may_none), AttemptEffects::default());
    vec![
        row("call a tool that was granted", well(plugin), bare).leaves(called(&["echo {}"])),
        row("call another tool", other, may_other).then(well(plugin)),
        row("call a tool that does not exist", none, may_none).then(well(plugin)),
    ]
}

/// Who asks in this way, and was granted nothing of it.
fn bare(by: ApiSurface) -> &'static str {
    match by {
        ApiSurface::Rhai => "bare-script",
        _ => "little-asking",
    }
}

/// What was approved holds, if it was requested; what was requested holds, if it was approved.
fn approved(PluginsByGrant { by, both, .. }: PluginsByGrant) -> Vec<Row> {
    let (narrow, wide) = match by {
        ApiSurface::Rhai => ("narrow-script", "wide-script"),
        _ => ("narrow-asking", "wide-asking"),
    };
    let row = |capability, tried: &str, deed, control| {
        Row::new(capability, by, tried, deed, control).on(ServicesSource::Ours)
    };
    let send = || json!({ "text": "hi" });
    let ask = || json!({ "model": "conformance-witness/other", "prompt": "may I?" });
    let other = || call("conformance-witness__other", json!({}));
    let echo = well(narrow);
    let refusal = Expect::Refused(None, RefusalText::Request("tools"));
    let not = Control::Refused(
        echo.by(if by == ApiSurface::Rhai { wide } else { "little-asking" }, refusal),
    );
    let mut rows = vec![
        row(Capability::Tools, "call a tool that was requested and approved", echo, not)
            .leaves(called(&["echo {}"])),
    ];
    for (what, plugin) in [
        ("what was requested and not approved", narrow),
        ("what was approved and not requested", wide),
    ] {
        let sent = refused(plugin, "send", send(), "messaging");
        let asked = refused(plugin, "ask", ask(), "providers");
        let calls = refused(plugin, "call", other(), "tools");
        let may_send = Control::call(&sent, both, "sent").leaving(told(both, "to the user: hi"));
        let may_ask = Control::call(&asked, both, "yes").leaving(called(&["model other"]));
        let may_call =
            Control::call(&calls, both, "other was called").leaving(called(&["other {}"]));
        rows.extend([
            row(Capability::Messaging, &format!("send a message, which is {what}"), sent, may_send),
            row(Capability::Providers, &format!("ask a model, which is {what}"), asked, may_ask),
            row(Capability::Tools, &format!("call a tool, which is {what}"), calls, may_call),
        ]);
    }
    rows
}

/// What still works: a call of a tool.
fn well(plugin: &'static str) -> Action {
    answered(plugin, "call", call("conformance-witness__echo", json!({})), "echo was called")
}

fn call(name: &str, arguments: Value) -> Value {
    json!({ "name": name, "arguments": arguments })
}

fn called(with: &[&str]) -> AttemptEffects {
    AttemptEffects { called: lines(with), ..AttemptEffects::default() }
}
