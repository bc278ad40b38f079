//! Installing plugins: where they come from, that they are what they should be, and stay it.

mod download;
mod web;

use std::fs;
use std::process::Output;
use std::sync::Arc;

use serde_json::{Value, json};
use tenon_config::files::Digest;
use tenon_host::{HostEnvironment, Platform, PluginState};
use tokio::task::spawn_blocking;
use wasmparser::{Parser, Payload};

use crate::guests;
use crate::support::{Project, parsed, stderr, stdout};

/// The file of a project with the authorities that are trusted in it.
const AUTHORITIES: &str = "authorities.pem";

/// A project with a cache of its own.
struct InstallProject(Arc<Project>);

impl InstallProject {
    fn new() -> Self {
        Self::with("")
    }

    fn with(configuration: &str) -> Self {
        Self(Arc::new(Project::new(configuration)))
    }

    /// Runs the command while servers of this test go on.
    async fn tenon(&self, arguments: &[&str]) -> Output {
        let project = self.0.clone();
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let run = spawn_blocking(move || {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let mut command = project.command(&arguments);
            command.env("XDG_CACHE_HOME", project.path("cache")).env_remove("DOCKER_CONFIG");
            command.env_remove("SSL_CERT_FILE");
            if project.path(AUTHORITIES).exists() {
                command.env("SSL_CERT_FILE", project.path(AUTHORITIES));
            }
            command.output().expect("tenon starts")
        });
        run.await.unwrap()
    }

    async fn run(&self, arguments: &[&str], code: i32) -> String {
        let output = self.tenon(arguments).await;
        let said = format!("{}{}", stdout(&output), stderr(&output));
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        said
    }

    /// Installs a component and says what came of it.
    async fn install(&self, source: &str, more: &[&str]) -> Value {
        let arguments = [&["--json", "install", source], more].concat();
        let output = self.tenon(&arguments).await;
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
        parsed(&output)[0].take()
    }

    async fn refused(&self, arguments: &[&str], because: &str) {
        let said = self.run(arguments, 3).await;
        assert!(said.contains(because), "{said}");
    }

    async fn slug(&self, plugin: &str, code: i32) -> String {
        self.run(&["call", &format!("{plugin}__slug"), r#"{"text": "A b"}"#], code).await
    }

    /// Changes one byte of a file, and nothing that it means.
    fn tamper(&self, name: &str) {
        let mut bytes = self.read(name);
        bytes.extend([0, 2, 1, b'x']);
        self.0.write(name, bytes);
    }

    /// Writes a folder with the plugin `p`, whose script is there.
    fn source(&self, folder: &str, path: &str) {
        let _ = fs::remove_dir_all(self.0.path(folder));
        self.0.write(&format!("{folder}/{path}"), SCRIPT);
        self.0.write(&format!("{folder}/plugin.toml"), manifest("rhai", path));
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.0.path(name)).unwrap()
    }

    fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).unwrap()
    }
}

/// A script that is a plugin with one tool.
const SCRIPT: &str =
    r#"tool(#{ name: "hi", description: "d", schema: #{ type: "object" } }, |a| "hello");"#;

/// A manifest of the plugin `p`.
fn manifest(kind: &str, path: &str) -> String {
    format!("plugin.id = \"p\"\nruntime = {{ kind = \"{kind}\", path = \"{path}\" }}\n")
}

fn component() -> Vec<u8> {
    fs::read(guests::TEXT_TOOLS).unwrap()
}

#[tokio::test]
async fn a_component_is_installed_from_its_path_and_runs() {
    let home = InstallProject::new();
    let digest = Digest::of(component()).named();
    let row = home.install(guests::TEXT_TOOLS, &[]).await;
    assert_eq!((&row["plugin"], &row["state"]), (&json!("text_tools"), &json!("installed")));
    assert_eq!((&row["digest"], &row["approval"]), (&json!(digest), &Value::Null));
    assert_eq!(home.slug("text_tools", 0).await, "a-b\n");
    assert_eq!(home.read(".tenon/plugins/text_tools/text_tools.wasm"), component());
    let manifest = home.text(".tenon/plugins/text_tools/plugin.toml");
    assert!(
        manifest.contains("id = \"text_tools\"") && !manifest.contains("[capabilities]"),
        "{manifest}"
    );
    let lock = home.text("tenon.lock");
    assert!(lock.contains("[plugins.text_tools]") && lock.contains(&digest), "{lock}");
    // The same once more is the same.
    home.install(guests::TEXT_TOOLS, &["--digest", &digest]).await;
    assert_eq!(home.text("tenon.lock"), lock);
    // Another file under its id is not.
    let wrong = Digest::of("other").named();
    let refused = ["install", guests::REDACT, "--as", "text_tools", "--digest", &wrong];
    home.refused(&refused, "has the wrong digest: expected sha256:").await;
    assert_eq!(home.text("tenon.lock"), lock);
}

