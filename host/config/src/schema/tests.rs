use jsonschema::Validator;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use tenon_types::hook::POINTS;

use super::keys::{FileSchema, Key};
use super::{PLUGIN, PROJECT};
use crate::config::{CombineRule, Config, KEY_RULES};
use crate::entry::McpEntry;
use crate::grant::{CAPABILITIES, Eligibility};
use crate::host_environment::HostEnvironment;
use crate::limits::Limits;
use crate::manifest::{FILE_NAME, Manifest, ManifestText, PluginRuntime};
use crate::path_context::PathContext;

/// One of the two files: its schema, and its parser.
struct FileFormat {
    schema: FileSchema,
    validator: Validator,
    parse: fn(&str) -> Result<(), String>,
    /// A file to begin with, for a key.
    start: fn(&[String]) -> Value,
}

fn plugin() -> FileFormat {
    let start = |steps: &[String]| {
        let is_of_server = steps.iter().any(|step| step == "subprocess" || step == "hooks");
        let runtime = match is_of_server {
            true => json!({ "kind": "mcp-bridge" }),
            false => json!({ "kind": "wasm", "path": "p.wasm" }),
        };
        json!({ "runtime": runtime, "plugin": {} })
    };
    FileFormat::new(PLUGIN, |text| manifest(text).map(drop), start)
}

fn project() -> FileFormat {
    let parse = |text: &str| {
        let config = Config::parse(text, "tenon.toml").map_err(|error| error.to_string())?;
        let entries = config.wasm.iter().chain(&config.scripts);
        let of_files = entries.filter_map(|entry| match entry {
            crate::config::PluginFileEntry::Table(table) => Some(&table.capabilities),
            crate::config::PluginFileEntry::Path(_) => None,
        });
        let of_servers = config.mcp.iter().filter_map(|entry| entry.capabilities.as_ref());
        let mut tables = of_files.chain(of_servers);
        let requests = |capabilities| {
            let (host_environment, folder) = (host_environment(), Path::new("/p"));
            let paths = PathContext::new(&host_environment, folder);
            crate::manifest::requests_of(capabilities, &paths).map(drop)
        };
        tables.try_for_each(requests)
    };
    FileFormat::new(PROJECT, parse, |_| json!({}))
}

fn host_environment() -> HostEnvironment {
    HostEnvironment { home: Some("/home/u".into()), ..HostEnvironment::default() }
}

/// Reads a manifest and what it requests.
fn manifest(text: &str) -> Result<Manifest, String> {
    let manifest = Manifest::parse(text).map_err(|error| error.to_string())?;
    let text = ManifestText::of(Path::new("/p").join(FILE_NAME), text);
    let host_environment = host_environment();
    let data_folder = Some(Path::new("/home/u/data"));
    let paths = PathContext { data_folder, ..PathContext::new(&host_environment, Path::new("/p")) };
    manifest.requests(&text, &paths).map_err(|error| error.to_string())?;
    if let PluginRuntime::McpBridge { subprocess: Some(entry) } = &manifest.runtime {
        let of_server = entry.capabilities.as_ref();
        of_server.map_or(Ok(()), |of_server| {
            crate::manifest::requests_of(of_server, &paths).map(drop)
        })?;
    }
    Ok(manifest)
}

impl FileFormat {
    fn new(
        schema: &str,
        parse: fn(&str) -> Result<(), String>,
        start: fn(&[String]) -> Value,
    ) -> Self {
        let schema = FileSchema::parse(schema);
        assert!(jsonschema::meta::is_valid(schema.value()), "it is no schema");
        let validator = jsonschema::validator_for(schema.value()).expect("it is a schema");
        Self { schema, validator, parse, start }
    }

    fn file_with(&self, steps: &[String], value: &Value) -> Value {
        // A manifest is asked for its id where the key is elsewhere.
        let mut file = self.schema.file_with((self.start)(steps), steps, value);
        if file.get("plugin") == Some(&json!({})) && steps != ["plugin"] {
            file["plugin"] = json!({ "id": "p" });
        }
        file
    }
}

fn toml_of(file: &Value) -> String {
    toml::to_string(file).expect("it can be written as TOML")
}

fn steps(path: &str) -> Vec<String> {
    path.split('.').filter(|step| !step.is_empty()).map(str::to_string).collect()
}

