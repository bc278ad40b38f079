//! The network: requests through both editions of WASI and from scripts, and connections that are
//! none.

use serde_json::{Value, json};

use crate::attempt::{Deed, Expect, Words};
use crate::expectation::{Access, Capability};
use crate::plugins::Stage;
use crate::row::{Row, Traces, answered, lines};

/// The ways to send a request.
const WAYS: [Access; 3] = [Access::Wasi02, Access::Wasi03, Access::Rhai];

/// What a component is told whose request is not granted.
const DENIED: &str = "error: ErrorCode::HttpRequestDenied";

/// Not granted, on a server that a part of is.
const ELSEWHERE: &[&str] = &[
    "http://{other}/ok/x",
    "http://{server}/",
    "http://{server}/ok",
    "http://{server}/ok/../x",
    "http://{server}/ok/%2e%2e/x",
    "http://{server}/ok/..%2fx",
    "https://{server}/ok/x",
    "http://localhost:{port}/ok/x",
    "http://127.0.0.2:{port}/ok/x",
    "http://[::ffff:127.0.0.1]:{port}/ok/x",
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

/// Where a pattern for everybody on the Internet does not lead: names, and addresses themselves.
const INSIDE: &[&str] = &[
    "https://loopback.example.com/",
    "https://private.example.com/",
    "https://metadata.example.com/",
    "http://metadata.example.com/latest/meta-data/",
    "https://mapped.example.com/",
    "https://translated.example.com/",
    "https://unique-local.example.com/",
    "https://unspecified.example.com/",
    "https://10.0.0.5/",
    "http://169.254.169.254/latest/meta-data/",
    "https://[fd00::1]/",
    "https://[::1]/",
    "https://[::ffff:10.0.0.5]/",
    "http://{server}/ok",
];

pub(super) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for by in WAYS {
        let heard = |lines: &[&str]| Traces { server: self::lines(lines), ..Traces::default() };
        rows.push(
            row(by, "get http://{server}/ok/x?y", get(web(by), by, "http://{server}/ok/x?y", ok()))
                .leaves(heard(&["GET /ok/x?y"])),
        );
        for url in ELSEWHERE {
            let row = row(by, &format!("get {url}"), get(web(by), by, url, denied(by)));
            rows.push(row.then(get(web(by), by, "http://{server}/ok/well", ok())));
        }
        for url in THIS_MACHINE {
            let tried = format!("get {url}, with any host granted");
            // What would still work needs a network.
            rows.push(row(by, &tried, get(wild(by), by, url, denied(by))));
        }
        if by != Access::Rhai {
            rows.extend(of_components(by));
        }
        rows.extend(redirected(by));
        rows.extend(named(by));
        rows.extend(approved(by));
    }
    let connect = answered_with(
        "web",
        "connect",
        json!({ "address": "{server}" }),
        Expect::Begins("error: "),
    );
    let well = get("web", Access::Wasi02, "http://{server}/ok/well", ok());
    rows.push(row(Access::Std, "connect to {server} without HTTP", connect).then(well));
    rows
}

/// What only components can say of a request: its method, its headers, and who they are.
fn of_components(by: Access) -> Vec<Row> {
    let heard = |lines: &[&str]| Traces { server: self::lines(lines), ..Traces::default() };
    let well = || get("web", by, "http://{server}/ok/well", ok());
    let send = |method: &str, url: &str, header: Option<&str>, expect| {
        let mut arguments = json!({ "method": method, "url": url });
        if let Some(header) = header {
            arguments["headers"] = json!([header]);
        }
        answered_with("web", tool(by), arguments, expect)
    };
    let said = |text| Expect::answer(text);
    let mut rows = vec![
        row(
            by,
            "post to http://{server}/ok/x, where every method is granted",
            send("POST", "http://{server}/ok/x", None, ok()),
        )
        .leaves(heard(&["POST /ok/x"])),
        row(
            by,
            "post to http://{server}/echo, where GET is granted",
            send("POST", "http://{server}/echo", None, denied(by)),
        )
        .then(well()),
        row(
            by,
            "get http://me@{server}/ok/x, as somebody",
            send(
                "GET",
                "http://me@{server}/ok/x",
                None,
                said("error: ErrorCode::HttpRequestUriInvalid"),
            ),
        )
        .then(well()),
    ];
    for header in ["Host: evil.example", "Upgrade: h2c", "Transfer-Encoding: chunked"] {
        let deed = send(
            "GET",
            "http://{server}/ok/x",
            Some(header),
            said("error: HeaderError::Forbidden"),
        );
        rows.push(row(by, &format!("get http://{{server}}/ok/x with {header}"), deed).then(well()));
    }
    for method in ["CONNECT", "TRACE"] {
        let deed = send(
            method,
            "http://{server}/ok/x",
            None,
            said("error: ErrorCode::HttpRequestMethodInvalid"),
        );
        rows.push(row(by, &format!("send {method} to http://{{server}}/ok/x"), deed).then(well()));
    }
    rows
}

/// A redirect is another request.
fn redirected(by: Access) -> Vec<Row> {
    let asked =
        |to: &str| Traces { server: vec![format!("GET /redirect?{to}")], ..Traces::default() };
    let well = || get(web(by), by, "http://{server}/ok/well", ok());
    let mut rows = Vec::new();
    for to in ["http://{other}/ok/x", "http://{server}/secret"] {
        let url = format!("http://{{server}}/redirect?{to}");
        // Scripts follow, and components are told.
        let expect = match by {
            Access::Rhai => denied(by),
            _ => Expect::answer("302 "),
        };
        let tried = format!("follow a redirect to {to}");
        rows.push(row(by, &tried, get(web(by), by, &url, expect)).leaves(asked(to)).then(well()));
    }
    if by == Access::Rhai {
        let url = "http://{server}/redirect?/ok/x";
        let server = lines(&["GET /redirect?/ok/x", "GET /ok/x"]);
        let deed = get(web(by), by, url, ok());
        rows.push(
            row(by, "follow a redirect to http://{server}/ok/x", deed)
                .leaves(Traces { server, ..Traces::default() }),
        );
    }
    rows
}

