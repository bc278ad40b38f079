//! Handshakes of both eras.

use super::server_requests::modern_with;
use super::*;
use crate::settings::{Features, HandshakeMode, Root};

// MCP.md: C1, C2, C3, C4
#[test]
fn the_handshake_comes_first_and_is_confirmed() {
    let mut client = client();
    let operation = client.connect(0, 100);
    let sent = written(&mut client);
    assert_eq!(sent[0]["method"], "initialize");
    assert_eq!(sent[0]["params"]["protocolVersion"], "2025-11-25");
    assert_eq!(sent[0]["params"]["clientInfo"]["name"], "test");
    receive(
        &mut client,
        json!({"id": 1, "result": {"protocolVersion": "2025-06-18", "capabilities": {}}}),
    );
    let actions = actions(&mut client);
    assert!(
        matches!(&actions[0], Action::Write { line, .. } if line.ends_with(br#""notifications/initialized"}"#))
    );
    assert!(matches!(&actions[1], Action::Finish(done, Ok(Outcome::Connected(server)))
        if *done == operation && server.revision == "2025-06-18"));
}

// MCP.md: C3
#[test]
fn a_revision_that_nobody_knows_is_an_error_that_names_it() {
    let mut client = client();
    client.connect(0, 100);
    receive(
        &mut client,
        json!({"id": 1, "result": {"protocolVersion": "1999-01-01", "capabilities": {}}}),
    );
    assert!(
        matches!(&finished(&mut client)[0].1, Err(Error::Protocol(text)) if text.contains("1999-01-01"))
    );
    assert!(client.server().is_none());
}

// MCP.md: C5
#[test]
fn a_handshake_is_never_cancelled() {
    let mut client = client();
    let operation = client.connect(0, 100);
    actions(&mut client);
    client.tick(100);
    let given_up = [Action::Abandon(1), Action::Finish(operation, Err(Error::Timeout))];
    assert_eq!(actions(&mut client), given_up);
}

// MCP.md: C5, C6
#[test]
fn whatever_a_server_says_before_its_introduction_it_is_not_asked_for_more() {
    let (mut client, operation) = connecting(HandshakeMode::Auto);
    assert_eq!(methods(&mut client), ["initialize"]);
    receive(&mut client, json!({"id": "p", "method": "ping"}));
    let pong = json!({"jsonrpc": "2.0", "id": "p", "result": {}});
    assert_eq!(written(&mut client), [pong]);
    let params = json!({"level": "info", "data": "starting"});
    receive(&mut client, json!({"method": "notifications/message", "params": params}));
    let message = "starting".into();
    assert_eq!(
        actions(&mut client),
        [Action::Log { level: LogLevel::Info, message, logger: None }]
    );
    receive(&mut client, json!({"method": "notifications/tools/list_changed"}));
    let early = [plain(&mut client, 0), client.list_tools(0, None)];
    let all = actions(&mut client);
    let [Action::Finish(one, Err(Error::Lost(_))), Action::Finish(two, Err(Error::Lost(_)))] =
        &all[..]
    else {
        panic!("{all:?}")
    };
    assert_eq!([*one, *two], early);
    receive(
        &mut client,
        json!({"id": 1, "result": {"protocolVersion": "2025-06-18", "capabilities": {}}}),
    );
    assert_eq!(era_of(&mut client, operation), Era::Legacy);
}

#[test]
fn a_server_that_ends_before_it_is_spoken_to_is_not_waited_for() {
    let why = |client: &mut Client| match finished(client).remove(0).1 {
        Err(Error::Lost(why)) => why,
        other => panic!("{other:?}"),
    };
    let mut client = client();
    client.starting();
    client.receive(b"usage: server".to_vec(), 0);
    client.failed_to_go_on("it exited");
    assert!(finished(&mut client).is_empty());
    client.connect(0, 90);
    assert!(why(&mut client).contains("it exited"));
    assert_eq!(client.words().collect::<Vec<_>>(), ["usage: server"]);

    // So it is when it was started once more.
    client.starting();
    client.connect(0, 90);
    client.lost("it went");
    assert!(actions(&mut client).contains(&Action::Restart));
    client.starting();
    client.lost("it went again");
    client.restarted(1);
    assert!(why(&mut client).contains("it went again"));

    // What became of the one before is nothing to the next.
    client.starting();
    client.lost("it went");
    client.starting();
    client.connect(0, 90);
    assert!(finished(&mut client).is_empty());
}

/// A client that has begun a handshake.
fn connecting(protocol: HandshakeMode) -> (Client, OperationId) {
    let mut client = with_settings(Settings { protocol, ..Settings::default() });
    let operation = client.connect(0, 90);
    (client, operation)
}

fn methods(client: &mut Client) -> Vec<String> {
    let sent = written(client).into_iter();
    sent.map(|message| message["method"].as_str().unwrap_or("none").to_string()).collect()
}

/// The answer of a server of the newer era to `server/discover`.
pub(super) fn discovered(id: u64) -> Value {
    json!({"id": id, "result": {
        "resultType": "complete", "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {}, "resources": {"subscribe": true}},
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "new", "version": "3"}},
    }})
}

