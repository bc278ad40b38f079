//! A registry that nobody here wrote, from which plugins are installed: CNCF Distribution, as Debian
//! has it.
//!
//! `cargo xtask test` installs it, and says where it is. Without it these tests are listed as ignored,
//! which one line says, and none of them passes.

#![allow(clippy::print_stderr)]

#[path = "it/support.rs"]
#[allow(dead_code)]
mod support;

use libtest_mimic::Arguments;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Output, Stdio};
use tempfile::TempDir;
use tenon_config::files::Digest;

use support::{Project, parsed, stderr, stdout};
use tenon_tests::trial;

#[allow(dead_code)]
mod guests {
    // The paths of the guests, written by the build script.
    include!(concat!(env!("OUT_DIR"), "/guests.rs"));
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let programs = std::env::var_os("TENON_REGISTRY").map(PathBuf::from);
    if programs.is_none() {
        eprintln!(
            "note: no real registry is installed, so its tests are ignored; `cargo xtask test` installs one"
        );
    }
    let mut trials = Vec::new();
    macro_rules! trials {
        ($($name:ident),* $(,)?) => {$(
            let test = |folder: PathBuf| $name(&OciRegistry::start(&folder));
            trials.push(trial(stringify!($name), "real registry", programs.clone(), test));
        )*};
    }
    trials!(
        what_is_published_is_installed_and_runs,
        requests_go_along_and_are_asked_about,
        skills_go_along_and_are_what_they_were,
        a_script_is_published_with_or_without_its_folder,
        what_another_program_pushed_is_installed,
        what_changed_in_the_registry_is_refused,
    );
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// A registry that ends with this.
struct OciRegistry {
    child: Child,
    address: String,
    folder: TempDir,
}

impl Drop for OciRegistry {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl OciRegistry {
    fn start(programs: &Path) -> Self {
        let folder = TempDir::new().expect("there is room for a folder");
        let config = json!({
            "version": 0.1,
            "log": { "level": "info", "formatter": "json", "accesslog": { "disabled": true } },
            "storage": { "filesystem": { "rootdirectory": folder.path().join("data") } },
            "http": { "addr": "127.0.0.1:0" },
        });
        let path = folder.path().join("config.yml");
        // What is JSON is YAML.
        fs::write(&path, config.to_string()).expect("a file is written");
        let mut child = Command::new(programs.join("usr/bin/docker-registry"))
            .arg("serve")
            .arg(path)
            .stderr(Stdio::piped())
            .spawn()
            .expect("the registry starts");
        let mut log = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        let address = log.find_map(|line| {
            let line: Value = serde_json::from_str(&line.ok()?).ok()?;
            line["msg"].as_str()?.strip_prefix("listening on ").map(str::to_string)
        });
        // So that it never waits for somebody to read.
        std::thread::spawn(move || log.for_each(drop));
        let address = address.expect("it says where it listens");
        Self { child, address, folder }
    }

    fn oci(&self, rest: &str) -> String {
        format!("oci://{}/{rest}", self.address)
    }

