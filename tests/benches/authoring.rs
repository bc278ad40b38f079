//! What authors wait for, in each language: how long a build takes, how large the smallest plugin is, how long its first
//! call takes and those after it, how long it takes from a saved file to the answer of a call under `tenon dev`, and how
//! long ten cases of `tenon test` take; and how long a first test with `tenon-harness` compiles.
//!
//! `cargo xtask bench authoring` says where the packages for Python and JavaScript are. Without them these languages are
//! left out.

#![allow(clippy::print_stdout)]

mod table;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use table::Table;
use tempfile::TempDir;
use tenon_tests::{installed, link_javascript_sdk};

/// The root of the repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// How often a file is saved.
const SAVES: usize = 5;

/// Variables of the environment, with their values.
type Variables = Vec<(&'static str, OsString)>;

/// A language, and the file with the greeting.
struct Language {
    name: &'static str,
    file: &'static str,
    component: &'static str,
    /// Gives a project what its package manager would install; nothing where that is not there.
    install: fn(&Path) -> Option<Variables>,
}

const LANGUAGES: [Language; 5] = [
    Language {
        name: "rust",
        file: "src/lib.rs",
        component: "greeter.wasm",
        install: |folder| {
            fs::copy(format!("{ROOT}/guests/Cargo.lock"), folder.join("Cargo.lock")).ok()?;
            Some(vec![("CARGO_TARGET_DIR", folder.join("target").into())])
        },
    },
    Language {
        name: "python",
        file: "app.py",
        component: "greeter.wasm",
        install: |_| {
            let programs = installed(&["TENON_TOOLCHAINS_PIP"])?.join("python/bin");
            let path = std::env::var("PATH").unwrap_or_default();
            Some(vec![
                ("PATH", format!("{}:{path}", programs.display()).into()),
                ("PYTHONPATH", format!("{ROOT}/sdk/python/src").into()),
            ])
        },
    },
    Language {
        name: "javascript",
        file: "plugin.js",
        component: "greeter.wasm",
        install: link_javascript,
    },
    Language {
        name: "typescript",
        file: "plugin.ts",
        component: "greeter.wasm",
        install: link_javascript,
    },
    Language {
        name: "rhai",
        file: "greeter.rhai",
        component: "greeter.rhai",
        install: |_| Some(Vec::new()),
    },
];

fn link_javascript(folder: &Path) -> Option<Variables> {
    link_javascript_sdk(&installed(&["TENON_JAVASCRIPT_SDK"])?, folder).ok()?;
    Some(Vec::new())
}

/// A plugin's project, with a user of its own.
struct Project {
    root: TempDir,
    variables: Variables,
}

impl Project {
    fn folder(&self) -> PathBuf {
        self.root.path().join("greeter")
    }

    fn command(&self, arguments: &[&str], folder: &Path) -> Command {
        let mut command = Command::new(tenon());
        let home = self.root.path().join("home");
        command
            .args(arguments)
            .current_dir(folder)
            .env("XDG_CONFIG_HOME", home.join("config"))
            .env("XDG_STATE_HOME", home.join("state"))
            .env("XDG_CACHE_HOME", home.join("cache"))
            .env("TENON_SDK", format!("{ROOT}/sdk"))
            .envs(self.variables.iter().cloned());
        command
    }

    /// Runs a command, and gives what it prints with how long it takes.
    fn run(&self, arguments: &[&str], folder: &Path) -> (String, Duration) {
        let began = Instant::now();
        let output = self.command(arguments, folder).output().expect("tenon starts");
        let time = began.elapsed();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}{errors}");
        (said, time)
    }

    fn call(&self) -> (String, Duration) {
        self.run(&["call", "greeter__greet", "name=Ada"], &self.folder())
    }
}

/// The command, built in release mode.
fn tenon() -> PathBuf {
    let program = std::env::current_exe().expect("it runs");
    program.ancestors().nth(2).expect("it is in `deps`").join("tenon")
}

/// A `tenon dev` that ends with this.
struct Dev(Child);