fn refused(id: u64, code: i64) -> Value {
    json!({"id": id, "error": {"code": code, "message": "refused"}})
}

fn era_of(client: &mut Client, operation: OperationId) -> Era {
    match &finished(client)[..] {
        [(done, Ok(Outcome::Connected(server)))] if *done == operation => server.era,
        other => panic!("{other:?}"),
    }
}

// MCP.md: C8
#[test]
fn where_initialize_is_refused_the_newer_era_is_tried() {
    for code in [-32601, -32602, -32022, 1] {
        let (mut client, operation) = connecting(HandshakeMode::Auto);
        assert_eq!(methods(&mut client), ["initialize"]);
        receive(&mut client, refused(1, code));
        let sent = written(&mut client);
        assert_eq!(sent[0]["method"], "server/discover");
        let meta = &sent[0]["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        let tasks = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
        assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], tasks);
        assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "test");
        receive(&mut client, discovered(2));
        assert_eq!(era_of(&mut client, operation), Era::Modern);
        assert_eq!(client.server().unwrap().name, "new");
    }
}

#[test]
fn a_server_that_ends_at_initialize_is_started_again_for_the_newer_era() {
    let (mut client, operation) = connecting(HandshakeMode::Auto);
    actions(&mut client);
    client.lost("it ended");
    assert_eq!(actions(&mut client), [Action::Restart]);
    client.restarted(5);
    assert_eq!(methods(&mut client), ["server/discover"]);
    receive(&mut client, discovered(2));
    assert_eq!(era_of(&mut client, operation), Era::Modern);
}

#[test]
fn a_server_that_says_that_it_failed_is_started_again_only_if_the_era_may_be_why() {
    let check = |protocol, era, words: &str, again: bool| {
        let mut client = with_settings(Settings { protocol, era, ..Settings::default() });
        let operation = client.connect(0, 90);
        actions(&mut client);
        client.failed_to_go_on(words);
        match again {
            true => assert_eq!(actions(&mut client), [Action::Restart], "{words}"),
            false => {
                let lost = Err(Error::Lost(words.into()));
                assert_eq!(finished(&mut client), [(operation, lost)], "{words}");
            }
        }
    };
    let no_key = "exited with code 1; its last words:\nAPI_KEY is not set";
    check(HandshakeMode::Auto, None, no_key, false);
    check(HandshakeMode::Auto, Some(Era::Legacy), no_key, false);
    check(HandshakeMode::Auto, Some(Era::Modern), no_key, false);
    check(HandshakeMode::Probe, Some(Era::Modern), no_key, false);
    // It may be of the older era, and not bear what it does not know.
    check(HandshakeMode::Probe, None, no_key, true);
    for words in ["unknown method \"initialize\"", "Unsupported protocol version: 2025-11-25"] {
        check(HandshakeMode::Auto, None, words, true);
    }
}

#[test]
fn what_is_no_message_is_kept_until_the_handshake_is_over() {
    let mut client = client();
    client.starting();
    client.connect(0, 100);
    for line in ["", "Starting up\r", "usage: x"] {
        client.receive(line.into(), 0);
    }
    assert_eq!(client.words().collect::<Vec<_>>(), ["Starting up", "usage: x"]);
    for line in 0..20 {
        client.receive(format!("{line} {}", "x".repeat(10_000)).into_bytes(), 0);
    }
    assert_eq!((client.words().count(), client.words().map(str::len).max()), (8, Some(512)));
    client.starting();
    assert_eq!(client.words().count(), 0);
    client.receive(b"again".into(), 0);
    receive(
        &mut client,
        json!({"id": 1, "result": {"protocolVersion": "2025-06-18", "capabilities": {}}}),
    );
    client.receive(b"later".into(), 0);
    assert_eq!(client.words().count(), 0);
}