#[tokio::test]
async fn what_is_changed_after_it_was_installed_is_not_loaded() {
    let home = InstallProject::new();
    home.install(guests::TEXT_TOOLS, &["--as", "t"]).await;
    assert_eq!(home.slug("t", 0).await, "a-b\n");
    home.tamper(".tenon/plugins/t/t.wasm");
    let said = home.slug("t", 3).await;
    let found = Digest::of(home.read(".tenon/plugins/t/t.wasm")).named();
    let said = said.replace(&Digest::of(component()).named(), "EXPECTED").replace(&found, "FOUND");
    insta::assert_snapshot!(said, @r#"
    error: plugin "t" is not loaded: its code does not match ./tenon.lock: expected EXPECTED, found FOUND
      hint: run `tenon install` to restore what was installed, or `tenon install SOURCE` to accept the change
    "#);
    let listed = home.run(&["plugins"], 0).await;
    assert!(listed.contains("refused") && listed.contains("its code does not match"), "{listed}");
    // An embedder gets it, too.
    let host_environment = HostEnvironment::default();
    let builder =
        Platform::builder().host_environment(host_environment).project(home.0.path("")).unwrap();
    let platform = builder.build().await.unwrap();
    let reports = platform.plugins();
    assert_eq!((&*reports[0].plugin, reports[0].state), ("t", PluginState::Refused));
    platform.shutdown().await;

    let said = home.run(&["install"], 0).await;
    assert!(said.contains("plugin \"t\" 0.1.0 is installed"), "{said}");
    assert_eq!(home.slug("t", 0).await, "a-b\n");
    #[cfg(unix)]
    {
        // The same bytes somewhere else are not where they were installed.
        let file = home.0.path(".tenon/plugins/t/t.wasm");
        fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink(guests::TEXT_TOOLS, &file).unwrap();
        let said = home.run(&["install"], 0).await;
        assert!(said.contains("plugin \"t\" 0.1.0 is installed"), "{said}");
        assert!(!file.is_symlink());
    }
    let said = home.run(&["install"], 0).await;
    assert!(said.contains("plugin \"t\" is there"), "{said}");

    // Its manifest is as bound as its code.
    let manifest = home.text(".tenon/plugins/t/plugin.toml");
    home.0.write(
        ".tenon/plugins/t/plugin.toml",
        format!("{manifest}\n[capabilities]\nenvironment = [\"LANG\"]"),
    );
    let said = home.slug("t", 3).await;
    assert!(said.contains("its manifest does not match"), "{said}");
    home.refused(&["approve", "t", "--yes"], "cannot be approved: its manifest does not match")
        .await;
    home.run(&["install"], 0).await;
    assert_eq!(home.slug("t", 0).await, "a-b\n");

    // Without the file that says what it has to be, nothing of its place is loaded.
    home.0.write("tenon.lock", "version = 1\n[plugins");
    let said = home.slug("t", 3).await;
    assert!(said.contains("the lock file cannot be read: ./tenon.lock:2"), "{said}");
}

#[tokio::test]
async fn what_was_installed_and_is_gone_is_missed() {
    let home = InstallProject::with("hooks.on_failure = \"stop\"");
    home.0.write("guard.rhai", "fn BeforePlan(context) { veto(\"no\") }");
    home.install("guard.rhai", &[]).await;
    let plan = ["hook", "before-plan"];
    assert!(home.run(&plan, 3).await.contains("veto"));
    let folder = home.0.path(".tenon/plugins/guard");
    let missed = async || {
        let said = home.run(&plan, 2).await;
        let gone = "error: plugin \"guard\": ./tenon.lock: it was installed, and is missing";
        assert!(said.contains(gone) && said.contains("hint: `tenon install` puts it"), "{said}");
        let said = home.run(&["doctor"], 1).await;
        assert!(said.contains("fix: `tenon install` puts it back"), "{said}");
        home.run(&["install"], 0).await;
        assert!(home.run(&plan, 3).await.contains("veto"));
    };
    fs::remove_file(folder.join("plugin.toml")).unwrap();
    missed().await;
    fs::remove_dir_all(&folder).unwrap();
    missed().await;
    fs::remove_dir_all(home.0.path(".tenon")).unwrap();
    missed().await;
    // What lies in its folder under another id is not another plugin.
    let manifest = home.text(".tenon/plugins/guard/plugin.toml");
    let renamed = manifest.replace("\"guard\"", "\"other\"");
    home.0.write(".tenon/plugins/guard/plugin.toml", renamed);
    let said = home.run(&["plugins"], 0).await;
    assert!(said.contains("its manifest does not match"), "{said}");
    // Who does not want it any more says so.
    home.run(&["install"], 0).await;
    home.run(&["uninstall", "guard", "--yes"], 0).await;
    home.run(&plan, 0).await;
}

#[tokio::test]
async fn what_is_replaced_by_something_else_is_told() {
    let home = InstallProject::new();
    home.0.write("one.rhai", "");
    home.0.write("two.rhai", "");
    let digest = Digest::of("").named();
    let one = json!({ "source": "./one.rhai", "digest": digest });
    for (source, replaced) in
        [("one.rhai", json!(null)), ("one.rhai", json!(null)), ("two.rhai", one)]
    {
        assert_eq!(home.install(source, &["--as", "s"]).await["replaced"], replaced);
    }
    home.0.write("two.rhai", "// It has changed.");
    let said = home.run(&["install", "two.rhai", "--as", "s"], 0).await;
    assert!(said.contains(&format!("  replaces  {digest} of ./two.rhai")), "{said}");
}

#[tokio::test]
async fn what_no_host_would_load_is_not_installed() {
    let home = InstallProject::new();
    let check = async |more: &str, script: &str, code: i32, because: &str| {
        home.0.write("s/plugin.toml", format!("{}\n{more}", manifest("rhai", "s.rhai")));
        home.0.write("s/s.rhai", script);
        let said = home.run(&["install", "s", "--yes"], code).await;
        assert!(said.contains(because), "{said}");
        assert!(!home.0.path("tenon.lock").exists());
    };
    check("capabilities.teleport = [\"x\"]", "", 3, "would not be loaded: ").await;
    check("plugin.plugin_api_version = \"9.9\"", "", 3, "would not be loaded: ").await;
    check("", "fn BeforePlan(context) {\n  let x = ;\n}", 2, "s.rhai:2").await;
    let mut later = component();
    let version = tenon_contract::version();
    let version = version.as_bytes();
    for i in 0..later.len() - version.len() {
        if later[i..].starts_with(version) && later[..i].ends_with(b"@") {
            later[i..i + version.len()].copy_from_slice(b"1.0.0");
        }
    }
    home.0.write("later.wasm", later);
    let said = home.run(&["install", "later.wasm"], 2).await;
    assert!(said.contains("it is made for tenon:plugin@1.0.0, and this is 0.2.0"), "{said}");
}

#[tokio::test]
async fn nothing_else_is_looked_at_to_read_a_manifest() {
    let home = InstallProject::new();
    home.0.write("other.rhai", "");
    home.run(&["install", "other.rhai", "--user", "--yes"], 0).await;
    home.0.write("s/plugin.toml", "[plugin]\nid = \"s\"\nwrong = 1");
    let said = home.run(&["install", "s"], 2).await;
    assert!(said.contains("unknown field `wrong`"), "{said}");
    let mut command = home.0.command(&["install", "other.rhai", "--yes"]);
    command.env("TENON_PLUGINS", home.0.path("tenon/plugins/other"));
    let output = spawn_blocking(move || command.output().unwrap()).await.unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[tokio::test]
async fn what_a_component_says_of_itself_may_be_anything() {
    let home = InstallProject::new();
    let mut bytes = component();
    let (name, text) = ("licenses", "My Company Proprietary");
    bytes.extend([0, u8::try_from(1 + name.len() + text.len()).unwrap()]);
    bytes.push(u8::try_from(name.len()).unwrap());
    bytes.extend(name.bytes().chain(text.bytes()));
    home.0.write("t.wasm", bytes);
    home.run(&["inspect", "t.wasm"], 0).await;
    home.install("t.wasm", &[]).await;
    home.slug("t", 0).await;
}

#[tokio::test]
async fn a_component_that_is_not_valid_is_not_installed() {
    let home = InstallProject::new();
    let mut bytes = component();
    let body = Parser::new(0).parse_all(&bytes).find_map(|payload| match payload.unwrap() {
        Payload::CodeSectionEntry(body) => Some(body.range()),
        _ => None,
    });
    // It has no end any more.
    bytes[body.unwrap().end - 1] = 0x01;
    home.0.write("t.wasm", bytes);
    let said = home.run(&["install", "t.wasm"], 2).await;
    assert!(said.contains("t.wasm: it is not a valid component: "), "{said}");
    assert!(!home.0.path("tenon.lock").exists());
}

#[tokio::test]
async fn with_locked_only_what_is_locked_is_let_in() {
    let home = InstallProject::with(&format!("plugins.wasm = [{:?}]", guests::TEXT_TOOLS));
    home.install(guests::TEXT_TOOLS, &["--as", "t"]).await;
    home.slug("text_tools", 0).await;
    let locked = |name: &str| {
        vec![
            "--locked".to_string(),
            "call".into(),
            format!("{name}__slug"),
            r#"{"text": "A"}"#.into(),
        ]
    };
    let arguments = locked("text_tools");
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    home.refused(&arguments, "the policy allows only locked plugins, and no lock file has it")
        .await;
    let arguments = locked("t");
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    home.run(&arguments, 0).await;
    home.0.write(
        "tenon.toml",
        format!("plugins.wasm = [{:?}]\npolicy = {{ locked = true }}", guests::TEXT_TOOLS),
    );
    home.slug("text_tools", 3).await;
    home.0.write(
        "tenon.toml",
        format!(
            "plugins.wasm = [{:?}]\npolicy = {{ locked = true, allow = [\"text_tools\"] }}",
            guests::TEXT_TOOLS
        ),
    );
    home.slug("text_tools", 0).await;

    // Installing changes nothing with it.
    let lock = home.text("tenon.lock");
    home.0.write("elsewhere.wasm", component());
    let row = home.install("elsewhere.wasm", &["--as", "t", "--locked"]).await;
    // It begins in the project, where the two are beside each other.
    let source = row["source"].as_str().unwrap();
    assert!(source.ends_with("/text_tools.wasm"), "{source}");
    home.refused(
        &["--locked", "install", guests::REDACT],
        "plugin \"redact\" is not in ./tenon.lock",
    )
    .await;
    home.refused(
        &["--locked", "install", guests::REDACT, "--as", "t"],
        "is not what ./tenon.lock has",
    )
    .await;
    assert_eq!(home.text("tenon.lock"), lock);
}

#[tokio::test]
async fn a_folder_brings_its_requests_and_they_are_asked_about() {
    let home = InstallProject::new();
    home.0.write("src/build/e.wasm", fs::read(guests::ESCAPE).unwrap());
    home.0.write("src/other.txt", "not for anybody");
    home.0.write("notes/a.txt", "granted");
    let manifest = "plugin = { id = \"e\", version = \"1.2.3\" }\nruntime = { kind = \"wasm\", path = \"build/e.wasm\" }\n[capabilities]\nfilesystem = [\"read:~/notes/*\"]";
    home.0.write("src/plugin.toml", manifest);
    let said = home.run(&["install", "src"], 0).await;
    assert!(said.contains("plugin \"e\" 1.2.3 is installed in ./.tenon/plugins/e"), "{said}");
    assert!(said.contains("it is not approved yet: `tenon approve e`"), "{said}");
    assert_eq!(home.text(".tenon/plugins/e/plugin.toml"), manifest);
    assert!(!home.0.path(".tenon/plugins/e/other.txt").exists());
    let path = home.0.path("notes").canonicalize().unwrap().join("a.txt");
    let arguments = json!({ "edition": "std", "deed": "read", "path": path }).to_string();
    home.run(&["call", "e__attempt", &arguments], 3).await;
    let row = home.install("./src", &["--yes"]).await;
    assert_eq!(row["approval"]["approved"], true);
    assert_eq!(home.run(&["call", "e__attempt", &arguments], 0).await, "ok granted\n");
    // Where it is locked to something else, nobody is asked to approve that.
    home.tamper(".tenon/plugins/e/build/e.wasm");
    let said = home.run(&["call", "e__attempt", &arguments], 3).await;
    assert!(said.contains("its code does not match") && !said.contains("approve"), "{said}");

    // What is there by another's hand stays.
    home.0.write(".tenon/plugins/e/mine.txt", "mine");
    let output = home.tenon(&["uninstall", "e"]).await;
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("`tenon uninstall e --yes`"), "{}", stderr(&output));
    let said = home.run(&["uninstall", "e", "--yes"], 0).await;
    assert!(said.contains("mine.txt stays: it is not as it was installed"), "{said}");
    assert!(home.0.path(".tenon/plugins/e/mine.txt").exists());
    assert!(!home.0.path(".tenon/plugins/e/build").exists());
    assert!(!home.text("tenon.lock").contains("plugins.e"));
    assert!(!home.text("state/tenon/approvals.json").contains("\"e\""));
    home.run(&["uninstall", "e", "--yes"], 2).await;
}

#[tokio::test]
async fn what_somebody_else_put_there_is_not_replaced() {
    let home = InstallProject::new();
    home.0.write(
        ".tenon/plugins/t/plugin.toml",
        "plugin.id = \"t\"\nruntime = { kind = \"rhai\", path = \"t.rhai\" }",
    );
    home.refused(
        &["install", guests::TEXT_TOOLS, "--as", "t"],
        "`tenon install` has not put it there",
    )
    .await;
    home.run(&["install", guests::TEXT_TOOLS, "--as", "t", "--force"], 0).await;
    home.slug("t", 0).await;
    home.run(&["install", guests::TEXT_TOOLS, "--as", "No Id"], 2).await;
    home.run(&["install", "nowhere.wasm"], 2).await;
    home.run(&["install", "ftp://example.com/x.wasm"], 2).await;
    home.0.write("no.wasm", "not at all");
    home.run(&["install", "no.wasm"], 2).await;
    home.0.write(
        "s/plugin.toml",
        "plugin.id = \"s\"\nruntime = { kind = \"rhai\", path = \"../no.wasm\" }",
    );
    let said = home.run(&["install", "s"], 2).await;
    assert!(said.contains("leads out of its folder"), "{said}");
}

/// An installation that was ended by force leaves what is in nobody's way, and is swept by the next.
#[tokio::test]
async fn what_an_installation_left_that_had_no_end_is_swept() {
    let home = InstallProject::new();
    home.0.write(".tenon/plugins/t/.tenon-staged-abc", "half of it");
    home.run(&["install", guests::TEXT_TOOLS, "--as", "t"], 0).await;
    assert!(!home.0.path(".tenon/plugins/t/.tenon-staged-abc").exists());
    home.slug("t", 0).await;
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_in_a_checkout_leads_nothing_elsewhere() {
    let home = InstallProject::new();
    let elsewhere = tempfile::tempdir().unwrap();
    fs::create_dir_all(home.0.path(".tenon")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), home.0.path(".tenon/plugins")).unwrap();
    home.refused(&["install", guests::TEXT_TOOLS], "leads elsewhere by a link").await;
    assert!(!elsewhere.path().join("text_tools/plugin.toml").exists());
    let is_untouched = || elsewhere.path().read_dir().unwrap().count() == 0;
    let link = |name: &str| {
        let path = home.0.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), path).unwrap();
    };
    fs::remove_dir_all(home.0.path(".tenon")).unwrap();
    link(".tenon");
    home.refused(&["install", guests::TEXT_TOOLS], "./.tenon leads elsewhere by a link").await;
    assert!(is_untouched());
    fs::remove_file(home.0.path(".tenon")).unwrap();
    link(".tenon/plugins/p/build");
    home.source("src", "build/sub/p.rhai");
    home.refused(&["install", "src", "--force"], "/build leads elsewhere by a link").await;
    assert!(is_untouched() && !home.0.path("tenon.lock").exists());

    // A manifest that was written over has nothing elsewhere removed when another one is installed.
    fs::remove_dir_all(home.0.path(".tenon")).unwrap();
    home.source("src", "p.rhai");
    home.run(&["install", "src"], 0).await;
    link(".tenon/plugins/p/link");
    fs::write(elsewhere.path().join("theirs.rhai"), "").unwrap();
    home.0.write(".tenon/plugins/p/plugin.toml", manifest("rhai", "link/theirs.rhai"));
    home.source("src", "other.rhai");
    home.run(&["install", "src"], 0).await;
    assert!(elsewhere.path().join("theirs.rhai").exists());
    assert!(!home.0.path(".tenon/plugins/p/p.rhai").exists());

    // What binds everything is not nothing where a link leads nowhere.
    fs::remove_file(home.0.path("tenon.lock")).unwrap();
    std::os::unix::fs::symlink("nowhere", home.0.path("tenon.lock")).unwrap();
    let said = home.run(&["call", "p__hi"], 3).await;
    assert!(said.contains("the lock file cannot be read: ./tenon.lock cannot be read"), "{said}");
    home.run(&["install", "src"], 2).await;
}

