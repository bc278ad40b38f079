//! Rows: which rule decides of which call.

use serde_json::{Value, json};

use super::*;
use crate::call_rule::ArgumentPointer;
use crate::config::Config;

fn config(text: &str) -> Config {
    Config::parse(text, "/tenon.toml").unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The policy of a tool of the only configuration, and what it decides of a call.
fn decided(text: &str, hints: ToolAnnotations, facts: &CallFacts<'_>) -> (CallDecision, String) {
    let rules = CallRules::new(&[config(text)]);
    let policy = rules.of("files__write", "files__write", PluginOrigin::Config.into(), hints);
    let CallVerdict { decision, by } = policy.decide(facts);
    // What tries the rules one by one comes to the same.
    let spoke = policy.trials(facts).into_iter().filter(RuleTrial::speaks);
    let denied = spoke.clone().any(|trial| trial.decision == CallDecision::Deny);
    match (&by, denied) {
        (DecidedBy::Rule(_), true) => assert_eq!(decision, CallDecision::Deny, "{text}"),
        (DecidedBy::Rule(source), false) => {
            assert_eq!(spoke.clone().next().map(|trial| trial.source).as_ref(), Some(source));
        }
        (DecidedBy::Mode(_), _) => assert_eq!(spoke.count(), 0, "{text}"),
    }
    (decision, by.to_string())
}

fn facts(arguments: &Value) -> CallFacts<'_> {
    CallFacts { arguments, principal: None, profile: None }
}

fn unknown() -> ToolAnnotations {
    ToolAnnotations::default()
}

const ALLOW: CallDecision = CallDecision::Allow;
const ASK: CallDecision = CallDecision::Ask;
const DENY: CallDecision = CallDecision::Deny;

#[test]
fn deny_wins_and_else_the_first_rule_that_fits() {
    let check = |text: &str, expected: CallDecision, by: &str| {
        let arguments = json!({ "path": "/work/a" });
        let (decision, decided_by) = decided(text, unknown(), &facts(&arguments));
        assert_eq!((decision, decided_by.as_str()), (expected, by), "{text}");
    };
    let trusting = "the mode `trusting`, which allows calls of which no rule says anything";
    check("", ALLOW, trusting);
    check("tools.\"git__*\".approve = \"deny\"", ALLOW, trusting);
    let exact = "`approve` under [tools.\"files__write\"] of /tenon.toml";
    let stars = "`approve` under [tools.\"*\"] of /tenon.toml";
    check("tools.\"*\".approve = \"ask\"\ntools.files__write.approve = \"allow\"", ALLOW, exact);
    check("tools.\"*\".approve = \"deny\"\ntools.files__write.approve = \"allow\"", DENY, stars);
    check("tools.\"*\".approve = \"allow\"\ntools.files__write.approve = \"deny\"", DENY, exact);
    let when = |first: &str, second: &str| {
        format!(
            "[tools.files__write]\napprove = \"ask\"\n\
             [[tools.files__write.when]]\napprove = \"{first}\"\narguments.\"/path\".glob = \"/work/*\"\n\
             [[tools.files__write.when]]\napprove = \"{second}\"\narguments.\"/path\".equals = \"/work/a\"\n"
        )
    };
    let number = |n| format!("[[tools.\"files__write\".when]] number {n} of /tenon.toml");
    check(&when("allow", "ask"), ALLOW, &number(1));
    check(&when("ask", "allow"), ASK, &number(1));
    check(&when("allow", "deny"), DENY, &number(2));
}