#[test]
fn a_table_has_the_keys_that_its_parser_knows() {
    for checked in [plugin(), project()] {
        for (table, names) in checked.schema.closed_tables() {
            let place = [&table[..], &steps("nosuchkey")].concat();
            let file = toml_of(&checked.file_with(&place, &json!("x")));
            let error = (checked.parse)(&file).expect_err(&file);
            let mut known: BTreeSet<String> = if table == ["hooks"] && error.contains("hook point")
            {
                POINTS.iter().map(|info| info.name.to_string()).collect()
            } else {
                let list = error.split_once("expected ").or(error.split_once("a table with "));
                let list = list.unwrap_or_else(|| panic!("{file}: {error}")).1;
                let list = list.split("; did you mean").next().unwrap_or_default();
                list.split('`').skip(1).step_by(2).map(str::to_string).collect()
            };
            if table.last().is_some_and(|step| step == "subprocess") {
                // It is known, and refused: the server has the manifest's name.
                assert!(known.remove("name"));
            }
            assert_eq!(known, names.into_iter().collect(), "{}", table.join("."));
        }
    }
}

#[test]
fn a_value_is_allowed_where_the_parser_takes_it() {
    let probes = json!([
        true, -1, 0, 1, 1.5, 5000000000_u64, "", "x", "X Y", "5s", "0s", "0", "1.2.3", "https://a.example", [], ["x"], [""], [1], [["x"]],
        {}, { "x": "x" }, { "x": 1 }, { "x": ["x"] }, { "x": {} }, [{}]
    ]);
    let mut differences = Vec::new();
    for checked in [plugin(), project()] {
        for key in checked.schema.keys() {
            let named = checked.schema.named_values(&key);
            let mut is_taken = false;
            for value in probes.as_array().expect("it is a list").iter().chain(&named) {
                let file = checked.file_with(&key.steps, value);
                let parsed = (checked.parse)(&toml_of(&file));
                is_taken |= parsed.is_ok();
                assert!(
                    parsed.is_ok() || !named.contains(value) || key.path() == "runtime.kind",
                    "{} = {value} is named by the schema: {parsed:?}",
                    key.path()
                );
                let is_valid = checked.validator.is_valid(&file);
                // A list in place of a table is read member by member, which nobody means.
                let is_list = value.is_array() && checked.schema.table(&key.schema).is_some()
                    || value == &json!([["x"]]) && key.path() == "plugins.mcp";
                let is_known =
                    is_list || UNLIKE.contains(&(&key.path(), value.as_str().unwrap_or("…")));
                if is_valid != parsed.is_ok() && !is_known {
                    differences.push(format!("{} = {value}: {is_valid}, {parsed:?}", key.path()));
                }
            }
            // The keys of a table may have to be there.
            let is_table = checked.schema.table(&key.schema).is_some();
            assert!(is_taken || is_table, "no value of {} is taken", key.path());
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Texts that a schema refuses and that no parser does, since they are refused later, by their keys.
const UNLIKE: &[(&str, &str)] = &[("plugins.mcp[].binary_path", ""), ("plugins.mcp[].command", "")];

#[test]
fn a_default_is_what_holds_without_the_key() {
    let [plugin, project] = [plugin(), project()];
    let check = |checked: &FileFormat, same: fn(&str, &str) -> bool| {
        for key in checked.schema.keys() {
            // Those of one plugin stand in for those of all.
            if key.path().starts_with("policy.plugins.*.limits") {
                continue;
            }
            let Some(default) = checked.schema.resolve(&key.schema).get("default").cloned() else {
                continue;
            };
            let with = checked.file_with(&key.steps, &default);
            let without = removed(with.clone(), &key.steps);
            let (with, without) = (toml_of(&with), toml_of(&without));
            assert!(same(&with, &without), "{}: {with}\nis not\n{without}", key.path());
        }
    };
    check(&plugin, |one, other| {
        let read = |text: &str| {
            let mut manifest = manifest(text).expect(text);
            if let PluginRuntime::McpBridge { subprocess: Some(entry) } = &mut manifest.runtime {
                settle(entry);
            }
            let settings = (manifest.default_settings(), manifest.settings_schema);
            let Manifest { plugin, runtime, requires, hooks, limits, context, .. } = manifest;
            let permissions = manifest.permissions.unwrap_or_default();
            let limits = limits.over(&Limits::default());
            (plugin, runtime, requires, permissions, hooks, (limits, context, settings))
        };
        read(one) == read(other)
    });
    check(&project, |one, other| {
        let read = |text: &str| {
            let mut config = Config::parse(text, "tenon.toml").expect(text).without_explicit();
            config.mcp.iter_mut().for_each(settle);
            config.most = Limits::most();
            config
        };
        read(one) == read(other)
    });
}

/// An entry says in two ways whether it is wanted.
fn settle(entry: &mut McpEntry) {
    (entry.enabled, entry.disabled) = (Some(entry.is_enabled()), None);
}

/// The same without a key.
fn removed(mut file: Value, steps: &[String]) -> Value {
    let (last, tables) = steps.split_last().expect("a key has a name");
    let table = tables.iter().fold(&mut file, |value, step| match step.as_str() {
        "[]" => &mut value[0],
        "*" => &mut value["x"],
        name => &mut value[name],
    });
    table.as_object_mut().expect("a key is in a table").remove(last);
    file
}

#[test]
fn manifests_are_valid_that_can_be_read() {
    // What is wrong with them no schema says.
    let beyond_schemas = ["path_of_unset_variable", "two_contracts", "wrong_glob"];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/manifests");
    let checked = plugin();
    let entries = std::fs::read_dir(&folder).expect("the folder is there").flatten();
    let manifests = entries.map(|entry| entry.path());
    let manifests = manifests.filter(|path| path.extension().is_some_and(|kind| kind == "toml"));
    let manifests: Vec<PathBuf> = manifests.collect();
    assert!(manifests.len() > 30);
    for path in manifests {
        let text = std::fs::read_to_string(&path).expect("it can be read");
        let name = path.file_stem().and_then(|name| name.to_str()).expect("it is text");
        let Ok(file) = toml::from_str::<Value>(&text) else { continue };
        let is_read = (checked.parse)(&text).is_ok();
        let errors: Vec<String> =
            checked.validator.iter_errors(&file).map(|error| error.to_string()).collect();
        let expected = is_read || beyond_schemas.contains(&name);
        assert_eq!(errors.is_empty(), expected, "{name}: {errors:?}");
    }
}

#[test]
fn each_rule_is_of_a_key() {
    let keys: BTreeMap<String, Key> =
        project().schema.keys().into_iter().map(|key| (key.path(), key)).collect();
    let is_below = |key: &str, rule: &str| {
        key.strip_prefix(rule).is_some_and(|rest| rest.starts_with(['.', '[']))
    };
    for rule in KEY_RULES {
        assert!(keys.contains_key(rule.key), "no key {}", rule.key);
    }
    for (path, key) in &keys {
        let is_table = KEY_RULES.iter().any(|rule| is_below(rule.key, path));
        let rule = KEY_RULES.iter().find(|rule| rule.key == path || is_below(path, rule.key));
        assert_ne!(is_table, rule.is_some(), "{path}");
        let is_of_user = rule.is_some_and(|rule| rule.rule == CombineRule::UserOnly);
        let says_so = key.description().ends_with("; in the user's `config.toml` only.");
        assert_eq!(says_so, is_of_user, "{path}");
    }
}

#[test]
fn every_key_is_described_in_one_sentence() {
    for checked in [plugin(), project()] {
        for key in checked.schema.keys() {
            let text = key.description();
            assert!(text.ends_with('.') && !text.trim_end_matches('.').contains(". "), "{text:?}");
        }
    }
}

#[test]
fn what_both_files_have_is_the_same() {
    let [plugin, project] =
        [plugin(), project()].map(|checked| checked.schema.value()["$defs"].clone());
    for name in ["capabilities", "limits", "duration"] {
        assert_eq!(plugin[name], project[name], "{name}");
    }
    let mut server = project["server"].clone();
    let members = server.as_object_mut().expect("it is an object");
    assert_eq!(members.remove("required"), Some(json!(["name"])));
    assert!(
        members["properties"].as_object_mut().expect("it is an object").remove("name").is_some()
    );
    assert_eq!(server, plugin["server"]);
}

#[test]
fn capabilities_are_those_that_can_be_requested() {
    let schema = FileSchema::parse(PLUGIN);
    let table = schema.value()["$defs"]["capabilities"]["properties"].as_object();
    let named: BTreeSet<&str> =
        table.expect("it is an object").keys().map(String::as_str).collect();
    let on_request =
        |availability: Eligibility| matches!(availability, Eligibility::OnRequest { .. });
    let requested = CAPABILITIES.iter().filter(|capability| on_request(capability.availability));
    assert_eq!(named, requested.map(|capability| capability.name).collect());
}
