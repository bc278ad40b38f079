//! What the tests share: platforms in temporary surroundings, and the `tenon` command.

use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{LazyLock, OnceLock};
use std::time::Duration;
use tempfile::{NamedTempFile, TempDir};
use tenon_host::services::STATE_FILE;
use tenon_host::types::ToolResult;
use tenon_host::{Builder, Call, CallError, Caller, Config, HostEnvironment, Platform};

/// The MCP server that behaves.
pub(crate) const DEMO_SERVER: &str = env!("CARGO_BIN_EXE_demo-server");

/// The MCP server that has everything.
pub(crate) const MODERN_SERVER: &str = env!("CARGO_BIN_EXE_modern-server");
pub(crate) const EVERYTHING_SERVER: &str = env!("CARGO_BIN_EXE_everything-server");

/// The MCP server that does not.
pub(crate) const RUDE_SERVER: &str = env!("CARGO_BIN_EXE_rude-server");

/// The MCP server that reaches for what it is told to.
pub(crate) const REACHING_SERVER: &str = env!("CARGO_BIN_EXE_reaching-server");

/// A launcher of servers on a system that lets users make no namespaces.
pub(crate) const LAUNCHER_WITHOUT_NAMESPACES: &str =
    env!("CARGO_BIN_EXE_launcher-without-namespaces");

/// The MCP server that says what a file says.
pub(crate) const SCRIPTED_SERVER: &str = env!("CARGO_BIN_EXE_scripted-server");

/// A folder of its own for each test, and a project in it.
pub(crate) struct Project {
    folder: TempDir,
}

/// All that the host's own database has in its files, as far as it is text.
pub(crate) fn stored(folder: &Path) -> String {
    let mut text = String::new();
    for suffix in ["", "-wal"] {
        let bytes = fs::read(folder.join(format!("{STATE_FILE}{suffix}"))).unwrap_or_default();
        text.push_str(&String::from_utf8_lossy(&bytes));
    }
    assert!(text.starts_with("SQLite"), "there is a database in {}", folder.display());
    text
}

impl Project {
    /// A project with this `tenon.toml`.
    pub(crate) fn new(configuration: &str) -> Self {
        let project = Self { folder: TempDir::new().expect("there is room for a folder") };
        project.write("tenon.toml", configuration);
        project
    }

    /// A project with this configuration and a script `notes`, which may keep state.
    pub(crate) fn with_notes(configuration: &str, script: &str) -> Self {
        let project = Self::new(&format!("plugins.folders = [\"own\"]\n{configuration}"));
        project.write("own/notes/notes.rhai", script);
        project.write(
            "own/notes/plugin.toml",
            "plugin.id = \"notes\"\nruntime = { kind = \"rhai\", path = \"notes.rhai\" }\ncapabilities.state = [\"user\"]",
        );
        project
    }

    /// The same, trusted and approved for the command.
    pub(crate) fn approved(self) -> Self {
        for arguments in [&["trust", "--yes"][..], &["approve", "--all", "--yes"]] {
            let output = self.tenon(arguments);
            assert!(output.status.success(), "{}", stderr(&output));
        }
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file, as a whole: nobody sees half of it.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a file is in a folder"))
            .expect("a folder is made");
        let partial = path.with_extension("partial");
        fs::write(&partial, content).expect("a file is written");
        fs::rename(partial, path).expect("a file is renamed");
    }

    pub(crate) fn config(&self) -> Config {
        Config::read(self.path("tenon.toml")).expect("the configuration is read")
    }

    /// Adds the plugins that MCP clients are served: the component that has everything, at this path, and a script that
    /// asks.
    pub(crate) fn add_served_plugins(&self, component: &str) {
        let component = fs::read(component).expect("it is built");
        let script = include_str!("../serve/fixtures.rhai");
        let runtime = "kind = \"wasm\", path = \"code\", instance = \"shared\"";
        for (id, runtime, code) in [
            ("everything", runtime, component.as_slice()),
            ("fixtures", "kind = \"rhai\", path = \"code\"", script.as_bytes()),
        ] {
            let folder = format!(".tenon/plugins/{id}");
            self.write(&format!("{folder}/plugin.toml"), manifest_of(id, runtime));
            self.write(&format!("{folder}/code"), code);
        }
    }