#[test]
fn where_both_eras_fail_both_errors_are_told_as_far_as_they_say_something() {
    let both = "to server/discover: refused (code -32000); and to initialize: refused";
    let rows = [
        (-32603, -32000, -32603, both),
        (-32603, -32601, -32603, "refused"),
        (-32601, -32603, -32603, "refused"),
        (-32601, -32601, -32601, "refused"),
    ];
    for (first, second, code, message) in rows {
        let (mut client, operation) = connecting(HandshakeMode::Auto);
        receive(&mut client, refused(1, first));
        receive(&mut client, refused(2, second));
        let message = message.to_string();
        let told = Err(Error::Rpc { code, message, data: None });
        assert_eq!(finished(&mut client), [(operation, told)]);
    }
}

#[test]
fn a_server_that_ends_each_time_ends_the_handshake() {
    let (mut client, operation) = connecting(HandshakeMode::Auto);
    client.lost("it exited with 1");
    client.restarted(1);
    actions(&mut client);
    client.lost("it exited with 2");
    let lost = Err(Error::Lost("it exited with 2".into()));
    assert_eq!(finished(&mut client), [(operation, lost)]);
    assert_eq!(client.deadline(), None);
}

#[test]
fn a_server_that_cannot_be_started_again_ends_the_handshake() {
    let (mut client, operation) = connecting(HandshakeMode::Auto);
    client.lost("it exited with 1");
    actions(&mut client);
    client.lost("it cannot be started");
    assert!(
        matches!(&finished(&mut client)[..], [(done, Err(Error::Lost(_)))] if *done == operation)
    );
}

#[test]
fn silence_at_initialize_ends_the_handshake() {
    let (mut client, operation) = connecting(HandshakeMode::Auto);
    client.tick(90);
    assert_eq!(finished(&mut client), [(operation, Err(Error::Timeout))]);
}

// MCP.md: C10
#[test]
fn a_probe_is_for_the_newer_era_first_and_short() {
    for answer in [Some(-32601), Some(-32000), None] {
        let (mut client, operation) = connecting(HandshakeMode::Probe);
        assert_eq!(methods(&mut client), ["server/discover"]);
        match answer {
            Some(code) => receive(&mut client, refused(1, code)),
            None => client.tick(30),
        }
        assert_eq!(methods(&mut client), ["initialize"]);
        receive(
            &mut client,
            json!({"id": 2, "result": {"protocolVersion": "2025-06-18", "capabilities": {}}}),
        );
        assert_eq!(era_of(&mut client, operation), Era::Legacy);
    }
}

// MCP.md: C10
#[test]
fn an_error_of_the_newer_era_is_no_reason_for_the_older() {
    for code in [-32020, -32021, -32022] {
        let (mut client, operation) = connecting(HandshakeMode::Probe);
        actions(&mut client);
        receive(&mut client, refused(1, code));
        assert!(
            matches!(&finished(&mut client)[..], [(done, Err(Error::Rpc { .. }))] if *done == operation)
        );
    }
}

// MCP.md: C12
#[test]
fn a_probe_that_was_too_early_is_made_once_more() {
    let (mut client, operation) = connecting(HandshakeMode::Probe);
    client.tick(30);
    assert_eq!(methods(&mut client), ["server/discover", "initialize"]);
    receive(&mut client, refused(2, -32022));
    assert_eq!(methods(&mut client), ["server/discover"]);
    receive(&mut client, discovered(3));
    assert_eq!(era_of(&mut client, operation), Era::Modern);
}

