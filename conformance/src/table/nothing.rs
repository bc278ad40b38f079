//! Plugins that were granted nothing, that nobody has decided about, or that have changed since.

use serde_json::json;

use crate::action::{Action, Expect};
use crate::case::{ApiSurface, Capability};
use crate::plugins::{IMPORTING, ServicesSource};
use crate::row::{AttemptEffects, AttemptKind, Control, Row, answered, echo, lines, refused};
use crate::table::filesystem::{edition, refusal};
use crate::table::network::get;

pub(super) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for by in [ApiSurface::Std, ApiSurface::Wasi02, ApiSurface::Wasi03] {
        let well = || answered("bare-files", "roots", json!({}), "/");
        for (deed, path, answer, left) in [
            ("read", "/etc/passwd", Expect::Begins("ok "), ""),
            ("read", "{fixture}/pub/a.txt", Expect::answer("ok granted a"), ""),
            ("write", "{fixture}/pub/a.txt", Expect::answer("ok"), "pub/a.txt: \"written\""),
            ("list", "{fixture}/pub/deep", Expect::answer("ok c.txt"), ""),
            ("stat", "{fixture}/pub/a.txt", Expect::answer("ok 9"), ""),
            ("make-folder", "{fixture}/pub/new", Expect::answer("ok"), "pub/new: a folder"),
            ("unlink", "{fixture}/pub/a.txt", Expect::answer("ok"), "pub/a.txt: gone"),
        ] {
            let arguments = json!({ "edition": edition(by), "deed": deed, "path": path });
            let tried = Action::new("bare-files", "attempt", arguments, refusal(by, deed));
            let files = lines(&[left][usize::from(left.is_empty())..]);
            let left = AttemptEffects { files, ..AttemptEffects::default() };
            let control = Control::Call(tried.by("free-files", answer), left);
            rows.push(row(by, &format!("{deed} {path}"), tried, control).then(well()));
        }
        let arguments = json!({ "edition": edition(by) });
        let variables = answered("bare-files", "variables", arguments, "");
        let control = Control::call(&variables, "files", "SEEN=one SEEN_TOKEN=[redacted]");
        rows.push(row(by, "list the environment", variables, control));
    }
    rows.extend(connections());
    for (plugin, name, capability) in IMPORTING {
        let (words, control) = match capability {
            Some(capability) => (
                format!("the capability `{capability}` is not granted"),
                match *capability {
                    "network" => Control::Ready("web"),
                    "user" | "state" => Control::Ready("everything"),
                    // Only what the host itself makes of an entry for a server can have it.
                    "stdio-child" => {
                        Control::Never(Vec::new(), AttemptEffects::default(), NO_CHILDREN)
                    }
                    _ => Control::Ready("asking"),
                },
            ),
            None => (
                format!("it imports {name}, which this host does not have"),
                Control::Never(Vec::new(), AttemptEffects::default(), NO_INTERFACE),
            ),
        };
        let interface = name.split('@').next().unwrap_or(name);
        rows.push(load(&format!("be loaded with {interface}"), plugin, &words, control));
    }
    rows.extend([
        load(
            "be loaded with requests in it",
            "bare-web",
            "the capability `network` is not granted",
            Control::Ready("web"),
        ),
        load(
            "be loaded while nobody has decided",
            "undecided",
            "which is not approved",
            Control::Ready("decided"),
        )
        .on(ServicesSource::Ours),
        load(
            "be loaded with other code than was approved",
            "stale",
            "it has changed since it was approved",
            Control::Ready("decided"),
        )
        .on(ServicesSource::Ours),
    ]);
    let script = "bare-script";
    let witness =
        |called: &str| AttemptEffects { called: lines(&[called]), ..AttemptEffects::default() };
    let services = |what: &str| AttemptEffects {
        services: vec![format!("conformance-free-script {what}")],
        ..AttemptEffects::default()
    };
    for (tried, tool, arguments, capability, answer, left) in [
        (
            "get http://{server}/ok/x",
            "fetch",
            json!({ "url": "http://{server}/ok/x" }),
            "network",
            "200 ok",
            AttemptEffects { server: lines(&["GET /ok/x"]), ..AttemptEffects::default() },
        ),
        (
            "call a tool",
            "call",
            json!({ "name": "conformance-witness__echo", "arguments": {} }),
            "tools",
            "echo was called",
            witness("echo {}"),
        ),
        (
            "ask a model",
            "ask",
            json!({ "model": "conformance-witness/known", "prompt": "may I?" }),
            "providers",
            "yes",
            witness("model known"),
        ),
        (
            "send a message",
            "send",
            json!({ "text": "hi" }),
            "messaging",
            "sent",
            services("to the user: hi"),
        ),
        (
            "search the memory",
            "recall",
            json!({ "query": "tea" }),
            "memory",
            "tea 0; tea 1; tea 2",
            services("searches tea"),
        ),
        (
            "ask the user",
            "question",
            json!({ "message": "may I?" }),
            "user",
            "answered",
            services("asks the user: may I?"),
        ),
        (
            "keep state",
            "keep",
            json!({ "text": "mine" }),
            "state",
            "mine",
            AttemptEffects::default(),
        ),
    ] {
        let deed = refused(script, tool, arguments, capability);
        let control = Control::call(&deed, "free-script", answer).leaving(left);
        rows.push(row(ApiSurface::Rhai, tried, deed, control).then(echo(script)));
    }
    let by = ApiSurface::Rhai;
    let importing = Control::never(echo("script-not-importing"), "a script has no other code");
    let evaluating = Control::never(echo("script-not-importing"), "a script makes no code");
    rows.extend([
        loading(by, "import a file", "script-importing", "Too many modules imported", importing),
        loading(by, "make code of a text", "script-evaluating", "'eval' is disabled", evaluating),
    ]);
    rows
}