    /// A platform of the project, not built yet. Compiled guests are shared between the tests.
    pub(crate) fn builder(&self) -> Builder {
        Platform::builder().host_environment(host_environment()).config(self.config())
    }

    pub(crate) async fn platform(self) -> RunningPlatform {
        let platform = self.builder().build().await.expect("the platform is built");
        RunningPlatform::new(platform, self)
    }

    /// Runs the `tenon` command in the project, under limits that a shell sets for it.
    pub(crate) fn tenon_within(&self, limits: &str, arguments: &[&str]) -> Output {
        let mut limited = self.program("sh");
        limited.args(["-c", &format!("{limits} && exec \"$@\""), "sh"]).arg(tenon());
        limited.args(arguments).output().expect("a shell starts")
    }

    /// Runs the `tenon` command in the project.
    pub(crate) fn tenon(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("tenon starts")
    }

    /// Whether a command whose cache is the folder `cache` of the project has compiled something.
    pub(crate) fn has_compiled(&self) -> bool {
        let folders = fs::read_dir(self.path("cache/tenon")).into_iter().flatten();
        let mut files = folders.flatten().filter_map(|entry| fs::read_dir(entry.path()).ok());
        files.any(|mut files| files.next().is_some())
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.program(tenon());
        command.args(arguments);
        command
    }

    /// A program that runs in the project as `tenon` does there.
    pub(crate) fn program(&self, program: impl AsRef<OsStr>) -> Command {
        let state = self.folder.path().join("state");
        write_cache_key(&state.join("tenon"));
        let mut command = Command::new(program);
        command
            .current_dir(self.folder.path())
            .env("HOME", self.folder.path())
            .env("XDG_CACHE_HOME", cache())
            .env("XDG_CONFIG_HOME", self.folder.path())
            .env("XDG_STATE_HOME", state)
            .env("NO_COLOR", "1")
            // Those whose subject is trust take it away.
            .env("TENON_TRUST", self.folder.path())
            .env_remove("TENON_LOG");
        command
    }
}

/// The manifest of a component or a script that asks its host for all that it may. Capabilities have the same names for
/// both.
pub(crate) fn manifest_of(id: &str, runtime: &str) -> String {
    format!(
        "plugin.id = \"{id}\"
         runtime = {{ {runtime} }}
         [capabilities]
         user = [\"ask\"]
         providers = [\"default\"]
         state = [\"project\"]
         [limits]
         cpu = \"1h\"
        "
    )
}

/// A platform, and the project that it needs as long as it runs.
pub(crate) struct RunningPlatform {
    platform: Platform,
    pub(crate) project: Project,
}

impl RunningPlatform {
    pub(crate) fn new(platform: Platform, project: Project) -> Self {
        Self { platform, project }
    }
}

impl std::ops::Deref for RunningPlatform {
    type Target = Platform;

    fn deref(&self) -> &Platform {
        &self.platform
    }
}

/// The environment of this process, without the user's configuration, and with a cache that only tests
/// use.
pub(crate) fn host_environment() -> HostEnvironment {
    static CACHE: LazyLock<PathBuf> = LazyLock::new(|| {
        let folder = cache().join("tenon");
        write_cache_key(&folder);
        folder
    });
    HostEnvironment {
        cache: Some(CACHE.clone()),
        state: None,
        data: None,
        configuration: None,
        servers: None,
        ..HostEnvironment::of_process()
    }
}

/// Writes the key of the cache of compiled components. All tests have the same one, so that each guest
/// is compiled once for all of them.
fn write_cache_key(folder: &Path) {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).expect("a folder is made");
    // A temporary file is private, as a key has to be.
    let mut key = NamedTempFile::new_in(folder).expect("a file is made");
    key.write_all("7e".repeat(32).as_bytes()).expect("a file is written");
    key.persist(folder.join("cache.key")).expect("a file is renamed");
}

/// Next to the test program, so that it goes with it.
pub(crate) fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache")
}

/// The compiled components in a folder, each of which has its tags beside it.
pub(crate) fn compiled_in(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).expect("the folder is there").flatten();
    let files = files.map(|file| file.path());
    files.filter(|file| file.extension().is_some_and(|end| end == "cwasm")).collect()
}

