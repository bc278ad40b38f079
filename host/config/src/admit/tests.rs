use super::*;
use crate::config::Config;
use crate::discover::{Sources, discover};
use crate::manifest::RegistrationPermissions;
use crate::policy::Profile;
use crate::skills::PluginSkillFiles;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// What a project's file finds.
fn found(text: &str, file: &Path) -> Vec<Candidate> {
    let config = Config::parse(text, file).expect("it is read");
    discover(&Sources { configs: vec![config], ..Sources::default() }).candidates
}

/// A component that requests these values, in the syntax of `[capabilities]`.
fn component(requests: &str) -> Candidate {
    let text = format!("plugins.wasm = [{{ path = \"a.wasm\", capabilities = {{ {requests} }} }}]");
    found(&text, Path::new("/project/tenon.toml")).remove(0)
}

fn server() -> Candidate {
    let text = "plugins.mcp = [{ name = \"s\", command = \"true\", \
                env = { A = \"${secret:KEY}\" } }]";
    let server = found(text, Path::new("/project/tenon.toml")).remove(0);
    Candidate { command: None, ..server }
}

const REQUEST: &str = "environment = [\"X\", \"Y\"]";

/// The rules of one configuration.
fn rules(text: &str) -> Rules {
    Rules::new(&[Config::parse(text, "/project/tenon.toml").expect("it is read")])
}

fn texts(capability: &str, values: &[&str]) -> BTreeMap<String, Vec<String>> {
    let values = values.iter().map(ToString::to_string).collect();
    BTreeMap::from([(capability.to_string(), values)])
}

/// The rules of nobody, with what was said of the component.
fn said(approval: GrantDecision) -> Rules {
    let mut approvals = Approvals::default();
    approvals.insert("a", Some(Digest::of("code")), approval);
    Rules::default().approve(approvals)
}

/// Why a candidate is refused, if it is.
fn why(candidate: &Candidate, rules: &Rules) -> Option<Refusal> {
    admit(candidate.clone(), rules).err()
}

#[test]
fn what_requests_something_is_admitted_with_what_was_approved_and_not_without() {
    let candidate = component(REQUEST);
    let not_approved = Refusal::NotApproved {
        plugin: "a".into(),
        requests: texts("environment", &["X", "Y"]),
        command: None,
        skills: Vec::new(),
    };
    assert_eq!(why(&candidate, &Rules::default()), Some(not_approved.clone()));
    assert_eq!(why(&candidate, &said(GrantDecision::Undecided)), Some(not_approved));
    let changes = vec![ApprovalChange::Component];
    let stale = Refusal::Stale { plugin: "a".into(), changes: changes.clone() };
    assert_eq!(why(&candidate, &said(GrantDecision::Stale(changes))), Some(stale));
    // What is no value of the capability is none of what was approved.
    let mut approved = texts("environment", &["X"]);
    approved.extend(texts("network", &["not a pattern"]));
    let admitted = admit(candidate, &said(approved.into())).expect("it is approved");
    let candidate = admitted.into_candidate();
    assert_eq!(candidate.id, "a");
    assert_eq!(candidate.grants.texts(), texts("environment", &["X"]));
    assert_eq!(candidate.approved, Some(Digest::of("code")));
    // What needs no approval gets none.
    let changes = vec![ApprovalChange::Component];
    assert_eq!(why(&component(""), &said(GrantDecision::Stale(changes))), None);
    assert_eq!(why(&component(""), &Rules::default()), None);
}

#[test]
fn a_command_that_a_project_names_is_approved_like_a_request() {
    let command =
        crate::approver::ServerParameters { program: Some("true".into()), ..Default::default() };
    let candidate = Candidate { command: Some(command), ..server() };
    let refusal = why(&candidate, &Rules::default()).expect("it is refused");
    assert_eq!(refusal.to_string(), "it runs `true`, which is not approved");
    assert_eq!(why(&Candidate { is_command_approved: true, ..candidate }, &Rules::default()), None);
    assert_eq!(why(&server(), &Rules::default()), None);
}

