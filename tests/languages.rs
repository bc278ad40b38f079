//! Plugins in other languages: what is expected of every plugin, of one with everything, and of those
//! that `tenon new` makes.
//!
//! `cargo xtask test` installs the compilers, at the versions of the lock files in `languages/`, and
//! says where they are. Without them these tests are listed as ignored, which one line says, and
//! none of them passes.

#![allow(clippy::print_stderr)]

#[path = "it/everything.rs"]
mod everything;
#[path = "it/plugin_duties.rs"]
mod plugin_duties;
#[path = "it/support.rs"]
#[allow(dead_code)]
mod support;
#[path = "it/template_projects.rs"]
mod template_projects;

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

use everything::manifest;
use support::{Project, stderr, stdout};
use template_projects::{ROOT, empty, run, try_out};
use tenon_tests::{installed, link_javascript_sdk};

/// A plugin in another language, by the way to make a component of it.
struct LanguagePlugin {
    language: &'static str,
    /// What says where its compilers are.
    groups: &'static [&'static str],
    /// The folder of its code, below that of the tests. The component is made in a folder of the same name.
    folder: &'static str,
    /// The files of WIT that it is made with, by their paths below the folder `wit`.
    wit: fn() -> Vec<(String, String)>,
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

/// What C needs: a generator of bindings from Cargo, a compiler from pip, and what makes a component from npm.
const C: &[&str] = &[CARGO, PIP, NPM];

const PACKAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../wit/plugin");
const TESTS: &str = env!("CARGO_MANIFEST_DIR");

/// The contract alone.
fn contract() -> Vec<(String, String)> {
    sync_edition().map(|(name, text)| (name.to_string(), text)).collect()
}

/// A world with everything, and what that refers to.
fn everything_and_state() -> Vec<(String, String)> {
    let in_deps = |(name, text)| (format!("deps/tenon-plugin/{name}"), text);
    let mut files: Vec<_> = contract().into_iter().map(in_deps).collect();
    let keyvalue = include_str!("../wit/keyvalue/keyvalue.wit");
    files.push(("deps/keyvalue/keyvalue.wit".into(), keyvalue.into()));
    files.push(("component.wit".into(), include_str!("everything/component.wit").into()));
    files
}

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

fn python_everything(tools: &Path, _: &Path) -> Command {
    let mut command = Command::new(tools.join("python/bin/componentize-py"));
    command
        .args(["--wit-path", "wit", "--world", "component", "componentize", "everything"])
        .args(["--output", "everything.wasm"]);
    command
}

fn javascript_everything(tools: &Path, _: &Path) -> Command {
    let mut command = Command::new(tools.join("node_modules/.bin/jco"));
    command.args(["componentize", "everything.js", "--backend", "qjs"]).args([
        "--wit",
        "wit",
        "--world-name",
        "component",
        "--out",
        "everything.wasm",
    ]);
    command
}

/// The commands that the guide has for C.
const C_EVERYTHING: &str = "
wit-bindgen c wit
python-zig cc --target=wasm32-wasi -mexec-model=reactor -Oz -Wall -Werror \\
    -o core.wasm everything.c component.c component_component_type.o
jco new core.wasm --wasi-reactor -o everything.wasm
";

