//! Bad input of every kind: it is named, with its file and what to do, and the other plugins work
//! on.

use serde_json::json;
use tenon_host::{HostEnvironment, PluginState};

use crate::guests;
use crate::support::{Project, compiled_in, text};

/// A project with one plugin that works and one entry that does not. Gives what is said of it.
async fn check(entry: &str, files: &[(&str, &[u8])], expected: &str) {
    let project = Project::new(&format!(
        "[plugins]\n{}",
        entry.replace("GOOD", &format!("{:?}", guests::TEXT_TOOLS))
    ));
    for (name, content) in files {
        project.write(name, content);
    }
    let platform = project.platform().await;
    assert_eq!(text(&platform, "text_tools__slug", json!({ "text": "A b" })).await, "a-b");
    let mut said: Vec<String> = platform.diagnostics().iter().map(ToString::to_string).collect();
    for report in platform.plugins().iter().filter(|report| report.state != PluginState::Ready) {
        let remedy = report.remedy.clone().unwrap_or_default();
        said.push(format!(
            "{}: {} / {remedy}",
            report.plugin,
            report.detail.clone().unwrap_or_default()
        ));
    }
    let said = said.join("\n").replace(&platform.project.path("").display().to_string(), "");
    assert!(said.contains(expected), "expected: {expected}\nsaid: {said}");
}

fn wat(text: &str) -> Vec<u8> {
    wat::parse_str(text).expect("the text is WebAssembly")
}

#[tokio::test]
async fn a_core_module_is_no_component() {
    let module = wat("(module)");
    check("wasm = [GOOD, \"bad.wasm\"]", &[("bad.wasm", &module)], "bad: bad.wasm: it is a core WebAssembly module, not a component / build a component, in Rust with `--target wasm32-wasip2`").await;
}

#[tokio::test]
async fn what_is_not_webassembly_says_so() {
    check(
        "wasm = [GOOD, \"bad.wasm\"]",
        &[("bad.wasm", b"#!/bin/sh")],
        "bad.wasm: it is not WebAssembly",
    )
    .await;
    check("wasm = [GOOD, \"bad.wasm\"]", &[("bad.wasm", b"")], "bad.wasm: it is not WebAssembly")
        .await;
    let cut = &std::fs::read(guests::TEXT_TOOLS).unwrap()[..2000];
    check(
        "wasm = [GOOD, \"bad.wasm\"]",
        &[("bad.wasm", cut)],
        "bad.wasm: it is not a valid component",
    )
    .await;
}

#[tokio::test]
async fn a_component_without_our_exports_is_no_plugin() {
    let component = wat("(component)");
    check("wasm = [GOOD, \"bad.wasm\"]", &[("bad.wasm", &component)], "it does not export tenon:plugin/lifecycle@0.2.0, so it is not a plugin / export a world of the package tenon:plugin").await;
}

#[tokio::test]
async fn a_component_for_another_version_names_both() {
    let component =
        wat("(component (instance $i) (export \"tenon:plugin/lifecycle@0.9.0\" (instance $i)))");
    check(
        "wasm = [GOOD, \"bad.wasm\"]",
        &[("bad.wasm", &component)],
        "it was built for tenon:plugin@0.9.0, and this host speaks tenon:plugin@0.2.0",
    )
    .await;
}

#[tokio::test]
async fn a_component_of_another_shape_says_what_is_missing() {
    let component =
        wat("(component (instance $i) (export \"tenon:plugin/lifecycle@0.2.0\" (instance $i)))");
    check(
        "wasm = [GOOD, \"bad.wasm\"]",
        &[("bad.wasm", &component)],
        "does not have export `start`",
    )
    .await;
}

#[tokio::test]
async fn an_import_that_is_not_granted_names_its_capability_and_the_line_that_requests_it() {
    let component = wat(r#"(component
            (import "wasi:http/outgoing-handler@0.2.4" (instance (export "x" (func))))
            (instance $i) (export "tenon:plugin/lifecycle@0.2.0" (instance $i)))"#);
    check("wasm = [GOOD, \"bad.wasm\"]", &[("bad.wasm", &component)], "it imports wasi:http/outgoing-handler@0.2.4, and the capability `network` is not granted / request it in plugin.toml with `network = [\"https://api.example.com/*\"]` under [capabilities]").await;
    let component = wat(r#"(component
            (import "acme:rocket/launch@1.0.0" (instance (export "x" (func))))
            (instance $i) (export "tenon:plugin/lifecycle@0.2.0" (instance $i)))"#);
    check(
        "wasm = [GOOD, \"bad.wasm\"]",
        &[("bad.wasm", &component)],
        "it imports acme:rocket/launch@1.0.0, which this host does not have",
    )
    .await;
}