#[test]
fn arguments_are_tested() {
    let check = |test: &str, value: Value, fits: Fit| {
        for (decision, speaks) in [(ALLOW, fits == Fit::Yes), (DENY, fits != Fit::No)] {
            let default = if decision == ALLOW { "deny" } else { "allow" };
            let word = decision.as_str();
            let text = format!(
                "policy.calls = \"{}\"\n[[tools.\"*\".when]]\napprove = \"{word}\"\narguments.\"/v\" = {{ {test} }}",
                if default == "deny" { "locked" } else { "trusting" },
            );
            let arguments = json!({ "v": value });
            let (decided, _) = decided(&text, unknown(), &facts(&arguments));
            assert_eq!(decided == decision, speaks, "{test} {value} {word}");
        }
    };
    check("equals = 1", json!(1), Fit::Yes);
    check("equals = 1", json!(1.0), Fit::Yes);
    check("equals = 1", json!("1"), Fit::No);
    check("equals = 9007199254740993", json!(9_007_199_254_740_992_u64), Fit::No);
    // A float equals an integer that it is, and none that it would be rounded to.
    check("equals = 9007199254740995", json!(9_007_199_254_740_996.0), Fit::No);
    check("equals = 9007199254740996", json!(9_007_199_254_740_996.0), Fit::Yes);
    check("equals = 9007199254740996.0", json!(9_007_199_254_740_995_u64), Fit::No);
    check("equals = 9223372036854775807", json!(9_223_372_036_854_775_808.0), Fit::No);
    check("equals = 9223372036854775808.0", json!(9_223_372_036_854_775_808_u64), Fit::Yes);
    check("equals = 0", json!(-0.0), Fit::Yes);
    check("equals = -1", json!(-1.5), Fit::No);
    check("equals = 1", json!(1e300), Fit::No);
    check("equals = { a = [1, \"x\"] }", json!({ "a": [1.0, "x"] }), Fit::Yes);
    check("equals = { a = [1, \"x\"] }", json!({ "a": [1.0, "x"], "b": 1 }), Fit::No);
    check("equals = true", json!(true), Fit::Yes);
    // Texts that begin alike, are as long as each other, or are neither.
    for text in ["", "a", "12345678", "12345678a", "ééééé", "12345678\0"] {
        for other in
            ["", "\0", "a", "12345678", "12345678a", "12345678b", "123456789", "ééééé", "éééééx"]
        {
            let equals = format!("equals = {}", json!(text));
            check(&equals, json!(other), if text == other { Fit::Yes } else { Fit::No });
        }
        check(&format!("equals = {}", json!(text)), json!([text]), Fit::No);
    }
    check("equals = \"abc\", glob = \"a*\"", json!("abc"), Fit::Yes);
    check("glob = \"/work/**\"", json!("/work/a/b"), Fit::Yes);
    check("glob = \"/work/*\"", json!("/work/a/b"), Fit::No);
    check("glob = \"/work/*\"", json!("/work/.a"), Fit::Yes);
    check("glob = \"/work/**\"", json!("/etc/passwd"), Fit::No);
    check("glob = \"/work/**\"", json!("/work/../etc/passwd"), Fit::Unclear);
    check("glob = \"/etc/**\"", json!("/work/../etc/passwd"), Fit::Unclear);
    check("glob = \"/etc/**\"", json!("..\\\\etc"), Fit::Unclear);
    check("glob = \"/etc/**\"", json!("//etc/passwd"), Fit::Unclear);
    check("glob = \"/etc/*.conf\"", json!("/etc//x.conf"), Fit::Unclear);
    check("glob = \"/etc/**\"", json!("/etc/x/"), Fit::Yes);
    check("glob = \"https://a/**\"", json!("https://a/b"), Fit::Yes);
    check("glob = \"https://a/**\"", json!("https://a//b"), Fit::Unclear);
    check("glob = \"/etc/**\"", json!(["/etc/passwd"]), Fit::Unclear);
    // Programs stop at some control characters, and drop others.
    check("glob = \"**/*.txt\"", json!("/etc/passwd\0.txt"), Fit::Unclear);
    check("glob = \"/etc/**\"", json!("/work\n/a"), Fit::Unclear);
    check("glob = \"/work/**\"", json!("/work/a b%2e?#c"), Fit::Yes);
    check("glob = \"*.{md,txt}\"", json!("a.txt"), Fit::Yes);
    check("regex = \"[a-z]+\"", json!("abc"), Fit::Yes);
    check("regex = \"[a-z]+\"", json!("abc1"), Fit::No);
    check("regex = \"a|b\"", json!("xb"), Fit::No);
    check("regex = \"(?m)a$\"", json!("a\nrm"), Fit::No);
    check("regex = \"(?x) a # it is\"", json!("a"), Fit::Yes);
    check("regex = \"a\"", json!(1), Fit::Unclear);
    // Whether `.` is meant to match line feeds is unclear.
    check("regex = \"rm .*\"", json!("rm -rf x"), Fit::Yes);
    check("regex = \"rm .*\"", json!("rm -rf x\n"), Fit::Unclear);
    check("regex = \"rm .*\"", json!("rm -rf \\\r\n x"), Fit::Unclear);
    check("regex = \"rm .*\"", json!("ls\nrm -rf x"), Fit::No);
    check("regex = \"(?s)rm .*\"", json!("rm -rf x\n"), Fit::Yes);
    check("regex = \"(?-s)rm .*\"", json!("rm -rf x\n"), Fit::No);
    check("regex = \"rm [^;]*\"", json!("rm -rf x\n"), Fit::Yes);
    check("min = 1, max = 10", json!(10), Fit::Yes);
    check("min = 1, max = 10", json!(10.5), Fit::No);
    check("min = 1", json!(0), Fit::No);
    check("max = 10", json!("9"), Fit::Unclear);
    check("min = 0.5, max = 1.5", json!(1), Fit::Yes);
    check("min = 0.5, max = 1.5", json!(2), Fit::No);
    check("min = -1, max = 10", json!(u64::MAX), Fit::No);
    check("min = -1", json!(i64::MIN), Fit::No);
    // As floating-point numbers, these are equal.
    check("max = 9007199254740992", json!(9_007_199_254_740_992_u64), Fit::Yes);
    check("max = 9007199254740992", json!(9_007_199_254_740_993_u64), Fit::No);
    check("min = -9007199254740992", json!(-9_007_199_254_740_993_i64), Fit::No);
    check("max = 9007199254740995", json!(9_007_199_254_740_996.0), Fit::No);
    check("min = 9007199254740995", json!(9_007_199_254_740_994.0), Fit::No);
    check("min = 9007199254740996.0", json!(9_007_199_254_740_995_u64), Fit::No);
    check("max = -1", json!(-0.5), Fit::No);
    check("min = -1", json!(-1.5), Fit::No);
    check("max = 18446744073709551616.0", json!(u64::MAX), Fit::Yes);
    check("min = 18446744073709551616.0", json!(u64::MAX), Fit::No);
    check("glob = \"a*\", regex = \".*b\"", json!("axb"), Fit::Yes);
    check("glob = \"a*\", regex = \".*b\"", json!("ax"), Fit::No);
}