impl Dev {
    fn start(project: &Project) -> Self {
        let mut command = project.command(&["dev", "--no-tests"], &project.folder());
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let ready = lines.by_ref().map_while(Result::ok).any(|line| line.contains("are ready"));
        assert!(ready, "it does not become ready");
        // What it says is read to its end, so that it goes on.
        std::thread::spawn(move || lines.for_each(drop));
        Self(child)
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        // Where it has ended, there is nothing to end.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The cells of a language's row; nothing where its package is not installed.
fn measure(language: &Language) -> Option<[String; COLUMNS.len()]> {
    let root = TempDir::new().expect("there is room for a folder");
    let mut project = Project { root, variables: Vec::new() };
    project.run(&["new", "greeter", "--lang", language.name], project.root.path());
    let folder = project.folder();
    project.variables = (language.install)(&folder)?;
    let (_, build) = project.run(&["build"], &folder);
    let size = fs::metadata(folder.join(language.component)).expect("it is built").len();
    let (_, first) = project.call();
    let (_, second) = project.call();

    let mut cases = String::new();
    for number in 0..10 {
        writeln!(
            cases,
            "[[case]]\nname = \"{number}\"\ncall = \"greet\"\narguments = {{ name = \"Ada\" }}\nexpect.text = \"Hello, Ada!\""
        )
        .expect("a text has room");
    }
    fs::create_dir(folder.join("cases")).expect("it is made");
    fs::write(folder.join("cases/ten.toml"), cases).expect("it is written");
    let (_, tests) = project.run(&["test", "--no-build"], &folder);

    let dev = Dev::start(&project);
    let path = folder.join(language.file);
    let text = fs::read_to_string(&path).expect("it is there");
    // The first save builds for the first time as `tenon dev` does.
    let mut saves: Vec<Duration> = (0..=SAVES)
        .map(|number| {
            let began = Instant::now();
            let greeting = format!("Salute {number}, ");
            fs::write(&path, text.replace("Hello, ", &greeting)).expect("it is written");
            let (said, _) = project.call();
            assert!(said.starts_with(&greeting), "{said}");
            began.elapsed()
        })
        .collect();
    drop(dev);
    let first_save = saves.remove(0);
    saves.sort();
    let seconds = |time: Duration| format!("{:.2} s", time.as_secs_f64());
    Some([
        language.name.into(),
        seconds(build),
        format!("{:.1} kB", size as f64 / 1000.0),
        seconds(first),
        seconds(second),
        seconds(first_save),
        seconds(saves[SAVES / 2]),
        seconds(tests),
    ])
}

/// Compiles a first test with `tenon-harness`, in a folder of its own.
fn measure_harness() -> Duration {
    let root = TempDir::new().expect("there is room for a folder");
    let manifest = format!(
        "[package]\nname = \"checks\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[dev-dependencies]\n\
         tenon-harness = {{ path = \"{ROOT}/harness\" }}\ntokio = {{ version = \"1\", features = [\"macros\", \"rt-multi-thread\"] }}\n[workspace]\n"
    );
    fs::create_dir(root.path().join("src")).expect("it is made");
    fs::write(root.path().join("Cargo.toml"), manifest).expect("it is written");
    fs::copy(format!("{ROOT}/Cargo.lock"), root.path().join("Cargo.lock")).expect("it is there");
    let test = "#[cfg(test)]\nmod tests {\n    #[tokio::test]\n    async fn it_starts() {\n        let started = tenon_harness::Harness::script(\"x.rhai\").start().await;\n        assert!(started.is_err());\n    }\n}\n";
    fs::write(root.path().join("src/lib.rs"), test).expect("it is written");
    let began = Instant::now();
    let status = Command::new(env!("CARGO"))
        .args(["test", "--no-run"])
        .current_dir(root.path())
        .env("CARGO_TARGET_DIR", root.path().join("target"))
        .status();
    assert!(status.is_ok_and(|status| status.success()), "it does not compile");
    began.elapsed()
}

const COLUMNS: [&str; 8] = [
    "language",
    "first build",
    "size",
    "first call",
    "later calls",
    "first save to answer",
    "later saves to answer",
    "ten cases of `tenon test`",
];

fn main() {
    let mut table = Table::new("Languages", COLUMNS);
    let mut missing = Vec::new();
    for language in &LANGUAGES {
        match measure(language) {
            Some(row) => table.row(row),
            None => missing.push(language.name),
        }
    }
    table.print();
    for name in missing {
        println!("{name}: its package is not installed");
    }
    let time = measure_harness().as_secs_f64();
    println!("A first test with `tenon-harness` compiles in {time:.0} s.");
}