#[tokio::test]
async fn a_missing_file_is_named() {
    check(
        "wasm = [GOOD, \"nowhere.wasm\"]",
        &[],
        "nowhere.wasm cannot be read: No such file or directory",
    )
    .await;
    check("wasm = [GOOD]\nscripts = [\"nowhere.rhai\"]", &[], "nowhere.rhai cannot be read").await;
    check("wasm = [GOOD]\nfolders = [\"nowhere\"]", &[], "nowhere: the folder cannot be read")
        .await;
}

#[tokio::test]
async fn a_script_with_an_error_names_file_line_and_column() {
    check(
        "wasm = [GOOD]\nscripts = [\"bad.rhai\"]",
        &[("bad.rhai", b"fn BeforePlan(context) {\n  let x = ;\n}")],
        "bad.rhai:2:11: Unexpected ';'",
    )
    .await;
}

#[tokio::test]
async fn a_server_that_does_not_exist_is_named() {
    check(
        "wasm = [GOOD]\nmcp = [{ name = \"bad\", command = \"./nowhere\" }]",
        &[],
        "`nowhere` cannot be started: No such file or directory",
    )
    .await;
}

#[tokio::test]
async fn a_manifest_with_an_error_names_file_and_line() {
    check(
        "wasm = [GOOD]\nfolders = [\"p\"]",
        &[("p/bad/plugin.toml", b"[plugin]\nid = \"bad\"\n[runtime]\nkind = \"perl\"")],
        "p/bad/plugin.toml: line 4: unknown variant `perl`",
    )
    .await;
    check(
        "wasm = [GOOD]\nfolders = [\"p\"]",
        &[("p/bad/plugin.toml", b"[plugin\n")],
        "p/bad/plugin.toml: line 1:",
    )
    .await;
}

#[tokio::test]
async fn a_capability_that_nobody_has_approved_is_refused() {
    let manifest = b"[plugin]\nid = \"bad\"\n[runtime]\nkind = \"wasm\"\npath = \"x.wasm\"\n[capabilities]\nenvironment = [\"LANG\"]";
    check("wasm = [GOOD]\nfolders = [\"p\"]", &[("p/bad/plugin.toml", manifest)], "bad: it requests `environment = [\"LANG\"]`, which is not approved / `tenon approve bad` shows it and asks").await;
}

#[tokio::test]
async fn a_cache_that_others_can_write_to_is_not_used() {
    use std::os::unix::fs::PermissionsExt;
    let project = Project::new(&format!("plugins.wasm = [{:?}]", guests::TEXT_TOOLS));
    let cache = project.path("cache/components");
    std::fs::create_dir_all(&cache).unwrap();
    std::fs::set_permissions(&cache, std::fs::Permissions::from_mode(0o777)).unwrap();
    let host_environment =
        HostEnvironment { cache: Some(project.path("cache")), ..HostEnvironment::default() };
    let platform = project.builder().host_environment(host_environment).build().await.unwrap();
    assert!(platform.registry().tool("text_tools__slug").is_some());
    assert_eq!(std::fs::read_dir(cache).unwrap().count(), 0);
}

#[tokio::test]
async fn a_damaged_cache_entry_is_compiled_again() {
    let project = Project::new(&format!("plugins.wasm = [{:?}]", guests::TEXT_TOOLS));
    let host_environment =
        HostEnvironment { cache: Some(project.path("cache")), ..HostEnvironment::default() };
    for round in 0..3 {
        let platform =
            project.builder().host_environment(host_environment.clone()).build().await.unwrap();
        assert_eq!(
            text(&platform, "text_tools__slug", json!({ "text": "A b" })).await,
            "a-b",
            "{round}"
        );
        let entries = compiled_in(&project.path("cache/components"));
        assert_eq!(entries.len(), 1);
        if round == 0 {
            std::fs::write(&entries[0], b"not compiled code").unwrap();
        }
    }
}