#[test]
fn a_pointer_points_where_rfc_6901_says() {
    let arguments = json!({ "a/b": { "c~d": [10, 20] }, "": 1, "0": 2 });
    let check = |text: &str, expected: Option<Value>| {
        let pointer = ArgumentPointer::try_from(text.to_string()).expect("it is a pointer");
        assert_eq!(pointer.find(&arguments).cloned(), expected, "{text}");
    };
    check("/a~1b/c~0d/1", Some(json!(20)));
    check("/a~1b/c~0d/01", None);
    check("/a~1b/c~0d/+1", None);
    check("/a~1b/c~0d/2", None);
    check("/a~1b/c~0d/-", None);
    check("/", Some(json!(1)));
    check("/0", Some(json!(2)));
    check("/b", None);
    check("", Some(arguments.clone()));
    for wrong in ["path", "/a~2", "/a~"] {
        assert!(ArgumentPointer::try_from(wrong.to_string()).is_err(), "{wrong}");
    }
}

#[test]
fn the_empty_pointer_points_at_all_arguments() {
    let text = "[[tools.\"*\".when]]\napprove = \"deny\"\narguments.\"\".equals = { a = 1 }";
    let check = |arguments: Value, expected| {
        assert_eq!(decided(text, unknown(), &facts(&arguments)).0, expected, "{arguments}");
    };
    check(json!({ "a": 1 }), DENY);
    check(json!({ "a": 1, "b": 2 }), ALLOW);
    check(json!({}), ALLOW);
    let rules = CallRules::new(&[config(text)]);
    let policy = rules.of("a__b", "a__b", PluginOrigin::Config.into(), unknown());
    let trials = policy.explain(&facts(&json!({}))).trials;
    assert_eq!(trials[0].conditions, [("arguments equals {\"a\":1}".to_string(), Fit::No)]);
}