/// The command, built at most once.
pub(crate) fn tenon() -> &'static Path {
    static TENON: OnceLock<PathBuf> = OnceLock::new();
    TENON.get_or_init(|| {
        let mut command = Command::new(env!("CARGO"));
        command.args([
            "build",
            "--quiet",
            "--workspace",
            "--bin",
            "tenon",
            "--bin",
            "tenon-launcher",
        ]);
        // Cargo tells this program about its own package. Build scripts that ask for the same variables would
        // run again for a cargo that is started from here, and all that depends on them be built again.
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            let prefixes = ["CARGO_MANIFEST_", "CARGO_PKG_", "OUT_DIR"];
            if prefixes.iter().any(|prefix| name.starts_with(prefix)) {
                command.env_remove(name);
            }
        }
        let status = command.status().expect("cargo starts");
        assert!(status.success(), "the command is built");
        // The test is in target/PROFILE/deps.
        let test = std::env::current_exe().expect("a program has a path");
        let target = test.ancestors().nth(3).expect("it is three folders deep");
        target.join("debug").join("tenon")
    })
}

/// What comes of a command that reads this.
pub(crate) fn output_of(mut command: Command, input: &str) -> Output {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("tenon starts");
    child.stdin.take().expect("it is piped").write_all(input.as_bytes()).expect("it reads");
    child.wait_with_output().expect("it ends")
}

/// The files in a folder, however deep, that have a text in them.
pub(crate) fn files_with(folder: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, about) = (entry.path(), entry.metadata().expect("it is there"));
        let has_text = |bytes: &[u8]| bytes.windows(text.len()).any(|part| part == text.as_bytes());
        if about.is_dir() {
            found.extend(files_with(&path, text));
        } else if about.is_file() && has_text(&fs::read(&path).expect("it is read")) {
            found.push(path);
        }
    }
    found
}

/// A platform of this configuration.
pub(crate) async fn platform(configuration: &str) -> RunningPlatform {
    Project::new(configuration).platform().await
}

pub(crate) async fn call(
    platform: &Platform,
    name: &str,
    arguments: Value,
) -> Result<ToolResult, CallError> {
    platform.call(Call::new(name, arguments)).await
}

/// A call that has less time than the plugin's own limit.
pub(crate) async fn call_within(
    platform: &Platform,
    name: &str,
    arguments: Value,
    timeout: Duration,
) -> Result<ToolResult, CallError> {
    let caller = Caller { timeout: Some(timeout), ..Caller::default() };
    platform.call(Call { name: name.into(), arguments, caller }).await
}

/// The text of a call that must succeed.
pub(crate) async fn text(platform: &Platform, name: &str, arguments: Value) -> String {
    let result = call(platform, name, arguments).await.expect("the call is answered");
    assert!(!result.is_error, "{name} answers with an error: {}", result.plain_text());
    result.plain_text()
}

/// The error of a call that must fail.
pub(crate) async fn failure(platform: &Platform, name: &str, arguments: Value) -> CallError {
    call(platform, name, arguments).await.expect_err("the call fails")
}

/// Waits until something holds. What is waited for is an event in another process, of which there
/// is no notice; the time is the most that it may take and not what it takes.
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..400 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("it never came to be that {what}");
}

/// The processes with this text in their environment or arguments.
pub(crate) fn processes_with(mark: &str) -> Vec<u32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers
        .filter(|number: &u32| {
            ["environ", "cmdline"].iter().any(|file| {
                let content = fs::read(format!("/proc/{number}/{file}")).unwrap_or_default();
                content.windows(mark.len()).any(|window| window == mark.as_bytes())
            })
        })
        .collect()
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("it prints text")
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("it prints text")
}

pub(crate) fn parsed(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", stdout(output), stderr(output)))
}