#[test]
fn nobody_is_asked_about_what_requests_nothing_or_is_refused_in_any_case() {
    let named = |id: &str, requests: &str| Candidate { id: id.into(), ..component(requests) };
    let locked = Candidate {
        lock_entry: Some(LockedDigests::Unreadable("x".into())),
        ..named("d", REQUEST)
    };
    let candidates = [named("a", REQUEST), named("b", ""), named("c", REQUEST), locked];
    let rules = rules("policy.deny = [\"c\"]");
    let wanted: Vec<&str> =
        Approvals::wanted(&candidates, &rules).map(|candidate| &*candidate.id).collect();
    assert_eq!(wanted, ["a"]);
    let check = |candidate: Candidate, content: Option<&str>, expected: bool| {
        let request = candidate.request_approval().0;
        assert_eq!(Approvals::can_ask(&request, content.map(Digest::of)), expected);
    };
    check(component(REQUEST), Some("code"), true);
    check(component(REQUEST), None, false);
    check(server(), None, true);
    check(server(), Some("code"), true);
}

#[test]
fn a_plugin_has_to_be_what_its_lock_file_says() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.wasm"), "code").unwrap();
    let candidate =
        found("plugins.wasm = [\"a.wasm\"]", &folder.path().join("tenon.toml")).remove(0);
    let [code, manifest, other] = ["code", "manifest", "other"].map(Digest::of);
    let file = PathBuf::from("tenon.lock");
    let bound = |code: Digest, manifest: Digest| Candidate {
        manifest: Some(Digest::of("manifest")),
        lock_entry: Some(LockedDigests::Bound { file: file.clone(), code, manifest, skills: None }),
        ..candidate.clone()
    };
    let refused = |what, expected, found| {
        let (origin, file) = (PluginOrigin::Config, file.clone());
        Some(Refusal::NotAsLocked {
            origin,
            file,
            what,
            expected: Some(expected),
            found: Some(found),
        })
    };
    let check = |candidate: Candidate, expected: Option<Refusal>| {
        let contents = ContentDigests::read(std::slice::from_ref(&candidate));
        let rules = Rules::default().contents(contents);
        assert_eq!(rules.not_as_locked(&candidate), expected);
        assert_eq!(why(&candidate, &rules), expected);
    };
    check(candidate.clone(), None);
    check(bound(code, manifest), None);
    check(bound(other, manifest), refused("code", other, code));
    check(bound(code, other), refused("manifest", other, manifest));
    let unreadable = LockedDigests::Unreadable("x".into());
    let unreadable = Candidate { lock_entry: Some(unreadable), ..candidate.clone() };
    check(unreadable, Some(Refusal::Lock("x".into())));
    // What is not read is looked at when it is loaded.
    assert_eq!(why(&bound(other, manifest), &Rules::default()), None);
    let no_manifest = Candidate { manifest: None, ..bound(code, manifest) };
    let refusal = why(&no_manifest, &Rules::default()).expect("it is refused");
    let found = format!("expected {}, found none", manifest.named());
    assert_eq!(refusal.to_string(), format!("its manifest does not match tenon.lock: {found}"));
}

/// A plugin with a skill that says this.
fn with_skill(candidate: Candidate, text: &str) -> Candidate {
    let mut files = PluginSkillFiles::default();
    let text = format!("---\nname: review\ndescription: x\n---\n{text}");
    files.insert("review/SKILL.md".into(), text.into()).unwrap();
    let skills = files.skills(Path::new("")).unwrap().map(Arc::new);
    Candidate { skills, ..candidate }
}

#[test]
fn skills_are_approved_like_a_request() {
    let candidate = with_skill(component(""), "1");
    let refusal = why(&candidate, &Rules::default()).expect("it is refused");
    assert_eq!(refusal.to_string(), "it carries skills (review), which is not approved");
    assert!(refusal.awaits_approval());
    assert_eq!(why(&candidate, &said(BTreeMap::new().into())), None);
    let request = candidate.request_approval().0;
    assert_eq!(request.skills, candidate.skills);
    // Of a server they are none of the code, and nobody could have approved them with its project.
    let server = Candidate { is_command_approved: true, ..with_skill(server(), "1") };
    assert!(why(&server, &Rules::default()).is_some());
}