// MCP.md: C9
#[test]
fn a_server_that_supports_only_others_is_said_to() {
    let supported = |versions: Value| {
        let (mut client, _) = connecting(HandshakeMode::Modern);
        actions(&mut client);
        let data = json!({"supported": versions, "requested": "2026-07-28"});
        let error = json!({"code": -32022, "message": "no", "data": data});
        receive(&mut client, json!({"id": 1, "error": error}));
        client
    };
    let mut client = supported(json!(["2027-01-01"]));
    assert!(
        matches!(&finished(&mut client)[0].1, Err(Error::Protocol(text)) if text.contains("2027-01-01"))
    );
    // It contradicts itself; it is asked once more.
    let mut client = supported(json!(["2026-07-28"]));
    assert_eq!(methods(&mut client), ["server/discover"]);
    receive(&mut client, discovered(2));
    assert!(client.server().is_some());
}

#[test]
fn a_pinned_era_is_the_only_one() {
    let (mut client, _) = connecting(HandshakeMode::Legacy);
    actions(&mut client);
    receive(&mut client, refused(1, -32022));
    assert!(matches!(&finished(&mut client)[..], [(_, Err(Error::Rpc { code: -32022, .. }))]));
    let (mut client, _) = connecting(HandshakeMode::Modern);
    assert_eq!(methods(&mut client), ["server/discover"]);
    receive(&mut client, refused(1, -32601));
    assert!(matches!(&finished(&mut client)[..], [(_, Err(Error::Rpc { code: -32601, .. }))]));
}

// MCP.md: C11
#[test]
fn the_era_of_the_last_connection_is_tried_first_on_the_next() {
    let (mut client, _) = connecting(HandshakeMode::Auto);
    receive(&mut client, refused(1, -32601));
    receive(&mut client, discovered(2));
    client.lost("it exited with 1");
    actions(&mut client);
    client.connect(0, 90);
    assert_eq!(methods(&mut client), ["server/discover"]);
    // And when it is another one now, so is the era.
    receive(&mut client, refused(3, -32601));
    assert_eq!(methods(&mut client), ["initialize"]);
}

// MCP.md: D6
#[test]
fn a_server_that_is_silent_for_long_is_asked_whether_it_lives() {
    let mut client = with_settings(Settings { ping: Some(50), ..Settings::default() });
    client.connect(0, 100);
    assert_eq!(client.deadline(), Some(100));
    receive(
        &mut client,
        json!({"id": 1, "result": {"protocolVersion": "2025-11-25", "capabilities": {}}}),
    );
    actions(&mut client);
    assert_eq!(client.deadline(), Some(50));
    // While it owes an answer, it is not.
    let operation = plain(&mut client, 10);
    assert_eq!(client.deadline(), Some(110));
    actions(&mut client);
    client.receive(br#"{"id":2,"result":{}}"#.to_vec(), 40);
    assert_eq!(finished(&mut client)[0].0, operation);
    assert_eq!(client.deadline(), Some(90));
    client.tick(90);
    assert_eq!(methods(&mut client), ["ping"]);
    client.receive(br#"{"id":3,"error":{"code":-32601,"message":""}}"#.to_vec(), 95);
    assert!(actions(&mut client).is_empty());
    client.tick(145);
    assert_eq!(methods(&mut client), ["ping"]);
    client.tick(245);
    let actions = actions(&mut client);
    assert!(actions.iter().any(|action| matches!(action, Action::Disconnect(_))), "{actions:?}");
}

/// There is no `ping` in the newer era.
// MCP.md: D7
#[test]
fn a_server_of_the_newer_era_is_never_asked_whether_it_lives() {
    let mut client = modern_with(Settings { ping: Some(50), ..Settings::default() });
    client.connect(0, 100);
    receive(&mut client, discovered(1));
    actions(&mut client);
    assert_eq!(client.deadline(), None);
    client.tick(10_000);
    assert!(actions(&mut client).is_empty());
}

// MCP.md: F5
#[test]
fn a_server_of_the_older_era_that_logs_is_told_once_how_much() {
    let check = |capabilities: Value, level: Option<&str>, expected: &[&str]| {
        let log_level = level.map(Into::into);
        let mut client = with_settings(Settings { log_level, ..Settings::default() });
        client.connect(0, 100);
        actions(&mut client);
        let answer = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities});
        receive(&mut client, json!({"id": 1, "result": answer}));
        let sent = written(&mut client);
        let methods: Vec<_> = sent.iter().map(|sent| sent["method"].clone()).collect();
        assert_eq!(methods, expected, "{level:?}");
        if let [_, told] = &sent[..] {
            assert_eq!(told["params"], json!({"level": "warning"}));
        }
        plain(&mut client, 0);
        assert_eq!(self::methods(&mut client), ["m"]);
    };
    let initialized = "notifications/initialized";
    check(json!({"logging": {}}), Some("warning"), &[initialized, "logging/setLevel"]);
    check(json!({"logging": {}}), None, &[initialized]);
    check(json!({}), Some("warning"), &[initialized]);
}

