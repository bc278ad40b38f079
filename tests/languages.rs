//! Plugins in other languages: what is expected of every plugin, and of those that `tenon new` makes.
//!
//! `cargo xtask test` installs the compilers, at the versions of the lock files in `languages/`, and
//! says where they are. Without them these tests are listed as ignored, which one line says, and
//! none of them passes.

#![allow(clippy::print_stderr)]

#[path = "it/suite.rs"]
mod suite;
#[path = "it/support.rs"]
#[allow(dead_code)]
mod support;
#[path = "it/templates.rs"]
mod templates;

use futures::FutureExt;
use futures::future::BoxFuture;
use libtest_mimic::{Arguments, Failed, Trial};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::{Arc, OnceLock};
use tenon_contract::sync_edition;
use tenon_host::Platform;

use support::{Project, stderr, stdout};
use templates::{empty, run, try_out};
use tenon_tests::installed;

/// A language, by the way to make a component of it.
struct Language {
    name: &'static str,
    /// What says where its compiler is.
    group: &'static str,
    /// Makes the component, with the compilers of the first folder, in the second.
    build: fn(&Path, &Path) -> Command,
    /// Where it is then, in that folder.
    component: &'static str,
    built: OnceLock<Result<PathBuf, String>>,
}

/// What says where the compilers of each package manager are.
const NPM: &str = "TENON_TOOLCHAINS_NPM";
const PIP: &str = "TENON_TOOLCHAINS_PIP";
const CARGO: &str = "TENON_TOOLCHAINS_CARGO";

const PACKAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../wit/plugin");
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/languages");

fn python(tools: &Path, _: &Path) -> Command {
    let mut command = Command::new(tools.join("python/bin/componentize-py"));
    command
        .args(["--wit-path", "wit", "--world", "tool", "componentize", "subject"])
        .args(["--output", "subject.wasm"]);
    command
}

fn javascript(tools: &Path, _: &Path) -> Command {
    let mut command = Command::new(tools.join("node_modules/.bin/jco"));
    command.args(["componentize", "subject.js", "--backend", "qjs"]).args([
        "--wit",
        PACKAGE,
        "--world-name",
        "tool",
        "--out",
        "subject.wasm",
    ]);
    command
}

fn cargo_component(tools: &Path, folder: &Path) -> Command {
    let mut command = Command::new(tools.join("bin/cargo-component"));
    command.args(["build", "--release", "--locked", "--target-dir"]).arg(folder.join("target"));
    for variable in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "RUSTC_WRAPPER"] {
        command.env_remove(variable);
    }
    command
}

impl Language {
    const fn new(
        name: &'static str,
        group: &'static str,
        component: &'static str,
        build: fn(&Path, &Path) -> Command,
    ) -> Self {
        Self { name, group, build, component, built: OnceLock::new() }
    }

    /// The component, which is made at most once.
    fn component(&self, tools: &Path) -> Result<&Path, Failed> {
        let built = self.built.get_or_init(|| {
            let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("languages").join(self.name);
            self.make(tools, &folder).map_err(|error| format!("{}: {error}", self.name))
        });
        built.as_deref().map_err(|error| Failed::from(error.clone()))
    }

    /// Makes the component, unless the same sources and compilers have made it before: these compilers
    /// never make the same bytes twice, and other bytes would be compiled anew.
    fn make(&self, tools: &Path, folder: &Path) -> Result<PathBuf, String> {
        let failed = |error: std::io::Error| error.to_string();
        let mut state = DefaultHasher::new();
        let sources = Path::new(SOURCES);
        for from in [&sources.join(self.name), Path::new(PACKAGE)] {
            hash(from, &mut state).map_err(failed)?;
        }
        for lock in ["package-lock.json", "requirements.txt"] {
            fs::read(sources.join(lock)).map_err(failed)?.hash(&mut state);
        }
        let (component, note) = (folder.join(self.component), folder.join("made-of"));
        let made_of = state.finish().to_string();
        if component.is_file() && fs::read_to_string(&note).is_ok_and(|known| known == made_of) {
            return Ok(component);
        }
        let _ = fs::remove_file(&note);
        copy(&sources.join(self.name), folder).map_err(failed)?;
        fs::create_dir_all(folder.join("wit")).map_err(failed)?;
        for (name, text) in sync_edition() {
            fs::write(folder.join("wit").join(name), text).map_err(failed)?;
        }
        let output = (self.build)(tools, folder).current_dir(folder).output().map_err(failed)?;
        match output.status.success() && component.is_file() {
            true => fs::write(note, made_of).map_err(failed).map(|()| component),
            false => Err(format!(
                "{}\n{}{}",
                output.status,
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            )),
        }
    }
}