#[test]
fn skills_have_to_be_what_a_lock_file_says() {
    let manifest = Digest::of("manifest");
    let bound = |candidate: Candidate, skills: Option<Digest>| {
        let (file, code) = (PathBuf::from("tenon.lock"), Digest::of("code"));
        let lock_entry = Some(LockedDigests::Bound { file, code, manifest, skills });
        Candidate { manifest: Some(manifest), lock_entry, ..candidate }
    };
    let with = |text: &str| with_skill(component(""), text);
    let digest = |candidate: &Candidate| candidate.skills.as_ref().map(|skills| skills.digest());
    let (one, other) = (digest(&with("1")), digest(&with("2")));
    let check = |candidate: Candidate, expected: Option<&str>| {
        let refusal = Rules::default().not_as_locked(&candidate);
        assert_eq!(refusal.map(|refusal| refusal.to_string()).as_deref(), expected);
    };
    check(bound(component(""), None), None);
    check(bound(with("1"), one), None);
    let said = |expected: Option<Digest>, found: Option<Digest>| {
        let [expected, found] = [expected, found]
            .map(|digest| digest.map_or("none".to_string(), |digest| digest.named()));
        format!("its skills do not match tenon.lock: expected {expected}, found {found}")
    };
    check(bound(with("1"), other), Some(&said(other, one)));
    check(bound(with("1"), None), Some(&said(None, one)));
    check(bound(component(""), one), Some(&said(one, None)));
}

#[test]
fn rules_stay_when_others_come() {
    let candidate = component(REQUEST);
    let approvals = || {
        let mut approvals = Approvals::default();
        approvals.insert("a", None, texts("environment", &["X"]).into());
        approvals
    };
    let add = |rules: Rules| {
        rules.approve(approvals()).contents(ContentDigests::default()).reserve(["b".to_string()])
    };
    assert_eq!(why(&candidate, &add(Rules::default())), None);
    let denied = why(&candidate, &add(rules("policy.deny = [\"a\"]"))).expect("it is refused");
    assert!(denied.is_meant());
    let reserved = add(Rules::default()).reserve(["a".to_string()]).approve(approvals());
    assert_eq!(why(&candidate, &reserved), Some(Refusal::Reserved));
    let b = Candidate { id: "b".into(), ..component("") };
    assert_eq!(why(&b, &reserved.contents(ContentDigests::default())), Some(Refusal::Reserved));
}

#[test]
fn a_policy_is_told_of_processes_of_requests_and_of_what_comes_with_the_host() {
    let minimal = |candidate: &Candidate| why(candidate, &rules("policy.profile = \"minimal\""));
    let effect = |effect: &str| {
        let (profile, effect) = (Profile::Minimal, effect.to_string());
        let objection = PolicyRefusal::Profile { profile, effect };
        Some(Refusal::Policy { by: "/project/tenon.toml".into(), objection })
    };
    assert_eq!(minimal(&component("")), None);
    assert_eq!(minimal(&component(REQUEST)), effect("environment"));
    assert_eq!(minimal(&server()), effect("process"));
    assert_eq!(minimal(&Candidate { origin: PluginOrigin::Bundled, ..server() }), None);
    let required = rules("policy.confine = \"required\"");
    let unconfined =
        Refusal::Policy { by: "/project/tenon.toml".into(), objection: PolicyRefusal::Unconfined };
    assert_eq!(why(&server(), &required), Some(unconfined));
    assert_eq!(why(&server(), &rules("policy.confine = \"preferred\"")), None);
    assert_eq!(why(&component(""), &required), None);
    let locked = rules("policy.locked = true");
    assert!(matches!(why(&component(""), &locked), Some(Refusal::Policy { .. })));
    let manifest = Digest::of("manifest");
    let lock_entry =
        LockedDigests::Bound { file: "tenon.lock".into(), code: manifest, manifest, skills: None };
    let bound =
        Candidate { lock_entry: Some(lock_entry), manifest: Some(manifest), ..component("") };
    assert_eq!(why(&bound, &locked), None);
}