// MCP.md: F5
#[test]
fn a_server_of_the_newer_era_is_told_with_each_request_how_much_to_log() {
    for level in [Some("warning"), None] {
        let log_level = level.map(Into::into);
        let mut client = modern_with(Settings { log_level, ..Settings::default() });
        client.connect(0, 100);
        let mut sent = written(&mut client);
        receive(&mut client, discovered(1));
        client.list_tools(0, None);
        client.subscribe("file:///a", true, 0);
        client.request(of("tools/call"), 0);
        sent.extend(written(&mut client));
        let methods: Vec<_> = sent.iter().map(|sent| sent["method"].as_str().unwrap()).collect();
        let expected = ["server/discover", "tools/list", "subscriptions/listen", "tools/call"];
        assert_eq!(methods, expected);
        for request in sent {
            let told = request["params"]["_meta"].get("io.modelcontextprotocol/logLevel");
            assert_eq!(told.and_then(Value::as_str), level, "{request}");
        }
    }
}

// MCP.md: G1
#[test]
fn what_is_declared_is_what_there_is() {
    let declared = |settings| {
        let mut client = with_settings(settings);
        client.connect(0, 100);
        written(&mut client)[0]["params"]["capabilities"].clone()
    };
    assert_eq!(declared(Settings::default()), json!({}));
    let features = Features { forms: true, pages: true, sampling: true, roots: false };
    let roots = vec![Root { uri: "file:///a".into(), name: None }];
    assert_eq!(
        declared(Settings { features, roots, ..Settings::default() }),
        json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}})
    );
}

#[test]
fn a_server_that_introduces_itself_badly_is_taken_for_what_it_has() {
    let (mut client, operation) = connecting(HandshakeMode::Legacy);
    actions(&mut client);
    receive(
        &mut client,
        json!({"id": 1, "result": {
            "protocolVersion": "2025-06-18", "instructions": 5, "serverInfo": {"name": null, "version": 1},
            // An empty object, as some languages write it.
            "capabilities": {"tools": [], "prompts": null, "resources": false},
        }}),
    );
    assert_eq!(era_of(&mut client, operation), Era::Legacy);
    let server = client.server().unwrap();
    let has = server.capabilities;
    assert_eq!((has.tools, has.prompts, has.resources), (true, false, false));
    assert_eq!((&*server.name, &*server.version, &server.instructions), ("", "", &None));
    let (mut client, operation) = connecting(HandshakeMode::Legacy);
    actions(&mut client);
    let bare = json!({"protocolVersion": "2025-06-18", "capabilities": [], "serverInfo": "s"});
    receive(&mut client, json!({"id": 1, "result": bare}));
    assert_eq!(era_of(&mut client, operation), Era::Legacy);
}

#[test]
fn what_a_server_asked_before_it_was_started_again_is_not_answered() {
    let features = Features { forms: true, ..Features::default() };
    let mut client = with_settings(Settings { features, ..Settings::default() });
    client.connect(0, 90);
    actions(&mut client);
    receive(&mut client, json!({"id": "e", "method": "elicitation/create", "params": {}}));
    receive(&mut client, json!({"method": "notifications/tools/list_changed"}));
    let Some(Action::Ask { ask, .. }) = client.action() else { panic!() };
    client.lost("it exited with 1");
    assert_eq!(actions(&mut client), [Action::Withdraw(ask), Action::Restart]);
    client.restarted(1);
    actions(&mut client);
    client.answer(ask, Ok("{}".into()), 2);
    assert!(actions(&mut client).is_empty());
}

#[test]
fn an_error_that_both_eras_have_is_told_once() {
    let (mut client, _) = connecting(HandshakeMode::Auto);
    receive(&mut client, refused(1, -32603));
    receive(&mut client, refused(2, -32603));
    let ended = finished(&mut client).pop().unwrap().1;
    assert!(matches!(ended, Err(Error::Rpc { message, .. }) if message == "refused"));
}
