//! Manifests, and what each means: `x.toml` in `tests/manifests` sits by the `x.json` of its
//! standing, or the `x.err` that it earns; `x.json` in `tests/manifests/mcp` is a project's
//! `.mcp.json`, and sits by the `x.txt` of what comes of it and what has to be approved.
//! `TENON_BLESS=1` writes what is there now.

use std::fs;
use std::path::{Path, PathBuf};
use tenon_config::admit::{PluginsOverview, Rules};
use tenon_config::discover::{Sources, discover};
use tenon_host::{Config, HostEnvironment};

/// What the manifests are held against.
const CONFIGURATION: &str = "
    [policy]
    profile = \"messaging\"
    allow = [\"server\", \"server_beside\", \"bridge_without_permission\",
        \"bridge_without_namespace\", \"bridge_with_permission\"]
    deny = [\"denied\"]
    plugins.switched_off.enabled = false
";

#[test]
fn manifests_mean_what_is_written_beside_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests");
    let mut manifests: Vec<PathBuf> = fs::read_dir(&folder)
        .expect("the folder is there")
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    manifests.sort();
    let wrong: Vec<String> =
        manifests.iter().filter_map(|manifest| check(manifest).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn files_of_servers_mean_what_is_written_beside_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/mcp");
    let entries = fs::read_dir(&folder).expect("the folder is there").flatten();
    let files = entries.map(|entry| entry.path());
    let mut files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|kind| kind == "json")).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let meaning = meaning_of_servers(&file);
        let path = file.with_extension("txt");
        if std::env::var_os("TENON_BLESS").is_some() {
            fs::write(&path, &meaning).expect("it can be written");
        }
        let expected = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(meaning, expected, "{}", path.display());
    }
}

/// What a project's file of servers means on a machine made for it.
fn meaning_of_servers(file: &Path) -> String {
    let machine = tempfile::tempdir().expect("there is room for a folder");
    let root = machine.path().canonicalize().expect("the folder is there");
    fs::copy(file, root.join(".mcp.json")).expect("the file is copied");
    fs::write(root.join("env"), "FROM_FILE=x\n").expect("a file is written");
    let variables = [("SET", "x"), ("EMPTY", ""), ("PATH", "/nowhere")];
    let host_environment = HostEnvironment {
        environment: variables.map(|(name, value)| (name.into(), value.into())).into(),
        home: Some("/home/u".into()),
        ..HostEnvironment::default()
    };
    let workspace = Some(root.clone());
    let discovery = discover(&Sources { workspace, host_environment, ..Sources::default() });
    let mut meaning = PluginsOverview::new(&discovery, &Rules::default()).to_string();
    for candidate in &discovery.candidates {
        let request = candidate.approval_request().expect("it has to be approved");
        meaning.push_str(&format!("\n{}\n", candidate.id()));
        for (word, text) in request.command.expect("it has a command").lines() {
            meaning.push_str(&format!("  {word:<9} {text}\n"));
        }
    }
    meaning.replace(root.to_str().expect("it is text"), "ROOT")
}

fn check(manifest: &Path) -> Result<(), String> {
    let (extension, meaning) = meaning(manifest);
    let path = manifest.with_extension(extension);
    if std::env::var_os("TENON_BLESS").is_some() {
        fs::write(&path, &meaning).expect("it can be written");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    let other = if extension == "json" { "err" } else { "json" };
    if expected != meaning || manifest.with_extension(other).exists() {
        let path = path.display();
        return Err(format!("{path} says:\n{expected}\nand the manifest means:\n{meaning}"));
    }
    Ok(())
}

/// What a manifest means on a machine made for it.
fn meaning(manifest: &Path) -> (&'static str, String) {
    let machine = tempfile::tempdir().expect("there is room for a folder");
    let root = machine.path().canonicalize().expect("the folder is there");
    let plugin = root.join("plugins/it");
    fs::create_dir_all(&plugin).expect("a folder is made");
    fs::copy(manifest, plugin.join("plugin.toml")).expect("the manifest is copied");
    let sidecar = manifest.with_extension("mcp.json");
    if sidecar.exists() {
        fs::copy(sidecar, plugin.join(".mcp.json")).expect("the file is copied");
    }
    fs::write(root.join("outside.wasm"), "").expect("a file is written");
    let program = root.join("a-program");
    fs::write(&program, "").expect("a file is written");
    make_executable(&program);

    let variables = [("SET", "x"), ("EMPTY", ""), ("PATH", root.to_str().expect("it is text"))];
    let host_environment = HostEnvironment {
        environment: variables.map(|(name, value)| (name.into(), value.into())).into(),
        configuration: Some(root.clone()),
        ..HostEnvironment::default()
    };
    let config = Config::parse(CONFIGURATION, "tenon.toml").expect("the configuration is read");
    let sources = Sources { configs: vec![config], host_environment, ..Sources::default() };
    // What runs is there, so that nothing is said but of the manifest.
    for candidate in &discover(&sources).candidates {
        let file = candidate.file().filter(|file| file.starts_with(&plugin) && !file.exists());
        if let Some((file, folder)) = file.and_then(|file| Some((file, file.parent()?))) {
            fs::create_dir_all(folder).expect("a folder is made");
            fs::write(file, "").expect("a file is written");
        }
    }
    let discovery = discover(&sources);
    let rules = Rules::new(&sources.configs).reserve(["reserved".to_string()]);
    let snapshot = PluginsOverview::new(&discovery, &rules);
    let (extension, meaning) = match &snapshot.plugins[..] {
        [standing] => {
            ("json", serde_json::to_string_pretty(standing).expect("it can be serialized"))
        }
        _ => ("err", snapshot.diagnostics.iter().map(ToString::to_string).collect()),
    };
    (extension, meaning.replace(root.to_str().expect("it is text"), "ROOT") + "\n")
}

#[cfg(unix)]
fn make_executable(file: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).expect("it can be set");
}

#[cfg(not(unix))]
fn make_executable(_: &Path) {}