#[test]
fn files_have_to_be_safe_and_prerequisites_there() {
    let check = |facts: MachineFacts, said: Option<&str>| {
        let candidate = Candidate { machine_facts: facts, ..component("") };
        let refusal = why(&candidate, &Rules::default()).map(|refusal| refusal.to_string());
        assert_eq!(refusal.as_deref(), said);
    };
    let (none, [x, y]) = (MachineFacts::default(), ["x", "y"]);
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<String>>();
    check(none.clone(), None);
    let outside = vec![x.into()];
    check(MachineFacts { outside, ..none.clone() }, Some("x is outside of the plugin folder"));
    let world_writable = vec![x.into()];
    let facts = MachineFacts { world_writable, ..none.clone() };
    check(facts, Some("x is writable by everyone"));
    let (env, any, bins) = (names(&[x]), vec![names(&[x, y])], names(&[x]));
    let facts = MachineFacts { missing_env: env.clone(), ..none.clone() };
    check(facts, Some("it requires the variable x"));
    let facts = MachineFacts { missing_env_any: any.clone(), ..none.clone() };
    check(facts, Some("it requires one of x, y"));
    let facts = MachineFacts { missing_bins: bins.clone(), ..none.clone() };
    check(facts, Some("it requires the program `x`"));
    let all = MachineFacts { missing_env: env, missing_env_any: any, missing_bins: bins, ..none };
    check(all, Some("it requires the variable x, and one of x, y, and the program `x`"));
}

#[test]
fn a_plugin_is_made_for_this_contract_and_permits_what_it_is() {
    let check = |candidate: Candidate, permissions: Option<(bool, bool, bool)>, expected| {
        let permissions = permissions.map(|(server, tools, namespace)| RegistrationPermissions {
            register_mcp_server: server,
            register_tools: tools,
            tool_namespace: namespace.then(|| "n".into()),
            ..RegistrationPermissions::default()
        });
        let refusal = why(&Candidate { permissions, ..candidate }, &Rules::default());
        assert_eq!(refusal, expected);
    };
    let speaks = |version: &str| Candidate {
        api_version: Some(semver::VersionReq::parse(version).unwrap()),
        ..component("")
    };
    check(speaks(PACKAGE_VERSION), None, None);
    let wanted = semver::VersionReq::parse("99").unwrap();
    check(speaks("99"), None, Some(Refusal::ApiVersion { wanted }));
    check(component(""), Some((false, true, false)), None);
    check(server(), None, None);
    check(server(), Some((false, true, true)), Some(Refusal::ServerNotPermitted));
    check(server(), Some((true, true, false)), Some(Refusal::NoNamespace));
    check(server(), Some((true, true, true)), None);
    check(server(), Some((true, false, false)), None);
}

#[test]
fn only_what_hosts_can_lend_on_request_can_be_requested() {
    let check = |name: &str, is_known: bool| {
        let mut candidate = component("");
        let here = Path::new("/");
        candidate
            .requests
            .add(name, "X", &crate::path_context::PathContext::in_folder(here))
            .unwrap();
        let refusal = why(&candidate, &Rules::default()).expect("nobody has approved it");
        assert_eq!(matches!(refusal, Refusal::NotApproved { .. }), is_known, "{refusal}");
        let unknown = Refusal::Unknown { name: name.into() };
        assert_eq!(refusal == unknown, !is_known, "{refusal}");
    };
    check("environment", true);
    check("nonsense", false);
    // Every plugin has it.
    check("log", false);
    let said = Refusal::Unknown { name: "nonsense".into() }.to_string();
    assert!(said.contains("there are ") && said.contains("environment"), "{said}");
    assert!(!said.contains("log"), "{said}");
}

#[test]
fn a_plugin_gets_the_secrets_that_it_was_granted_and_those_of_its_server() {
    let approved = texts("secrets", &["A"]);
    let candidate = component("secrets = [\"A\", \"B\"]");
    let mut admitted = admit(candidate, &said(approved.into())).expect("it is approved");
    assert_eq!(admitted.secrets(), ("a".to_string(), vec!["A".to_string()]));
    admitted.give("A".into(), Secret::new("hunter22"));
    let candidate = admitted.into_candidate();
    assert_eq!(candidate.given["A"].reveal(), "hunter22");
    assert_eq!(crate::secret::Redactor::new(&candidate.secrets).text("hunter22"), "[redacted]");
    let admitted = admit(server(), &Rules::default()).expect("it needs no approval");
    assert_eq!(admitted.secrets(), ("s".to_string(), vec!["KEY".to_string()]));
}

