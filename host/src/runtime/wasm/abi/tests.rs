use super::*;
use crate::call::Call;
use crate::platform::{Platform, PluginState};
use crate::{Config, HostEnvironment};
use serde_json::json;

/// A plugin of the newest version, written by hand.
const NEWEST: &str = include_str!("../../../../../tests/languages/wat/subject.wat");
const OLD: &str = include_str!("v0_0.wat");

/// A platform with these components, by their ids.
async fn platform(components: &[(&str, &str)]) -> Platform {
    let folder = tempfile::TempDir::new().unwrap();
    let mut paths = Vec::new();
    for (id, text) in components {
        let path = folder.path().join(format!("{id}.wasm"));
        std::fs::write(&path, wat::parse_str(text).unwrap()).unwrap();
        paths.push(path);
    }
    let config = format!("plugins.wasm = {paths:?}");
    let config = Config::parse(&config, folder.path().join("tenon.toml")).unwrap();
    let host_environment = HostEnvironment::default();
    Platform::builder().host_environment(host_environment).config(config).build().await.unwrap()
}

#[tokio::test]
async fn two_versions_are_hosted_side_by_side() {
    let platform = platform(&[("old", OLD), ("new", NEWEST)]).await;
    for tool in ["old__echo", "new__echo"] {
        let result = platform.call(Call::new(tool, json!({ "text": "hello" }))).await.unwrap();
        let said = result.plain_text();
        assert!(said == "hello" || said == r#"{"text":"hello"}"#, "{tool}: {said}");
    }
}

/// What a component that says it is of another version comes to.
async fn of_version(version: &str) -> (PluginState, String) {
    let text = NEWEST.replace("@0.2.0", &format!("@{version}"));
    let platform = platform(&[("p", &text)]).await;
    let report = &platform.plugins()[0];
    (report.state, format!("{:?} {:?}", report.detail, report.remedy))
}

#[tokio::test]
async fn a_compatible_version_is_loaded_and_another_is_refused_naming_both() {
    assert_eq!(of_version("0.2.9").await.0, PluginState::Ready);
    for (version, remedy) in [
        ("0.3.0", "a later Tenon loads it"),
        ("0.1.0", "build it again"),
        ("1.0.0", "a later Tenon loads it"),
        ("0.0.7", "build it again"),
    ] {
        let (state, words) = of_version(version).await;
        assert_ne!(state, PluginState::Ready, "{version}");
        let both = format!(
            "it was built for tenon:plugin@{version}, and this host speaks tenon:plugin@{PACKAGE_VERSION}"
        );
        assert!(words.contains(&both) && words.contains(remedy), "{words}");
    }
}

#[test]
fn versions_are_compatible_while_nothing_is_broken_between_them() {
    let check = |one: &str, other: &str, expected| {
        let [one, other] = [one, other].map(|version| Version::parse(version).unwrap());
        assert_eq!(compatible(&one, &other), expected, "{one} {other}");
        assert_eq!(compatible(&other, &one), expected, "{other} {one}");
    };
    check("1.4.0", "1.2.0", true);
    check("1.0.0", "2.0.0", false);
    check("0.1.3", "0.1.0", true);
    check("0.2.0", "0.1.9", false);
    check("0.0.1", "0.0.2", false);
    check("0.1.0", "1.0.0", false);
}