#[test]
fn what_is_not_there_fits_no_condition() {
    for word in ["allow", "ask", "deny"] {
        let text = format!(
            "[[tools.\"*\".when]]\napprove = \"{word}\"\narguments.\"/v\".glob = \"**\"\n\
             [[tools.\"*\".when]]\napprove = \"{word}\"\nprincipals = [\"*\"]\n\
             [[tools.\"*\".when]]\napprove = \"{word}\"\nprofiles = [\"*\"]\n"
        );
        let (_, by) = decided(&text, unknown(), &facts(&json!({})));
        assert!(by.starts_with("the mode"), "{by}");
    }
}

#[test]
fn who_calls_decides() {
    let text = "policy.calls = \"locked\"\n\
        [[tools.\"*\".when]]\napprove = \"allow\"\nprincipals = [\"token:ada\", \"subject:team-*\"]\nprofiles = [\"coder\"]\n\
        [[tools.\"*\".when]]\napprove = \"ask\"\nprincipals = [\"*bob\"]\n";
    let check = |principal: &str, profile: Option<&str>, expected| {
        let arguments = json!({});
        let facts = CallFacts { arguments: &arguments, principal: Some(principal), profile };
        assert_eq!(decided(text, unknown(), &facts).0, expected, "{principal} {profile:?}");
    };
    check("token:ada", Some("coder"), ALLOW);
    check("subject:team-1", Some("coder"), ALLOW);
    check("token:ada", Some("other"), DENY);
    check("token:ada", None, DENY);
    check("token:bob", None, ASK);
    check("token:eve", Some("coder"), DENY);
}

#[test]
fn what_a_tool_says_of_itself_counts_where_it_is_believed() {
    let hints = |read_only, destructive, open_world| ToolAnnotations {
        read_only,
        destructive,
        idempotent: None,
        open_world,
    };
    let check = |text: &str, hints, expected: CallDecision| {
        let (decision, by) = decided(text, hints, &facts(&json!({})));
        assert_eq!(decision, expected, "{text} {hints:?} {by}");
    };
    let operator = |text: &str, effects: &str, expected| {
        let text = format!("tools.files__write.side_effects = \"{effects}\"\n{text}");
        check(&text, unknown(), expected);
    };
    let (yes, no) = (Some(true), Some(false));
    let careful = "policy.calls = \"careful\"";
    check(careful, unknown(), ASK);
    check(careful, hints(yes, None, None), ALLOW);
    // Who says both is not believed to destroy something by changing nothing.
    check(careful, hints(yes, yes, None), ALLOW);
    check(careful, hints(no, None, None), ASK);
    check(careful, hints(no, no, None), ALLOW);
    check(careful, hints(None, yes, None), ASK);
    operator(careful, "none", ALLOW);
    operator(careful, "idempotent", ASK);
    let when = |decision: &str, hint: &str, mode: &str| {
        format!(
            "policy.calls = \"{mode}\"\n[[tools.\"*\".when]]\napprove = \"{decision}\"\nannotations = [{hint}]"
        )
    };
    let dangerous = "\"destructive\", \"open-world\"";
    check(&when("ask", dangerous, "trusting"), unknown(), ASK);
    check(&when("ask", dangerous, "trusting"), hints(yes, None, no), ALLOW);
    check(&when("ask", dangerous, "trusting"), hints(yes, None, yes), ASK);
    check(&when("ask", dangerous, "trusting"), hints(None, no, None), ASK);
    check(&when("allow", "\"read-only\"", "locked"), unknown(), DENY);
    check(&when("allow", "\"read-only\"", "locked"), hints(yes, None, None), ALLOW);
    check(&when("allow", "\"idempotent\"", "locked"), hints(yes, None, None), ALLOW);
    operator(&when("allow", "\"idempotent\"", "locked"), "repeated", DENY);
    operator(&when("allow", "\"read-only\"", "locked"), "idempotent", DENY);
}