#[test]
fn a_refusal_says_why_and_what_to_do() {
    let check = |refusal: Refusal, why: &str, remedy: &str| {
        assert_eq!((&*refusal.to_string(), &*refusal.remedy()), (why, remedy));
        let awaits = matches!(refusal, Refusal::NotApproved { .. } | Refusal::Stale { .. });
        assert_eq!(refusal.awaits_approval(), awaits, "{refusal}");
        let is_meant = why.ends_with(" denies it") || why.ends_with(" disables it");
        assert_eq!(refusal.is_meant(), is_meant, "{refusal}");
    };
    let policy = |objection| Refusal::Policy { by: "t.toml".into(), objection };
    check(
        Refusal::Reserved,
        "its id is reserved for a plugin that is part of the host",
        "give it another id",
    );
    check(
        policy(PolicyRefusal::Denied),
        "the policy denies it",
        "take it from `deny` under [policy] in t.toml",
    );
    check(
        policy(PolicyRefusal::Disabled),
        "the policy disables it",
        "change its `enabled` under [policy.plugins] in t.toml",
    );
    check(
        policy(PolicyRefusal::NotLocked),
        "the policy allows only locked plugins, and no lock file has it",
        "`tenon install` it, or add its id to `allow` under [policy] in t.toml",
    );
    let [one, other] = ["one", "other"].map(Digest::of);
    for (origin, user) in [(PluginOrigin::Workspace, ""), (PluginOrigin::User, " --user")] {
        let (file, what) = ("tenon.lock".into(), "code");
        let refusal =
            Refusal::NotAsLocked { origin, file, what, expected: Some(one), found: Some(other) };
        let (one, other) = (one.named(), other.named());
        check(
            refusal,
            &format!("its code does not match tenon.lock: expected {one}, found {other}"),
            &format!(
                "run `tenon install{user}` to restore what was installed, or `tenon install{user} \
                 SOURCE` to accept the change"
            ),
        );
    }
    let missing = |bins: &[&str]| {
        let bins = bins.iter().map(ToString::to_string).collect();
        Refusal::Missing(MissingPrerequisites { env: vec!["X".into()], env_any: Vec::new(), bins })
    };
    check(missing(&[]), "it requires the variable X", "set what is missing");
    check(
        missing(&["x"]),
        "it requires the variable X, and the program `x`",
        "install or set what is missing",
    );
    let approve = "`tenon approve a` shows it and asks; other hosts have an approver";
    for (command, requests, skills, wants) in [
        (Some("runs `x`"), BTreeMap::new(), &[][..], "it runs `x`"),
        (None, texts("environment", &["X"]), &[], "it requests `environment = [\"X\"]`"),
        (None, BTreeMap::new(), &["a", "b"], "it carries skills (a, b)"),
        (
            Some("runs `x`"),
            texts("environment", &["X"]),
            &["a"],
            "it runs `x` and requests `environment = [\"X\"]` and carries skills (a)",
        ),
    ] {
        let command = command.map(Into::into);
        let skills = skills.iter().map(ToString::to_string).collect();
        let refusal = Refusal::NotApproved { plugin: "a".into(), requests, command, skills };
        check(refusal, &format!("{wants}, which is not approved"), approve);
    }
    let changes = vec![ApprovalChange::Component, ApprovalChange::Manifest];
    check(
        Refusal::Stale { plugin: "a".into(), changes },
        "it has changed since it was approved: its code has changed, its manifest has changed",
        approve,
    );
}

#[test]
fn a_snapshot_shows_how_each_plugin_stands() {
    let named = |id: &str, requests: &str| {
        // As if its file were there.
        let machine_facts = MachineFacts::default();
        Candidate { id: id.into(), machine_facts, ..component(requests) }
    };
    let candidates = vec![named("a", REQUEST), named("b", ""), named("long", REQUEST)];
    let mut discovery = discover(&Sources::default());
    discovery.candidates = candidates;
    let snapshot = PluginsOverview::new(&discovery, &said(texts("environment", &["X"]).into()));
    assert_eq!(snapshot.plugins[0].granted, texts("environment", &["X"]));
    assert_eq!(
        snapshot.to_string(),
        "a     wasm  enabled     config      /project/a.wasm (environment)\n\
         b     wasm  enabled     config      /project/a.wasm\n\
         long  wasm  refused     config      it requests `environment = [\"X\", \"Y\"]`, which is not \
         approved\n"
    );
}