/// Names lead where they lead, and not inside.
fn named(by: Access) -> Vec<Row> {
    let (plugin, row) = (names(by), |tried: &str, deed| row(by, tried, deed).on(Stage::Ours));
    let local = "http://localhost:{port}/ok";
    let well = || get(plugin, by, local, ok());
    let connected =
        |connected: &[&str]| Traces { connected: lines(connected), ..Traces::default() };
    let reached = Traces { server: lines(&["GET /ok"]), ..connected(&["{server}"]) };
    let unreachable = || Expect::Says(&["ConnectionRefused", "connection refused", "Refused"]);
    let mut rows = vec![
        row("get http://localhost:{port}/ok, which is named", get(plugin, by, local, ok()))
            .leaves(reached),
        row(
            "get https://public.example.com/",
            get(plugin, by, "https://public.example.com/", unreachable()),
        )
        .leaves(connected(&["8.8.8.8:443"]))
        .then(well()),
        row(
            "get https://mixed.example.com/, which leads inside and out",
            get(plugin, by, "https://mixed.example.com/", unreachable()),
        )
        .leaves(connected(&["8.8.8.8:443"]))
        .then(well()),
    ];
    for url in INSIDE {
        let deed = get(plugin, by, url, denied(by));
        rows.push(row(&format!("get {url}, where any host is granted"), deed).then(well()));
    }
    let rebind = format!("https://rebind-{}.example.com/", by.to_string().replace('.', "-"));
    let first = get(plugin, by, &rebind, unreachable());
    let again = get(plugin, by, &rebind, denied(by));
    let mut rebound =
        row("get https://rebind.example.com/ twice, which leads inside at last", first);
    rebound.expectation.expected =
        "a connection to where it was found first, and a refusal when it leads inside".into();
    if let crate::row::Attempt::Calls(deeds) = &mut rebound.attempt {
        deeds.push(again);
    }
    rows.push(rebound.leaves(connected(&["8.8.8.8:443"])).then(well()));
    let url = "http://localhost:{port}/redirect?http://metadata.example.com/";
    let expect = match by {
        Access::Rhai => denied(by),
        _ => Expect::answer("302 "),
    };
    let asked = Traces {
        server: lines(&["GET /redirect?http://metadata.example.com/"]),
        ..connected(&["{server}"])
    };
    rows.push(
        row("follow a redirect to http://metadata.example.com/", get(plugin, by, url, expect))
            .leaves(asked)
            .then(well()),
    );
    rows
}

/// What was approved holds, if it was requested; what was requested holds, if it was approved.
fn approved(by: Access) -> Vec<Row> {
    let row = |tried: &str, deed| row(by, tried, deed).on(Stage::Ours);
    // Whoever requested any host did not name this one.
    let narrow = if by == Access::Rhai { "narrow-script" } else { "narrow-web" };
    let mut rows = vec![
        row(
            "get what was approved and not requested",
            get(narrow, by, "http://{server}/ok/x", denied(by)),
        ),
        row(
            "get what was requested and not approved",
            get(narrow, by, "http://public.example.com/", denied(by)),
        ),
    ];
    if by != Access::Rhai {
        let (plugin, url) = ("wide-web", "http://{server}/secret");
        let well = get(plugin, by, "http://{server}/ok/well", ok());
        rows.push(
            row(
                "get what is beside a request that was more than approved",
                get(plugin, by, url, denied(by)),
            )
            .then(well),
        );
    } else {
        let deed = get("wide-script", by, "http://{server}/ok/x", denied(by));
        rows.push(row("get what was approved where nothing was requested", deed));
    }
    rows
}

fn row(by: Access, tried: &str, deed: Deed) -> Row {
    Row::new(Capability::Network, by, tried, deed)
}

/// A request, in the way of a plugin.
pub(super) fn get(plugin: &'static str, by: Access, url: &str, expect: Expect) -> Deed {
    let arguments = match by {
        Access::Rhai => json!({ "url": url }),
        _ => json!({ "method": "GET", "url": url }),
    };
    answered_with(plugin, tool(by), arguments, expect)
}

fn answered_with(
    plugin: &'static str,
    tool: &'static str,
    arguments: Value,
    expect: Expect,
) -> Deed {
    Deed { expect, ..answered(plugin, tool, arguments, "") }
}

fn ok() -> Expect {
    Expect::answer("200 ok")
}

pub(super) fn denied(by: Access) -> Expect {
    let code = (by != Access::Rhai).then_some(DENIED);
    Expect::Refused(code, Words::Request("network"))
}

fn tool(by: Access) -> &'static str {
    match by {
        Access::Wasi02 => "fetch2",
        Access::Wasi03 => "fetch3",
        _ => "fetch",
    }
}

fn web(by: Access) -> &'static str {
    if by == Access::Rhai { "script" } else { "web" }
}

fn wild(by: Access) -> &'static str {
    if by == Access::Rhai { "wild-script" } else { "wild" }
}

fn names(by: Access) -> &'static str {
    if by == Access::Rhai { "names-script" } else { "names" }
}