/// Why nothing shows a plugin with these interfaces.
const NO_CHILDREN: &str = "no manifest requests it: a host's own bridge has it";
const NO_INTERFACE: &str = "no host has it";

/// Files and connections, by a guest that answers the kind of the error.
fn connections() -> Vec<Row> {
    let (plugin, free, by) = ("bare-misbehaving", "free-misbehaving", ApiSurface::Std);
    let denied = || Expect::answer("PermissionDenied");
    let open = |plugin, text: &str, expect| {
        Action::new(plugin, "open_file", json!({ "text": text }), expect)
    };
    let file = open(plugin, "{fixture}/pub/a.txt", denied());
    let control = Control::call(&file, free, "granted a");
    let above = open(plugin, "{up}etc/passwd", denied());
    let shown = open(free, "/etc/passwd", Expect::Begins("root:"));
    let never = Control::never(shown, "a path does not lead out of the folder that it begins in");
    let connect = Action::new(plugin, "connect_to", json!({ "text": "{server}" }), denied());
    vec![
        row(by, "open {fixture}/pub/a.txt", file, control).then(echo(plugin)),
        row(by, "open {up}etc/passwd", above, never).then(echo(plugin)),
        row(by, "connect to {server}", connect, reachable()).then(echo(plugin)),
    ]
}

/// No grant covers a connection; that the server can be reached is shown by a request.
pub(super) fn reachable() -> Control {
    let left = AttemptEffects { server: lines(&["GET /ok/x"]), ..AttemptEffects::default() };
    let shown =
        get("free-web", ApiSurface::Wasi02, "http://{server}/ok/x", Expect::answer("200 ok"));
    Control::never(shown, "connections are made for requests only").leaving(left)
}

fn row(by: ApiSurface, tried: &str, deed: Action, control: Control) -> Row {
    Row::new(Capability::Nothing, by, tried, deed, control)
}

fn load(tried: &str, plugin: &'static str, words: &str, control: Control) -> Row {
    loading(ApiSurface::Import, tried, plugin, words, control)
}

fn loading(
    by: ApiSurface,
    tried: &str,
    plugin: &'static str,
    words: &str,
    control: Control,
) -> Row {
    let expected = format!("it is left out, and the host says: {words}");
    let attempt = AttemptKind::Load(plugin, words.into());
    Row::trying(Capability::Nothing, by, tried, expected, attempt, control)
}
