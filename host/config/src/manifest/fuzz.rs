//! Manifests of any text.

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;

use super::{
    FILE_NAME, HostRequirements, Manifest, ManifestError, ManifestText, PluginMetadata,
    PluginRuntime, RegistrationPermissions,
};
use crate::config::CallContextTable;
use crate::grant::GrantSet;
use crate::host_environment::HostEnvironment;
use crate::limits::LimitsTable;
use crate::path_context::PathContext;

/// Any text. What is wrong with it is on one of its lines; what is right says the same when it is
/// written in another way, and what it requests means the same when it is read as it is approved.
pub fn manifest(text: &str) {
    let is_line = |line: usize| (1..=text.split('\n').count()).contains(&line);
    let manifest = match Manifest::parse(text) {
        Ok(manifest) => manifest,
        Err(ManifestError::Invalid { line, problem }) => {
            assert!(is_line(line), "there is no line {line}");
            assert!(!problem.trim().is_empty(), "line {line} is wrong for no reason");
            return;
        }
        Err(ManifestError::Id(id)) => return assert!(!is_id(&id), "`{id}` is an id"),
        Err(ManifestError::Read(error)) => panic!("nothing was to be read: {error}"),
    };
    assert!(is_id(&manifest.plugin.id), "`{}` is no id", manifest.plugin.id);

    let table: toml::Table = toml::from_str(text).expect("a manifest is TOML");
    let written = toml::to_string(&table).expect("a table can be written");
    match Manifest::parse(&written) {
        Ok(again) => assert_eq!(says(&again), says(&manifest), "written as:\n{written}"),
        Err(error) => panic!("{error}, written as:\n{written}"),
    }

    let folder = Path::new("/no/such/plugin");
    let host_environment = HostEnvironment {
        environment: [("V".into(), "[v]*".into())].into(),
        home: Some("/no/such/home".into()),
        ..HostEnvironment::default()
    };
    let whole = ManifestText { path: folder.join(FILE_NAME), text: text.to_string() };
    let data_folder = Some(Path::new("/no/such/data"));
    let paths = PathContext { data_folder, ..PathContext::new(&host_environment, folder) };
    match manifest.requests(&whole, &paths) {
        Ok(requests) => {
            let mut again = GrantSet::default();
            for (capability, values) in requests.texts() {
                for value in values {
                    let added = again.add(
                        &capability,
                        &value,
                        &PathContext::new(&host_environment, Path::new("/")),
                    );
                    added.expect("what is approved can be requested");
                }
            }
            assert_eq!(again.texts(), requests.texts());
        }
        Err(ManifestError::Invalid { line, .. }) => {
            assert!(is_line(line), "there is no line {line}");
        }
        Err(error) => panic!("{error}"),
    }
}

/// All that a manifest says, without the places where it does.
#[derive(Debug, PartialEq)]
struct ManifestWithoutSpans<'a> {
    plugin: &'a PluginMetadata,
    runtime: &'a PluginRuntime,
    capabilities: BTreeMap<&'a str, Vec<&'a str>>,
    requires: &'a HostRequirements,
    permissions: &'a Option<RegistrationPermissions>,
    limits: &'a LimitsTable,
    context: &'a CallContextTable,
    settings: &'a Map<String, Value>,
    settings_schema: &'a Option<Map<String, Value>>,
}

fn says(manifest: &Manifest) -> ManifestWithoutSpans<'_> {
    let Manifest {
        plugin,
        runtime,
        capabilities,
        requires,
        permissions,
        hooks: _,
        limits,
        context,
        settings,
        settings_schema,
        // Parsing moves it into `plugin`.
        plugin_api_version: _,
    } = manifest;
    let capabilities = capabilities.iter().flatten().map(|(capability, values)| {
        (
            capability.get_ref().as_str(),
            values.iter().map(|value| value.get_ref().as_str()).collect(),
        )
    });
    let capabilities = capabilities.collect();
    ManifestWithoutSpans {
        plugin,
        runtime,
        capabilities,
        requires,
        permissions,
        limits,
        context,
        settings,
        settings_schema,
    }
}

/// The rule for ids, once more.
fn is_id(text: &str) -> bool {
    let letters = b"abcdefghijklmnopqrstuvwxyz0123456789";
    match text.as_bytes() {
        [first, rest @ ..] if rest.len() < 64 => {
            letters.contains(first) && rest.iter().all(|c| letters.contains(c) || b"-_".contains(c))
        }
        _ => false,
    }
}