fn c_everything(tools: &Path, _: &Path) -> Command {
    let mut folders = ["bin", "python/bin", "node_modules/.bin"].map(|of| tools.join(of)).to_vec();
    let path = std::env::var_os("PATH").unwrap_or_default();
    folders.extend(std::env::split_paths(&path));
    let mut command = Command::new("sh");
    command
        .args(["-ec", C_EVERYTHING])
        .env("PATH", std::env::join_paths(folders).expect("no folder has a colon in its name"))
        // The first program that is compiled has the C library compiled.
        .env("ZIG_GLOBAL_CACHE_DIR", tools.join("zig-cache"));
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

impl LanguagePlugin {
    /// One with the tools that [`plugin_duties`] wants.
    fn subject(
        language: &'static str,
        groups: &'static [&'static str],
        folder: &'static str,
        component: &'static str,
        build: fn(&Path, &Path) -> Command,
    ) -> Self {
        let built = OnceLock::new();
        Self { language, groups, folder, wit: contract, build, component, built }
    }

    /// One with everything that [`everything`] wants.
    fn everything(
        language: &'static str,
        groups: &'static [&'static str],
        folder: &'static str,
        build: fn(&Path, &Path) -> Command,
    ) -> Self {
        Self {
            language,
            groups,
            folder,
            wit: everything_and_state,
            build,
            component: "everything.wasm",
            built: OnceLock::new(),
        }
    }

    /// The component, which is made at most once.
    fn component(&self, tools: &Path) -> Result<&Path, Failed> {
        let built = self.built.get_or_init(|| {
            let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(self.folder);
            self.make(tools, &folder).map_err(|error| format!("{}: {error}", self.folder))
        });
        built.as_deref().map_err(|error| Failed::from(error.clone()))
    }

    /// Makes the component, unless the same sources and compilers have made it before: these compilers
    /// never make the same bytes twice, and other bytes would be compiled anew.
    fn make(&self, tools: &Path, folder: &Path) -> Result<PathBuf, String> {
        let failed = |error: std::io::Error| error.to_string();
        let mut state = DefaultHasher::new();
        let (tests, wit) = (Path::new(TESTS), (self.wit)());
        for from in [&tests.join(self.folder), Path::new(PACKAGE)] {
            hash(from, &mut state).map_err(failed)?;
        }
        wit.hash(&mut state);
        for lock in ["package-lock.json", "requirements.txt"] {
            fs::read(tests.join("languages").join(lock)).map_err(failed)?.hash(&mut state);
        }
        let (component, note) = (folder.join(self.component), folder.join("made-of"));
        let made_of = state.finish().to_string();
        if component.is_file() && fs::read_to_string(&note).is_ok_and(|known| known == made_of) {
            return Ok(component);
        }
        let _ = fs::remove_file(&note);
        copy(&tests.join(self.folder), folder).map_err(failed)?;
        // What an earlier edition had is not part of this one.
        let _ = fs::remove_dir_all(folder.join("wit"));
        for (name, text) in wit {
            let path = folder.join("wit").join(name);
            fs::create_dir_all(path.parent().expect("it is in `wit`")).map_err(failed)?;
            fs::write(path, text).map_err(failed)?;
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
async fn subject(component: PathBuf) -> Platform {
    let config = format!(
        "plugins.wasm = [{{ path = {component:?}, id = \"subject\" }}]\nlimits.cpu = \"1h\""
    );
    Project::new(&config).builder().build().await.expect("the platform is built")
}

/// A project whose one plugin is that component.
async fn with_everything(component: PathBuf) -> Project {
    let project = Project::new("plugins.folders = [\"own\"]");
    let runtime = "kind = \"wasm\", path = \"everything.wasm\"";
    project.write("own/everything/plugin.toml", manifest(runtime));
    let component = fs::read(component).expect("it is built");
    project.write("own/everything/everything.wasm", component);
    project
}

/// A language whose packages are made by `tenon new`, and the commands that test these.
struct Template {
    language: &'static str,
    /// What says where what they need is.
    group: &'static str,
    /// Gives a package what it needs, from where that is. Returns variables for its commands.
    install: fn(&Path, &Path) -> std::io::Result<Variables>,
    tests: &'static [&'static [&'static str]],
}

/// Variables of the environment, with their values.
type Variables = Vec<(&'static str, String)>;

const JAVASCRIPT_SDK: &str = "TENON_JAVASCRIPT_SDK";

const TEMPLATES: [Template; 3] = [
    Template {
        language: "python",
        group: PIP,
        install: install_python,
        tests: &[&["python3", "-m", "unittest"]],
    },
    Template {
        language: "javascript",
        group: JAVASCRIPT_SDK,
        install: install_javascript,
        tests: &[&["npm", "test"]],
    },
    Template {
        language: "typescript",
        group: JAVASCRIPT_SDK,
        install: install_javascript,
        tests: &[&["npm", "run", "typecheck"], &["npm", "test"]],
    },
];

fn install_python(tools: &Path, _: &Path) -> std::io::Result<Variables> {
    let programs = tools.join("python/bin");
    let path = std::env::var("PATH").unwrap_or_default();
    Ok(vec![
        ("PATH", format!("{}:{path}", programs.display())),
        ("PYTHONPATH", format!("{ROOT}/sdk/python/src")),
    ])
}

fn install_javascript(sdk: &Path, folder: &Path) -> std::io::Result<Variables> {
    link_javascript_sdk(sdk, folder)?;
    Ok(Vec::new())
}

/// Makes a plugin of a world, runs its tests, builds it and tries it.
fn make(template: &Template, tools: &Path, world: &str) {
    let Template { language, install, tests, .. } = template;
    let project = empty();
    let name = format!("{language}-{world}");
    run(&project, &project.path(""), &["new", &name, "--lang", language, "--world", world], 0);
    let folder = project.path(&name);
    let variables = install(tools, &folder).unwrap();
    for test in *tests {
        let mut command = Command::new(test[0]);
        command.args(&test[1..]).envs(variables.clone()).current_dir(&folder);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
    }
    let mut build = project.command(&["build"]);
    let output = build.envs(variables).current_dir(&folder).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let said = stdout(&run(&project, &folder, &["check", "--no-build"], 0));
    assert!(said.contains(": 1 warning"), "{said}");
    try_out(&project, &folder, &name, world);
}

/// What is expected of a component, by its name.
type Expectation = (&'static str, fn(PathBuf) -> BoxFuture<'static, ()>);

/// The expectations of a suite, which makes what it looks at of a component.
macro_rules! list {
    ($suite:ident $make:ident => $($expectation:ident),* $(,)?) => {
        [$((stringify!($expectation), |component| {
            async { $suite::$expectation($make(component).await).await }.boxed()
        })),*]
    };
}

/// A test for each expectation of a plugin.
fn trials_of(source: LanguagePlugin, module: &str, expectations: &[Expectation]) -> Vec<Trial> {
    let (folder, source) = (installed(source.groups), Arc::new(source));
    let trial = |(name, expectation): &Expectation| {
        let (source, folder, expectation) = (source.clone(), folder.clone(), *expectation);
        let is_ignored = folder.is_none();
        let trial = Trial::test(format!("{}::{module}{name}", source.language), move || {
            let tools = folder.ok_or("no compilers are installed")?;
            let component = source.component(&tools)?.to_path_buf();
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()?;
            runtime.block_on(expectation(component));
            Ok(())
        });
        trial.with_ignored_flag(is_ignored)
    };
    expectations.iter().map(trial).collect()
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let compilers: [(&[&str], &str); 4] =
        [(&[NPM], "JavaScript"), (&[PIP], "Python"), (&[CARGO], "cargo-component"), (C, "C")];
    for (groups, languages) in compilers {
        if installed(groups).is_none() {
            eprintln!(
                "note: no compiler of {languages} is installed, so its tests are ignored; `cargo xtask test` installs it"
            );
        }
    }
    let of_subject: &[Expectation] = &plugin_duties::expectations!(list! plugin_duties subject =>);
    let of_everything: &[Expectation] =
        &everything::expectations!(list! everything with_everything =>);
    let subjects = [
        LanguagePlugin::subject("python", &[PIP], "languages/python", "subject.wasm", python),
        LanguagePlugin::subject(
            "javascript",
            &[NPM],
            "languages/javascript",
            "subject.wasm",
            javascript,
        ),
        LanguagePlugin::subject(
            "cargo-component",
            &[CARGO],
            "languages/cargo-component",
            "target/wasm32-wasip1/release/subject.wasm",
            cargo_component,
        ),
    ];
    let others = [
        LanguagePlugin::everything("python", &[PIP], "everything/python", python_everything),
        LanguagePlugin::everything(
            "javascript",
            &[NPM],
            "everything/javascript",
            javascript_everything,
        ),
        LanguagePlugin::everything("c", C, "everything/c", c_everything),
    ];
    let mut trials = Vec::new();
    for source in subjects {
        trials.extend(trials_of(source, "", of_subject));
    }
    for source in others {
        trials.extend(trials_of(source, "everything::", of_everything));
    }
    for template in &TEMPLATES {
        for world in ["tool", "hook", "provider", "eval", "resource", "prompt"] {
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