#[tokio::test]
async fn what_goes_before_an_installed_plugin_is_not_approved_in_its_stead() {
    let check = async |name: &str, content: &str, more: &[&str]| {
        let home = InstallProject::new();
        home.source("src", "p.rhai");
        let text =
            format!("{}[capabilities]\nenvironment = [\"LANG\"]", manifest("rhai", "p.rhai"));
        home.0.write("src/plugin.toml", &text);
        home.0.write(name, content);
        let arguments = [&["--json", "install", "src", "--yes"], more].concat();
        let output = home.tenon(&arguments).await;
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(parsed(&output)[0]["approval"], Value::Null);
        assert!(stderr(&output).contains("is left out: shadowed by"), "{}", stderr(&output));
        assert!(!home.0.path("state/tenon/approvals.json").exists());
        // Alone it is approved.
        fs::remove_file(home.0.path(name)).unwrap();
        let row = home.install("src", &[&["--yes"], more].concat()).await;
        assert_eq!(row["approval"]["approved"], true);
    };
    check(".mcp.json", r#"{ "mcpServers": { "p": { "command": "/bin/true" } } }"#, &[]).await;
    // A script of the user's may be a guard, and no project's goes before it.
    let of_user = format!("{}[capabilities]\nenvironment = [\"HOME\"]", manifest("rhai", "x.rhai"));
    check("tenon/plugins/p/plugin.toml", &of_user, &[]).await;
}

#[tokio::test]
async fn what_was_installed_is_removed_whatever_its_manifest_says_now() {
    let home = InstallProject::new();
    let (mine, theirs) = (".tenon/plugins/p/mine.txt", ".tenon/plugins/p/p.rhai");
    let again = async || {
        home.source("src", "p.rhai");
        home.run(&["install", "src"], 0).await;
        home.0.write(mine, "mine");
    };
    for edited in [manifest("rhai", "mine.txt"), "broken".into()] {
        again().await;
        home.0.write(".tenon/plugins/p/plugin.toml", &edited);
        home.run(&["uninstall", "p", "--yes"], 0).await;
        assert!(home.0.path(mine).exists() && !home.0.path(theirs).exists());
        assert!(!home.0.path(".tenon/plugins/p/plugin.toml").exists());
        assert!(!home.text("tenon.lock").contains("plugins.p"));
        fs::remove_dir_all(home.0.path(".tenon/plugins/p")).unwrap();
    }
    // A lock file of before knows the file by the manifest that it binds, and by no other.
    let forget = || {
        let lock = home.text("tenon.lock").replace("file = \"p.rhai\"\n", "");
        home.0.write("tenon.lock", &lock);
        lock
    };
    again().await;
    let lock = forget();
    home.0.write(".tenon/plugins/p/plugin.toml", manifest("rhai", "mine.txt"));
    home.refused(
        &["uninstall", "p", "--yes"],
        "the installed files of ./.tenon/plugins/p are not known",
    )
    .await;
    assert_eq!(home.text("tenon.lock"), lock);
    assert!(home.0.path(mine).exists() && home.0.path(theirs).exists());
    home.run(&["install"], 0).await;
    forget();
    home.run(&["uninstall", "p", "--yes"], 0).await;
    assert!(home.0.path(mine).exists() && !home.0.path(theirs).exists());
    // Where nothing is there, nothing is left to know.
    fs::remove_dir_all(home.0.path(".tenon/plugins/p")).unwrap();
    home.0.write("tenon.lock", &lock);
    home.run(&["uninstall", "p", "--yes"], 0).await;
    assert!(!home.text("tenon.lock").contains("plugins.p"));
}

#[tokio::test]
async fn what_cannot_be_installed_leaves_all_as_it_was() {
    let home = InstallProject::new();
    home.source("src", "p.rhai");
    home.run(&["install", "src"], 0).await;
    let lock = home.text("tenon.lock");
    home.0.write(".tenon/plugins/p/other.rhai/mine.txt", "mine");
    let check = async |path: &str, code: i32| {
        home.source("src", path);
        home.run(&["install", "src"], code).await;
        assert_eq!(home.text("tenon.lock"), lock);
        assert_eq!(home.run(&["call", "p__hi"], 0).await, "hello\n", "{path}");
        assert!(home.0.path(".tenon/plugins/p/other.rhai/mine.txt").exists());
        assert_eq!(home.0.path(".tenon/plugins/p").read_dir().unwrap().count(), 3);
    };
    check("other.rhai", 5).await;
    check("p.rhai/other.rhai", 5).await;
    // Nor does a first one bind what is not there.
    let home = InstallProject::new();
    home.0.write(".tenon/plugins/p/plugin.toml/mine.txt", "mine");
    home.source("src", "build/p.rhai");
    home.run(&["install", "src", "--force"], 5).await;
    assert!(!home.0.path("tenon.lock").exists() && !home.0.path(".tenon/plugins/p/build").exists());
}

#[tokio::test]
async fn what_cannot_work_is_not_installed() {
    let home = InstallProject::new();
    let check = async |kind: &str, path: &str, because: &str| {
        home.source("src", path);
        home.0.write("src/plugin.toml", manifest(kind, path));
        let said = home.run(&["install", "src"], 2).await;
        assert!(said.contains(because), "{path}: {said}");
        assert!(!home.0.path("tenon.lock").exists() && !home.0.path(".tenon").exists());
    };
    check("rhai", "./plugin.toml", "its `path` is that of a manifest").await;
    check("wasm", "p.rhai", "it is said to be a component, and is none").await;
    home.0.write("src/p.wasm", component());
    home.0.write("src/plugin.toml", manifest("rhai", "p.wasm"));
    let said = home.run(&["install", "src"], 2).await;
    assert!(said.contains("it is said to be a script, and is a component"), "{said}");
    // A section of it says to have four gigabytes.
    home.0.write("huge.wasm", b"\0asm\x0d\0\x01\0\x0a\xff\xff\xff\xff\x0f");
    for arguments in [
        &["inspect", "huge.wasm"][..],
        &["install", "huge.wasm"],
        &["publish", "huge.wasm", "oci://localhost:1/a:1"],
    ] {
        let said = home.run(arguments, 2).await;
        assert!(said.contains("a section is longer than the file"), "{said}");
    }
}

#[tokio::test]
async fn one_source_that_is_gone_keeps_no_other_plugin_away() {
    let home = InstallProject::new();
    for name in ["a.rhai", "b.rhai", "c.rhai"] {
        home.0.write(name, SCRIPT);
        home.run(&["install", name], 0).await;
    }
    let lock = home.text("tenon.lock");
    let again = || {
        fs::remove_dir_all(home.0.path(".tenon")).unwrap();
        for name in ["a.rhai", "c.rhai"] {
            let _ = fs::remove_file(home.0.path(name));
        }
    };
    again();
    let said = home.run(&["install"], 2).await;
    for expected in [
        "plugin \"a\" is not installed: ././a.rhai cannot be read",
        "plugin \"b\" is installed",
        "plugin \"c\" is not installed: ",
    ] {
        assert!(said.contains(expected), "{said}");
    }
    let said = home.run(&["call", "b__hi"], 0).await;
    assert!(said.starts_with("hello\n") && said.contains("plugin \"a\": ./tenon.lock"), "{said}");
    assert_eq!(home.text("tenon.lock"), lock);
    again();
    let output = home.tenon(&["--json", "install"]).await;
    assert_eq!(output.status.code(), Some(2));
    let rows = parsed(&output);
    let states: Vec<_> =
        rows.as_array().unwrap().iter().map(|row| (&row["plugin"], &row["state"])).collect();
    let expected = [("b", "installed"), ("a", "failed"), ("c", "failed")]
        .map(|(id, state)| (json!(id), json!(state)));
    assert_eq!(states, expected.iter().map(|(id, state)| (id, state)).collect::<Vec<_>>());
    assert_eq!(rows[1]["error"]["code"], "invalid-input");
}

#[cfg(unix)]
#[test]
fn a_path_that_is_no_text_is_shown_as_far_as_it_is() {
    use std::os::unix::ffi::OsStrExt;
    let home = InstallProject::new();
    home.0.write("p.rhai", SCRIPT);
    let folder = home.0.path("").join(std::ffi::OsStr::from_bytes(b"no\xfftext"));
    let run = |arguments: &[&str]| {
        let output = home.0.command(arguments).arg("--json").arg("--project").arg(&folder).output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
        parsed(&output)
    };
    let made = run(&["new", "hello", "--lang", "python"]);
    assert!(made["folder"].as_str().unwrap().ends_with("no\u{fffd}text/hello"), "{made}");
    let installed = run(&["install", "p.rhai"]);
    assert!(installed[0]["folder"].as_str().unwrap().contains("no\u{fffd}text"), "{installed}");
    fs::write(folder.join(".tenon/plugins/p").join(std::ffi::OsStr::from_bytes(b"\xff")), "")
        .unwrap();
    let removed = run(&["uninstall", "p", "--yes"]);
    assert!(removed["left"][0].as_str().unwrap().ends_with("p/\u{fffd}"), "{removed}");
}

#[test]
fn wrong_usage_is_an_object_for_programs() {
    let home = InstallProject::new();
    let output = home.0.tenon(&["--json", "install", "--nothing"]);
    assert_eq!(output.status.code(), Some(2));
    let error = &parsed(&output)["error"];
    assert_eq!(error["code"], "invalid-input");
    assert!(
        error["message"].as_str().unwrap().starts_with("unexpected argument '--nothing'"),
        "{error}"
    );
    assert!(stderr(&output).starts_with("error: unexpected argument"));
    assert_eq!(stdout(&home.0.tenon(&["install", "--nothing"])), "");
    assert!(stdout(&home.0.tenon(&["--json", "--help"])).starts_with("Run plugins"));
}

#[tokio::test]
async fn a_script_is_installed_for_the_user() {
    let home = InstallProject::new();
    home.0.write("greet.rhai", SCRIPT);
    home.run(&["install", "greet.rhai", "--user"], 0).await;
    assert_eq!(home.run(&["call", "greet__hi"], 0).await, "hello\n");
    assert!(home.0.path("tenon/tenon.lock").exists() && !home.0.path("tenon.lock").exists());
    home.0.write("tenon/plugins/greet/greet.rhai", "");
    let said = home.run(&["call", "greet__hi"], 3).await;
    assert!(said.contains("run `tenon install --user` to restore"), "{said}");
    // Where it came from is found again, though the folder was not there when it was written down.
    fs::remove_dir_all(home.0.path("tenon/plugins")).unwrap();
    home.run(&["install", "--user"], 0).await;
    assert_eq!(home.run(&["call", "greet__hi"], 0).await, "hello\n");
    assert!(home.text("tenon/tenon.lock").contains("\"../greet.rhai\""));
    home.run(&["uninstall", "greet", "--user", "--yes"], 0).await;
    assert!(!home.0.path("tenon/plugins/greet").exists());
}

/// A component that traps as soon as there is an instance of it: behind all that it has, one more module
/// whose start function does, and an instance of that.
fn trapping() -> Vec<u8> {
    let mut component = component();
    let (mut depth, mut modules) = (0_u32, 0_u8);
    for payload in Parser::new(0).parse_all(&component) {
        match payload.expect("the guest was built") {
            Payload::ModuleSection { .. } => {
                modules += u8::from(depth == 0);
                depth += 1;
            }
            Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    let module = wat::parse_str("(module (func $run unreachable) (start $run))").unwrap();
    // Sections: a number for what it is, how long it is, and what is in it.
    component.extend([1, u8::try_from(module.len()).unwrap()]);
    component.extend(module);
    component.extend([2, 4, 1, 0, modules, 0]);
    component
}

#[test]
fn installing_looking_and_removing_run_nothing() {
    // What is tried, what it leaves behind where it runs, and how it is named then.
    let rows = [
        // It is told whoever drops the failure.
        ("rhai", b"log_error(\"I ran\"); throw \"never mind\";".to_vec(), "I ran"),
        ("rhai", b"loop {}".to_vec(), "CPU limit"),
        ("wasm", trapping(), "unreachable"),
    ];
    for (kind, code, ran) in rows {
        let project = Project::new("limits.cpu = \"200ms\"");
        let file = format!("code.{kind}");
        project.write("source/plugin.toml", manifest(kind, &file));
        project.write(&format!("source/{file}"), code);
        let run = |arguments: &[&str]| {
            let mut command = project.command(arguments);
            command.env("TENON_LOG", "debug").env("XDG_CACHE_HOME", project.path("cache"));
            let output = command.output().unwrap();
            (output.status.code(), format!("{}{}", stdout(&output), stderr(&output)))
        };
        let runs_nothing = |arguments: &[&str]| {
            let (code, said) = run(arguments);
            assert_eq!(code, Some(0), "{kind} {arguments:?}: {said}");
            assert!(!said.contains(ran), "{kind} {arguments:?}: {said}");
            // What was not compiled has not run.
            assert!(!project.has_compiled(), "{kind} {arguments:?}");
        };
        runs_nothing(&["install", "./source", "--yes"]);
        runs_nothing(&["install"]);
        runs_nothing(&["install", "--locked"]);
        runs_nothing(&["inspect", "p"]);
        // Who uses it finds out.
        let (code, said) = run(&["doctor", "p"]);
        assert_ne!(code, Some(0), "{kind}: {said}");
        assert!(said.contains(ran), "{kind}: {said}");
        assert_eq!(project.has_compiled(), kind == "wasm", "{kind}");
        let _ = fs::remove_dir_all(project.path("cache"));
        runs_nothing(&["uninstall", "p", "--yes"]);
    }
}