#[test]
fn a_profile_of_clients_has_its_own_mode() {
    let text = "policy.calls = \"careful\"\nprofiles.ci.calls = \"trusting\"\nprofiles.web.calls = \"locked\"";
    let check = |profile, expected| {
        let arguments = json!({});
        let facts = CallFacts { arguments: &arguments, principal: None, profile };
        assert_eq!(decided(text, unknown(), &facts).0, expected, "{profile:?}");
    };
    check(None, ASK);
    check(Some("other"), ASK);
    check(Some("ci"), ALLOW);
    check(Some("web"), DENY);
}

#[test]
fn nothing_is_decided_where_all_is_allowed() {
    let allows_all = |text: &str| {
        let rules = CallRules::new(&[config(text)]);
        rules.of("a__b", "a__b", PluginOrigin::Config.into(), unknown()).allows_all()
    };
    assert!(allows_all(""));
    assert!(allows_all("policy.calls = \"trusting\""));
    assert!(allows_all("tools.c__d.approve = \"deny\""));
    assert!(!allows_all("tools.a__b.approve = \"ask\""));
    assert!(!allows_all("policy.calls = \"careful\""));
    assert!(!allows_all("profiles.web.calls = \"locked\""));
}

#[test]
fn a_rule_that_cannot_be_read_is_an_error_with_its_line() {
    let check = |text: &str, expected: &str| {
        let error = Config::parse(text, "tenon.toml").unwrap_err().to_string();
        assert_eq!(error, expected);
    };
    let when = |line: &str| format!("[[tools.a.when]]\napprove = \"ask\"\n{line}");
    check(
        "[[tools.a.when]]\nannotations = [\"destructive\"]",
        "tenon.toml:1: missing field `approve`",
    );
    check(
        "tools.a.approve = \"maybe\"",
        "tenon.toml:1: unknown variant `maybe`, expected one of `allow`, `ask`, `deny`",
    );
    check(
        &when("arguments.path.equals = 1"),
        "tenon.toml:3: `path` is no JSON Pointer: it must begin with `/`, as in \"/path\"",
    );
    check(
        &when("arguments.\"/path\" = {}"),
        "tenon.toml:3: a test of an argument needs `equals`, `glob`, `regex`, `min` or `max`",
    );
    check(
        &when("arguments.\"/path\".globe = \"x\""),
        "tenon.toml:3: unknown field `globe`, expected one of `equals`, `glob`, `regex`, `min`, `max`; did you mean `glob`?",
    );
    check(
        &when("arguments.\"/path\".regex = \"a)(b\""),
        "tenon.toml:3: `a)(b` is no regular expression: unopened group",
    );
    check(
        &when("arguments.\"/path\".glob = \"[a\""),
        "tenon.toml:3: error parsing glob '[a': unclosed character class; missing ']'",
    );
    check(&when("profiles = []"), "tenon.toml:3: the list is empty; leave it out, or name one");
    check(&when("arguments.\"/n\".min = nan"), "tenon.toml:3: not a JSON number");
    for value in ["nan", "inf", "[{ a = -inf }]"] {
        check(
            &when(&format!("arguments.\"/n\".equals = {value}")),
            "tenon.toml:3: JSON has neither `nan` nor `inf`, so no argument equals them",
        );
    }
    for value in ["2024-01-01", "2024-01-01T10:00:00Z", "10:00:00", "[{ a = 2024-01-01 }]"] {
        let date = value.trim_matches(&['[', ']', '{', '}', ' ', 'a', '='][..]);
        check(
            &when(&format!("arguments.\"/day\".equals = {value}")),
            &format!(
                "tenon.toml:3: JSON has no dates and times, so no argument equals {date}; write it as a text: \"{date}\""
            ),
        );
    }
}