/// Adds the names and contents of a folder.
fn hash(folder: &Path, state: &mut DefaultHasher) -> std::io::Result<()> {
    let entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    let mut paths: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        path.file_name().hash(state);
        match path.is_dir() {
            true => hash(&path, state)?,
            false => fs::read(&path)?.hash(state),
        }
    }
    Ok(())
}

/// Copies a folder of sources, into which compilers may write.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy(&entry.path(), &to)?,
            false => drop(fs::copy(entry.path(), to)?),
        }
    }
    Ok(())
}

/// A platform whose one plugin is that component.
async fn subject(component: &Path) -> Platform {
    let config = format!(
        "plugins.wasm = [{{ path = {component:?}, id = \"subject\" }}]\nlimits.cpu = \"1h\""
    );
    Project::new(&config).builder().build().await.expect("the platform is built")
}

/// What makes a component of what `tenon new` makes, and the command that runs its tests.
struct Template {
    language: &'static str,
    /// What says where its compiler is.
    group: &'static str,
    compiler: &'static str,
    tests: &'static [&'static str],
}

const TEMPLATES: [Template; 2] = [
    Template {
        language: "python",
        group: PIP,
        compiler: "python/bin/componentize-py",
        tests: &["python3", "-m", "unittest"],
    },
    Template {
        language: "javascript",
        group: NPM,
        compiler: "node_modules/.bin/componentize-qjs",
        tests: &["node", "--test"],
    },
];

/// Makes a plugin of a world, runs its tests, builds it and tries it.
fn make(template: &Template, tools: &Path, world: &str) {
    let Template { language, compiler, tests, .. } = template;
    let project = empty();
    let name = format!("{language}-{world}");
    run(&project, &project.path(""), &["new", &name, "--lang", language, "--world", world], 0);
    let folder = project.path(&name);
    let output = Command::new(tests[0]).args(&tests[1..]).current_dir(&folder).output().unwrap();
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    let compilers = tools.join(compiler);
    let compilers = compilers.parent().unwrap().display();
    let path = format!("{compilers}:{}", std::env::var("PATH").unwrap());
    let mut build = project.command(&["build"]);
    let output = build.env("PATH", path).current_dir(&folder).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let said = stdout(&run(&project, &folder, &["check", "--no-build", "--register"], 0));
    assert!(said.contains(": 1 warning"), "{said}");
    try_out(&project, &folder, &name, world);
}

type Expectation = fn(Platform) -> BoxFuture<'static, ()>;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    for (group, languages) in [(NPM, "JavaScript"), (PIP, "Python"), (CARGO, "cargo-component")] {
        if installed(&[group]).is_none() {
            eprintln!(
                "note: no compiler of {languages} is installed, so its tests are ignored; `cargo xtask test` installs it"
            );
        }
    }
    let languages = [
        Language::new("python", PIP, "subject.wasm", python),
        Language::new("javascript", NPM, "subject.wasm", javascript),
        Language::new(
            "cargo-component",
            CARGO,
            "target/wasm32-wasip1/release/subject.wasm",
            cargo_component,
        ),
    ];
    let mut trials = Vec::new();
    for language in languages.map(Arc::new) {
        let mut trial = |name: &str, expectation: Expectation| {
            let (language, folder) = (language.clone(), installed(&[language.group]));
            let is_ignored = folder.is_none();
            let trial = Trial::test(format!("{}::{name}", language.name), move || {
                let tools = folder.ok_or("no compilers are installed")?;
                let component = language.component(&tools)?;
                let runtime = tokio::runtime::Builder::new_multi_thread()
                    .worker_threads(2)
                    .enable_all()
                    .build()?;
                runtime.block_on(async { expectation(subject(component).await).await });
                Ok(())
            });
            trials.push(trial.with_ignored_flag(is_ignored));
        };
        macro_rules! trials {
            ($($expectation:ident),* $(,)?) => {$(
                let expectation = |platform| suite::$expectation(platform).boxed();
                trial(stringify!($expectation), expectation);
            )*};
        }
        suite::expectations!(trials!);
    }
    for template in &TEMPLATES {
        for world in ["tool", "hook", "provider", "eval"] {
            let folder = installed(&[template.group]);
            let is_ignored = folder.is_none();
            let name =
                format!("{}::a_new_{world}_is_built_passes_its_tests_and_works", template.language);
            let trial = Trial::test(name, move || {
                make(template, &folder.ok_or("no compilers are installed")?, world);
                Ok(())
            });
            trials.push(trial.with_ignored_flag(is_ignored));
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}