    /// Where it keeps something, by its digest.
    fn blob(&self, digest: &str) -> PathBuf {
        let hex = &digest["sha256:".len()..];
        let data = self.folder.path().join("data/docker/registry/v2/blobs/sha256");
        data.join(&hex[..2]).join(hex).join("data")
    }
}

fn tenon(project: &Project, arguments: &[&str]) -> Output {
    let mut command = project.command(arguments);
    command.env("XDG_CACHE_HOME", project.path("cache")).env_remove("DOCKER_CONFIG");
    command.output().expect("tenon starts")
}

fn done(project: &Project, arguments: &[&str]) -> Value {
    let output = tenon(project, &[&["--json"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", stderr(&output));
    parsed(&output)
}

fn slug(project: &Project) -> String {
    let output = tenon(project, &["call", "text-tools__slug", r#"{"text": "A b"}"#]);
    format!("{}{}", stdout(&output), stderr(&output))
}

fn what_is_published_is_installed_and_runs(registry: &OciRegistry) {
    let project = Project::new("");
    let reference = registry.oci("acme/text-tools:1.0");
    let published = done(&project, &["publish", guests::TEXT_TOOLS, &reference]);
    let row = done(&project, &["install", &reference]);
    let resolved = row[0]["resolved"].as_str().unwrap();
    assert!(
        resolved.ends_with(published["resolved"].as_str().unwrap().rsplit('@').next().unwrap())
    );
    assert_eq!(row[0]["digest"], Digest::of(fs::read(guests::TEXT_TOOLS).unwrap()).named());
    assert_eq!(slug(&project), "a-b\n");
    // The same once more, and under another tag: what is there is not sent again.
    done(&project, &["publish", guests::TEXT_TOOLS, &registry.oci("acme/text-tools:latest")]);
    // By its digest, elsewhere.
    let other = Project::new("");
    done(&other, &["install", resolved]);
    assert_eq!(slug(&other), "a-b\n");
    // From the lock file alone.
    let third = Project::new("");
    third.write("tenon.lock", fs::read(project.path("tenon.lock")).unwrap());
    done(&third, &["install"]);
    assert_eq!(slug(&third), "a-b\n");
    let none = tenon(&project, &["install", &registry.oci("acme/none:1.0")]);
    assert_eq!(none.status.code(), Some(5), "{}", stderr(&none));
    assert!(stderr(&none).contains("responded with 404"), "{}", stderr(&none));
}

fn requests_go_along_and_are_asked_about(registry: &OciRegistry) {
    let project = Project::new("");
    project.write("src/e.wasm", fs::read(guests::ESCAPE).unwrap());
    project.write("src/plugin.toml", "plugin = { id = \"e\", version = \"1.2.3\" }\nruntime = { kind = \"wasm\", path = \"e.wasm\" }\n[capabilities]\nfilesystem = [\"read:~/notes/*\"]\n");
    let reference = registry.oci("acme/escape");
    done(&project, &["publish", "src", &reference]);
    let row = done(&project, &["install", &reference]);
    assert_eq!((&row[0]["plugin"], &row[0]["version"]), (&json!("e"), &json!("1.2.3")));
    assert_eq!(row[0]["approval"]["approved"], false);
    assert_eq!(done(&project, &["install", &reference, "--yes"])[0]["approval"]["approved"], true);
}

fn skills_go_along_and_are_what_they_were(registry: &OciRegistry) {
    let project = Project::new("");
    project.write("src/t.wasm", fs::read(guests::TEXT_TOOLS).unwrap());
    let manifest = "plugin = { id = \"t\" }\nruntime = { kind = \"wasm\", path = \"t.wasm\" }\n";
    project.write("src/plugin.toml", manifest);
    let skill = "---\nname: slugs\ndescription: Makes slugs.\n---\nUse t__slug.\n";
    project.write("src/skills/slugs/SKILL.md", skill);
    project.write("src/skills/slugs/assets/logo.png", [0xff, 0]);
    let reference = registry.oci("acme/slugs:1.0");
    done(&project, &["publish", "src", &reference]);
    let installed = done(&project, &["install", &reference, "--yes"])[0].clone();
    assert_eq!(installed["approval"]["approved"], true);
    let read = done(&project, &["skills", "read", "t", "slugs"]);
    assert_eq!(read["text"], skill);
    let logo = project.path(".tenon/plugins/t/skills/slugs/assets/logo.png");
    assert_eq!(fs::read(logo).unwrap(), [0xff, 0]);
    // What the registry gives in place of a file is none.
    let blob = registry.blob(&Digest::of(skill).named());
    for (instead, problem) in [("Ban", "has the wrong digest"), ("Misuse", "is larger than")] {
        fs::write(&blob, skill.replace("Use", instead)).unwrap();
        let other = Project::new("");
        let output = tenon(&other, &["install", &reference]);
        assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
        assert!(stderr(&output).contains("skills/slugs/SKILL.md"), "{}", stderr(&output));
        assert!(stderr(&output).contains(problem), "{}", stderr(&output));
        assert!(!other.path(".tenon").exists());
    }
}

fn a_script_is_published_with_or_without_its_folder(registry: &OciRegistry) {
    let script = "tool(#{ name: \"greet\", description: \"Greets\" }, |arguments| \"Hello!\");\n";
    let manifest = "plugin = { id = \"g\", version = \"1.2.3\" }\n\
                    runtime = { kind = \"rhai\", path = \"lib/greet.rhai\" }\n\
                    [capabilities]\nstate = [\"project\"]\n";
    let project = Project::new("");
    project.write("src/lib/greet.rhai", script);
    project.write("src/plugin.toml", manifest);
    let called = |project: &Project, tool: &str| {
        let output = tenon(project, &["call", tool, "{}"]);
        format!("{}{}", stdout(&output), stderr(&output))
    };
    let folder = registry.oci("acme/greet-folder:1.0");
    let published = done(&project, &["publish", "src", &folder]);
    assert_eq!(published["digest"], Digest::of(script).named());
    let row = done(&project, &["install", &folder, "--yes"])[0].clone();
    assert_eq!((&row["plugin"], &row["version"]), (&json!("g"), &json!("1.2.3")));
    assert!(project.path(".tenon/plugins/g/lib/greet.rhai").exists());
    assert_eq!(called(&project, "g__greet"), "Hello!\n");

    // The artifact is one for other programs, too: a type of its own, and an empty configuration.
    let digest = published["resolved"].as_str().unwrap().rsplit('@').next().unwrap();
    let image: Value = serde_json::from_slice(&fs::read(registry.blob(digest)).unwrap()).unwrap();
    assert_eq!(image["artifactType"], "application/vnd.tenon.script.v1");
    assert_eq!(image["config"]["mediaType"], "application/vnd.oci.empty.v1+json");
    assert_eq!(image["annotations"]["org.opencontainers.image.version"], "1.2.3");

    // Alone it requests nothing, and its name is that of the repository.
    let other = Project::new("");
    let alone = registry.oci("acme/greet:1.0");
    done(&project, &["publish", "src/lib/greet.rhai", &alone]);
    done(&other, &["install", &alone]);
    assert_eq!(called(&other, "greet__greet"), "Hello!\n");
    // From the lock file alone.
    let third = Project::new("");
    third.write("tenon.lock", fs::read(other.path("tenon.lock")).unwrap());
    done(&third, &["install"]);
    assert_eq!(called(&third, "greet__greet"), "Hello!\n");

    project.write("bad.rhai", "tool(");
    let refused = tenon(&project, &["publish", "bad.rhai", &registry.oci("acme/bad:1.0")]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("bad.rhai:1:"), "{}", stderr(&refused));
}

/// As `wkg oci push` does: its configuration, one layer, and a version.
fn what_another_program_pushed_is_installed(registry: &OciRegistry) {
    let component = fs::read(guests::TEXT_TOOLS).unwrap();
    let config = json!({ "architecture": "wasm", "os": "wasip2", "layerDigests": [Digest::of(&component).named()] });
    let config = config.to_string();
    let base = format!("http://{}/v2/acme/text-tools", registry.address);
    let curl = |arguments: &[&str], input: &[u8]| {
        let body = registry.folder.path().join("body");
        fs::write(&body, input).unwrap();
        let data = format!("@{}", body.display());
        let output =
            Command::new("curl").args(["-sSi", "--data-binary", &data]).args(arguments).output();
        let output = String::from_utf8(output.expect("curl starts").stdout).unwrap();
        assert!(output.contains(" 201 ") || output.contains(" 202 "), "{arguments:?}: {output}");
        output
    };
    for blob in [&component[..], config.as_bytes()] {
        let begun = curl(&["-X", "POST", &format!("{base}/blobs/uploads/")], b"");
        let location = begun.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("location").then(|| value.trim().to_string())
        });
        let url = format!("{}&digest={}", location.unwrap(), Digest::of(blob).named());
        curl(&["-X", "PUT", "-H", "content-type: application/octet-stream", &url], blob);
    }
    let media_type = "application/vnd.oci.image.manifest.v1+json";
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": media_type,
        "config": {
            "mediaType": "application/vnd.wasm.config.v0+json",
            "digest": Digest::of(&config).named(),
            "size": config.len(),
        },
        "layers": [{
            "mediaType": "application/wasm",
            "digest": Digest::of(&component).named(),
            "size": component.len(),
        }],
        "annotations": { "org.opencontainers.image.version": "0.1.0" },
    });
    let header = format!("content-type: {media_type}");
    curl(
        &["-X", "PUT", "-H", &header, &format!("{base}/manifests/0.1.0")],
        manifest.to_string().as_bytes(),
    );
    let project = Project::new("");
    done(&project, &["install", &registry.oci("acme/text-tools:0.1.0")]);
    assert_eq!(slug(&project), "a-b\n");
}

fn what_changed_in_the_registry_is_refused(registry: &OciRegistry) {
    let project = Project::new("");
    let reference = registry.oci("acme/text-tools:1.0");
    let digest = done(&project, &["publish", guests::TEXT_TOOLS, &reference])["digest"].clone();
    let blob = registry.blob(digest.as_str().unwrap());
    let mut bytes = fs::read(&blob).expect("it keeps what it was given");
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&blob, bytes).unwrap();
    let output = tenon(&project, &["install", &reference]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("has the wrong digest"), "{}", stderr(&output));
    assert!(!project.path("tenon.lock").exists());
}