#[test]
fn a_rule_for_a_principal_that_nobody_is_is_noted() {
    let noted = |pattern: &str| {
        let text = format!(
            "[[tools.a.when]]\napprove = \"deny\"\nprincipals = [\"token:x\", \"{pattern}\"]"
        );
        let notes = call_rules_for_nobody(&[config(&text).into_read()]);
        notes.into_iter().map(|note| note.problem).collect::<Vec<_>>()
    };
    for pattern in [
        "*",
        "t*",
        "token*",
        "token:*",
        "token:guest",
        "subject:a b/c",
        "sub*ada",
        "*guest",
        "**",
        "token:*x*",
    ] {
        assert_eq!(noted(pattern), [""; 0], "{pattern}");
    }
    for pattern in
        ["badguy", "team-*", "tokens:x", "token:", "Token:x", "token", "", "user:ada", "tokn:*"]
    {
        let problem = format!(
            "[[tools.\"a\".when]] number 1 is for the principal {pattern:?}, which no client is"
        );
        assert_eq!(noted(pattern), [problem]);
    }
}

#[test]
fn a_rule_for_a_profile_that_is_not_there_is_noted() {
    let rule = |profiles: &str| {
        format!("[[tools.\"a__*\".when]]\napprove = \"deny\"\nprofiles = [{profiles}]\n")
    };
    let check = |project: &str, user: &str, expected: &[(&str, &str, Option<&str>)]| {
        let read = |config: Config| config.into_read();
        let mut configs = [read(config(project)), read(config(user).of_user())];
        configs[1].path = "/config.toml".into();
        Config::inherit(&mut configs);
        let notes = call_rules_for_nobody(&configs);
        let notes: Vec<_> = { notes.iter() }
            .map(|note| {
                (note.file.as_deref().unwrap(), note.problem.as_str(), note.remedy.as_deref())
            })
            .collect();
        assert_eq!(notes, expected, "{project} {user}");
    };
    let problem =
        "[[tools.\"a__*\".when]] number 1 is for the profile \"codr\", which is not there";
    let coder = "profiles.coder.calls = \"locked\"\n";
    check(&rule("\"coder\", \"default\", \"co*\", \"*\""), coder, &[]);
    check("", &format!("{coder}{}", rule("\"coder\"")), &[]);
    check(&rule("\"codr\""), coder, &[("/tenon.toml", problem, Some("did you mean \"coder\"?"))]);
    check(
        coder,
        &rule("\"codr\", \"default\""),
        &[("/config.toml", problem, Some("the user's profiles are: default"))],
    );
    let problem = "[[tools.\"a__*\".when]] number 1 is for the profile \"x*\", which is not there";
    let known = "the user's profiles are: coder, default";
    check(&rule("\"x*\""), coder, &[("/tenon.toml", problem, Some(known))]);
}

#[test]
fn a_project_does_not_vouch_for_its_tools_before_its_user() {
    let project = config("tools.\"*\".side_effects = \"none\"\ntools.\"*\".approve = \"allow\"");
    let user = config("policy.calls = \"careful\"").of_user();
    let mut configs = [project, user].map(Config::into_read);
    Config::inherit(&mut configs);
    let rules = CallRules::new(&configs);
    let policy = rules.of("files__write", "files__write", PluginOrigin::Config.into(), unknown());
    assert_eq!(policy.decide(&facts(&json!({}))).decision, ASK);
}

#[test]
fn what_a_user_allows_is_allowed_whatever_a_profile_says_else() {
    let user = config("tools.\"*\".approve = \"allow\"\nprofiles.web.calls = \"locked\"").of_user();
    let mut configs = [config(""), user].map(Config::into_read);
    Config::inherit(&mut configs);
    let rules = CallRules::new(&configs);
    let policy = rules.of("files__write", "files__write", PluginOrigin::User.into(), unknown());
    let arguments = json!({});
    let facts = CallFacts { profile: Some("web"), ..facts(&arguments) };
    assert_eq!(policy.decide(&facts).decision, ALLOW);
}
