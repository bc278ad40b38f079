//! The network: requests through both editions of WASI and from scripts, and connections that are
//! none.

use serde_json::{Value, json};

use crate::action::{Action, Expect, RefusalText};
use crate::case::{ApiSurface, Capability};
use crate::plugins::ServicesSource;
use crate::row::{AttemptEffects, AttemptKind, Control, Row, answered, lines};
use crate::table::nothing::reachable;

/// The ways to send a request.
const WAYS: [ApiSurface; 3] = [ApiSurface::Wasi02, ApiSurface::Wasi03, ApiSurface::Rhai];

/// What a component is told whose request is not granted.
const DENIED: &str = "error: ErrorCode::HttpRequestDenied";

/// What comes of a request where it is granted.
enum GrantedResult {
    /// An answer, to this.
    Server(&'static str),
    /// The same of the server that others may not ask.
    Other(&'static str),
    /// A connection, by which nothing is said that the server understands.
    Connection,
    /// No server is there, as the system says.
    Nowhere,
}

use GrantedResult::{Connection, Nowhere, Other, Server};

/// Not granted, on a server that a part of is.
const ELSEWHERE: &[(&str, GrantedResult)] = &[
    ("http://{other}/ok/x", Other("GET /ok/x")),
    ("http://{server}/", Server("GET /")),
    ("http://{server}/ok", Server("GET /ok")),
    ("http://{server}/ok/../x", Server("GET /x")),
    ("http://{server}/ok/%2e%2e/x", Server("GET /x")),
    ("http://{server}/ok/..%2fx", Server("GET /ok/..%2fx")),
    ("https://{server}/ok/x", Connection),
    ("http://localhost:{port}/ok/x", Server("GET /ok/x")),
    ("http://127.0.0.2:{port}/ok/x", Nowhere),
    ("http://[::ffff:127.0.0.1]:{port}/ok/x", Server("GET /ok/x")),
];

/// This machine, which a pattern does not mean that does not name it.
const THIS_MACHINE: &[&str] = &[
    "http://{server}/ok",
    "http://localhost:{port}/ok",
    "http://2130706433:{port}/ok",
    "http://0x7f.1:{port}/ok",
    "http://[::ffff:127.0.0.1]:{port}/ok",
    "http://0.0.0.0:{port}/ok",
];

/// Where a pattern for everybody on the Internet does not lead: names, and addresses themselves; and
/// where a connection is made to when that address is named.
const INSIDE: &[(&str, &str)] = &[
    ("https://loopback.example.com/", "127.0.0.1:443"),
    ("https://private.example.com/", "10.0.0.5:443"),
    ("https://metadata.example.com/", "169.254.169.254:443"),
    ("http://metadata.example.com/latest/meta-data/", "169.254.169.254:80"),
    ("https://mapped.example.com/", "[::ffff:127.0.0.1]:443"),
    ("https://translated.example.com/", "[64:ff9b::7f00:1]:443"),
    ("https://unique-local.example.com/", "[fd00::1]:443"),
    ("https://unspecified.example.com/", "0.0.0.0:443"),
    ("https://10.0.0.5/", "10.0.0.5:443"),
    ("http://169.254.169.254/latest/meta-data/", "169.254.169.254:80"),
    ("https://[fd00::1]/", "[fd00::1]:443"),
    ("https://[::1]/", "[::1]:443"),
    ("https://[::ffff:10.0.0.5]/", "[::ffff:10.0.0.5]:443"),
];

/// What no grant covers that is no request.
const SOCKETS: &[(&str, &str)] = &[
    ("connect", "{server}"),
    ("listen", "127.0.0.1:0"),
    ("bind", "127.0.0.1:0"),
    ("send", "{server}"),
    ("look-up", "localhost"),
];

pub(super) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for by in WAYS {
        let url = "http://{server}/ok/x?y";
        let deed = get(web(by), by, url, ok());
        let refused = Control::Refused(deed.by(wild(by), denied(by)));
        let row_of = row(by, &format!("get {url}"), deed, refused);
        rows.push(row_of.leaves(heard(&["GET /ok/x?y"])));
        for (url, reached) in ELSEWHERE {
            let deed = get(web(by), by, url, denied(by));
            let control = match reached {
                Server(asked) => free(&deed, by, heard(&[asked])),
                Other(asked) => free(
                    &deed,
                    by,
                    AttemptEffects { other: lines(&[asked]), ..AttemptEffects::default() },
                ),
                Connection => {
                    let left = AttemptEffects { silent: 1, ..AttemptEffects::default() };
                    Control::Call(deed.by(free_web(by), garbled(by)), left)
                }
                Nowhere => {
                    Control::Call(deed.by(free_web(by), unreachable(by)), AttemptEffects::default())
                }
            };
            let row = row(by, &format!("get {url}"), deed, control);
            rows.push(row.then(get(web(by), by, "http://{server}/ok/well", ok())));
        }
        for url in THIS_MACHINE {
            let tried = format!("get {url}, with any host granted");
            let deed = get(wild(by), by, url, denied(by));
            let control = free(&deed, by, heard(&["GET /ok"]));
            // What would still work needs a network.
            rows.push(row(by, &tried, deed, control));
        }
        if by != ApiSurface::Rhai {
            rows.extend(of_components(by));
        }
        rows.extend(redirected(by));
        rows.extend(named(by));
        rows.extend(approved(by));
    }
    let well = || get("web", ApiSurface::Wasi02, "http://{server}/ok/well", ok());
    for (what, address) in SOCKETS {
        for (by, tool, denied, not_found) in [
            (
                ApiSurface::Wasi02,
                "sockets2",
                "error: access-denied by create",
                "error: permanent-resolver-failure by look-up",
            ),
            (
                ApiSurface::Wasi03,
                "sockets3",
                "error: AccessDenied by create",
                "error: PermanentResolverFailure by look-up",
            ),
        ] {
            let arguments = json!({ "what": what, "address": address });
            // There is not even a socket, whatever it would be for.
            let refused = if *what == "look-up" { not_found } else { denied };
            let deed = answered_with("web", tool, arguments, Expect::answer(refused));
            let row = row(by, &format!("{what} {address}"), deed, reachable());
            rows.push(row.then(well()));
        }
    }
    rows
}

/// What the server heard.
fn heard(requests: &[&str]) -> AttemptEffects {
    AttemptEffects { server: lines(requests), ..AttemptEffects::default() }
}

/// The same request by one who may, which is answered and leaves this.
fn free(deed: &Action, by: ApiSurface, left: AttemptEffects) -> Control {
    Control::Call(deed.by(free_web(by), ok()), left)
}

/// What is told where no server is.
fn unreachable(by: ApiSurface) -> Expect {
    match by {
        ApiSurface::Rhai => Expect::Says(&["connection refused"]),
        _ => Expect::answer("error: ErrorCode::ConnectionRefused"),
    }
}

/// The answer of a server that does not know TLS.
fn garbled(by: ApiSurface) -> Expect {
    match by {
        ApiSurface::Rhai => Expect::Says(GARBLED),
        _ => Expect::Tells(GARBLED),
    }
}

const GARBLED: &[&str] = &["TlsProtocolError", "ConnectionTerminated", "TLS", "connection"];

/// What only components can say of a request: its method, its headers, and who they are.
fn of_components(by: ApiSurface) -> Vec<Row> {
    let well = || get("web", by, "http://{server}/ok/well", ok());
    let send = |method: &str, url: &str, header: Option<&str>, expect| {
        let mut arguments = json!({ "method": method, "url": url });
        if let Some(header) = header {
            arguments["headers"] = json!([header]);
        }
        answered_with("web", tool(by), arguments, expect)
    };
    let said = |text| Expect::answer(text);
    let url = "http://{server}/ok/x";
    // The same request without what is wrong with it.
    let never =
        |why| Control::never(send("GET", url, None, ok()), why).leaving(heard(&["GET /ok/x"]));
    let post = send("POST", url, None, ok());
    let refused = Control::Refused(post.by("wild", denied(by)));
    let echo = send("POST", "http://{server}/echo", None, denied(by));
    let echoed = Control::Call(
        echo.by("free-web", Expect::Begins("200 POST /echo")),
        heard(&["POST /echo"]),
    );
    let somebody = said("error: ErrorCode::HttpRequestUriInvalid");
    let somebody = send("GET", "http://me@{server}/ok/x", None, somebody);
    let mut rows = vec![
        row(by, "post to http://{server}/ok/x, where every method is granted", post, refused)
            .leaves(heard(&["POST /ok/x"])),
        row(by, "post to http://{server}/echo, where GET is granted", echo, echoed).then(well()),
        row(
            by,
            "get http://me@{server}/ok/x, as somebody",
            somebody,
            never("who asks is said by a header"),
        )
        .then(well()),
    ];
    for header in ["Host: evil.example", "Upgrade: h2c", "Transfer-Encoding: chunked"] {
        let deed = send("GET", url, Some(header), said("error: HeaderError::Forbidden"));
        let tried = format!("get {url} with {header}");
        let why = "such headers are the host's to say";
        rows.push(row(by, &tried, deed, never(why)).then(well()));
    }
    for method in ["CONNECT", "TRACE"] {
        let expect = said("error: ErrorCode::HttpRequestMethodInvalid");
        let deed = send(method, url, None, expect);
        let why = "it asks for something else than what is at a URL";
        rows.push(row(by, &format!("send {method} to {url}"), deed, never(why)).then(well()));
    }
    rows
}

/// A redirect is another request.
fn redirected(by: ApiSurface) -> Vec<Row> {
    let asked = |to: &str| format!("GET /redirect?{to}");
    let well = || get(web(by), by, "http://{server}/ok/well", ok());
    let mut rows = Vec::new();
    for to in ["http://{other}/ok/x", "http://{server}/secret"] {
        let url = format!("http://{{server}}/redirect?{to}");
        let (server, other) = match to {
            "http://{server}/secret" => (lines(&["GET /secret"]), Vec::new()),
            _ => (Vec::new(), lines(&["GET /ok/x"])),
        };
        // Scripts follow, and components are told.
        let (expect, control) = match by {
            ApiSurface::Rhai => {
                let deed = get(web(by), by, &url, denied(by));
                let server = [vec![asked(to)], server].concat();
                (
                    denied(by),
                    free(&deed, by, AttemptEffects { server, other, ..AttemptEffects::default() }),
                )
            }
            _ => {
                let there = get("free-web", by, to, ok());
                let why = "no redirect is followed for a component, which asks again itself";
                let left = AttemptEffects { server, other, ..AttemptEffects::default() };
                (Expect::answer("302 "), Control::never(there, why).leaving(left))
            }
        };
        let tried = format!("follow a redirect to {to}");
        let row = row(by, &tried, get(web(by), by, &url, expect), control);
        rows.push(
            row.leaves(AttemptEffects { server: vec![asked(to)], ..AttemptEffects::default() })
                .then(well()),
        );
    }
    if by == ApiSurface::Rhai {
        let url = "http://{server}/redirect?/ok/x";
        let deed = get(web(by), by, url, ok());
        let refused = Control::Refused(deed.by(wild(by), denied(by)));
        rows.push(
            row(by, "follow a redirect to http://{server}/ok/x", deed, refused)
                .leaves(heard(&["GET /redirect?/ok/x", "GET /ok/x"])),
        );
    }
    rows
}

/// Names lead where they lead, and not inside.
fn named(by: ApiSurface) -> Vec<Row> {
    let plugin = names(by);
    let named = if by == ApiSurface::Rhai { "named-script" } else { "named-web" };
    let row = |tried: &str, deed, control| row(by, tried, deed, control).on(ServicesSource::Ours);
    let local = "http://localhost:{port}/ok";
    let well = || get(plugin, by, local, ok());
    let connected = |connected: &[&str]| AttemptEffects {
        connected: lines(connected),
        ..AttemptEffects::default()
    };
    let reached = || AttemptEffects { server: lines(&["GET /ok"]), ..connected(&["{server}"]) };
    let unreachable = || unreachable(by);
    // Who was granted nothing that is elsewhere.
    let wide = |deed: &Action| {
        let wide = if by == ApiSurface::Rhai { "both-script" } else { "both-web" };
        Control::Refused(deed.by(wide, denied(by)))
    };
    let is_named = get(plugin, by, local, ok());
    let not_named = wide(&is_named);
    let public = get(plugin, by, "https://public.example.com/", unreachable());
    let not_public = wide(&public);
    let mixed = get(plugin, by, "https://mixed.example.com/", unreachable());
    let not_mixed = wide(&mixed);
    let mut rows = vec![
        row("get http://localhost:{port}/ok, which is named", is_named, not_named)
            .leaves(reached()),
        row("get https://public.example.com/", public, not_public)
            .leaves(connected(&["8.8.8.8:443"]))
            .then(well()),
        row("get https://mixed.example.com/, which leads inside and out", mixed, not_mixed)
            .leaves(connected(&["8.8.8.8:443"]))
            .then(well()),
    ];
    for (url, address) in INSIDE {
        let deed = get(plugin, by, url, denied(by));
        let control = Control::Call(deed.by(named, unreachable()), connected(&[address]));
        rows.push(
            row(&format!("get {url}, where any host is granted"), deed, control).then(well()),
        );
    }
    let deed = get(plugin, by, "http://{server}/ok", denied(by));
    let control = Control::Call(deed.by(named, ok()), reached());
    let tried = "get http://{server}/ok, where any host is granted";
    rows.push(row(tried, deed, control).then(well()));
    let rebind = format!("https://rebind-{}.example.com/", by.to_string().replace('.', "-"));
    let first = get(plugin, by, &rebind, unreachable());
    let again = get(plugin, by, &rebind, denied(by));
    let inside = get(named, by, "https://private.example.com/", unreachable());
    let why = "a name means where it leads at that time";
    let control = Control::never(inside, why).leaving(connected(&["10.0.0.5:443"]));
    let mut rebound =
        row("get https://rebind.example.com/ twice, which leads inside at last", first, control);
    rebound.expectation.expected =
        "a connection to where it was found first, and a refusal when it leads inside".into();
    if let AttemptKind::Calls(deeds) = &mut rebound.attempt {
        deeds.push(again);
    }
    rows.push(rebound.leaves(connected(&["8.8.8.8:443"])).then(well()));
    let to = "http://metadata.example.com/";
    let url = format!("http://localhost:{{port}}/redirect?{to}");
    let asked = |more: &[&str]| AttemptEffects {
        server: vec![format!("GET /redirect?{to}")],
        ..connected(&[&["{server}"], more].concat())
    };
    let inside = "169.254.169.254:80";
    let (expect, control) = match by {
        ApiSurface::Rhai => {
            let deed = get(plugin, by, &url, denied(by));
            (denied(by), Control::Call(deed.by(named, unreachable()), asked(&[inside])))
        }
        _ => {
            let there = get(named, by, to, unreachable());
            let why = "no redirect is followed for a component, which asks again itself";
            (Expect::answer("302 "), Control::never(there, why).leaving(connected(&[inside])))
        }
    };
    let deed = get(plugin, by, &url, expect);
    let row = row("follow a redirect to http://metadata.example.com/", deed, control);
    rows.push(row.leaves(asked(&[])).then(well()));
    rows
}

/// What was approved holds, if it was requested; what was requested holds, if it was approved.
fn approved(by: ApiSurface) -> Vec<Row> {
    let row = |tried: &str, deed, control| row(by, tried, deed, control).on(ServicesSource::Ours);
    let both = if by == ApiSurface::Rhai { "both-script" } else { "both-web" };
    let unreachable = unreachable(by);
    let may = |deed: &Action, asked: &str| {
        let left = AttemptEffects { connected: lines(&["{server}"]), ..heard(&[asked]) };
        Control::Call(deed.by(both, ok()), left)
    };
    // Whoever requested any host did not name this one.
    let narrow = if by == ApiSurface::Rhai { "narrow-script" } else { "narrow-web" };
    let not_requested = get(narrow, by, "http://{server}/ok/x", denied(by));
    let not_approved = get(narrow, by, "http://public.example.com/", denied(by));
    let left = AttemptEffects { connected: lines(&["8.8.8.8:80"]), ..AttemptEffects::default() };
    let may_both = Control::Call(not_approved.by(both, unreachable), left);
    let may_one = may(&not_requested, "GET /ok/x");
    let mut rows = vec![
        row("get what was approved and not requested", not_requested, may_one),
        row("get what was requested and not approved", not_approved, may_both),
    ];
    if by != ApiSurface::Rhai {
        let (plugin, url) = ("wide-web", "http://{server}/secret");
        let well = get(plugin, by, "http://{server}/ok/well", ok());
        let deed = get(plugin, by, url, denied(by));
        let control = may(&deed, "GET /secret");
        let tried = "get what is beside a request that was more than approved";
        rows.push(row(tried, deed, control).then(well));
    } else {
        let deed = get("wide-script", by, "http://{server}/ok/x", denied(by));
        let control = may(&deed, "GET /ok/x");
        rows.push(row("get what was approved where nothing was requested", deed, control));
    }
    rows
}

fn row(by: ApiSurface, tried: &str, deed: Action, control: Control) -> Row {
    Row::new(Capability::Network, by, tried, deed, control)
}

/// A request, in the way of a plugin.
pub(super) fn get(plugin: &'static str, by: ApiSurface, url: &str, expect: Expect) -> Action {
    let arguments = match by {
        ApiSurface::Rhai => json!({ "url": url }),
        _ => json!({ "method": "GET", "url": url }),
    };
    answered_with(plugin, tool(by), arguments, expect)
}

fn answered_with(
    plugin: &'static str,
    tool: &'static str,
    arguments: Value,
    expect: Expect,
) -> Action {
    Action { expect, ..answered(plugin, tool, arguments, "") }
}

fn ok() -> Expect {
    Expect::answer("200 ok")
}

pub(super) fn denied(by: ApiSurface) -> Expect {
    let code = (by != ApiSurface::Rhai).then_some(DENIED);
    Expect::Refused(code, RefusalText::Request("network"))
}

fn tool(by: ApiSurface) -> &'static str {
    match by {
        ApiSurface::Wasi02 => "fetch2",
        ApiSurface::Wasi03 => "fetch3",
        _ => "fetch",
    }
}

fn web(by: ApiSurface) -> &'static str {
    if by == ApiSurface::Rhai { "script" } else { "web" }
}

fn wild(by: ApiSurface) -> &'static str {
    if by == ApiSurface::Rhai { "wild-script" } else { "wild" }
}

fn free_web(by: ApiSurface) -> &'static str {
    if by == ApiSurface::Rhai { "free-script" } else { "free-web" }
}

fn names(by: ApiSurface) -> &'static str {
    if by == ApiSurface::Rhai { "names-script" } else { "names" }
}
