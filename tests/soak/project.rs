//! The project that is served: a component, a script and two MCP servers, and what happens to them meanwhile.

use rustix::process::{Pid, Signal, kill_process};

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use tempfile::TempDir;
use tokio::process::Command;

use crate::process_stats;

mod guests {
    #![allow(dead_code)]
    include!(concat!(env!("OUT_DIR"), "/guests.rs"));
}

/// The server that is killed, and the one that is left alone.
pub(crate) const SERVERS: [&str; 2] = ["killed", "spared"];

/// A project in a temporary folder, which is the home of its processes as well.
pub(crate) struct Project {
    folder: TempDir,
    /// How often its plugins were written.
    version: AtomicU32,
}

impl Project {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().expect("there is room for a folder");
        let project = Self { folder, version: AtomicU32::new(0) };
        let server = program("counting-server");
        let entries = SERVERS.into_iter().zip(["legacy", "modern"]).map(|(name, era)| {
            let account = project.path(name);
            fs::create_dir(&account).expect("a folder is made");
            format!("{{ name = {name:?}, protocol = {era:?}, command = {server:?}, args = [{era:?}, {account:?}] }}")
        });
        let entries: Vec<_> = entries.collect();
        let configuration = format!(
            "plugins.wasm = [{{ path = \"echo.wasm\", id = \"echo\", instance = \"shared\" }}]\n\
             plugins.scripts = [\"script.rhai\"]\n\
             plugins.mcp = [{}]\n\
             [supervision]\n\
             max_restarts = 1000000\n\
             restart_window = \"1s\"\n\
             backoff = \"10ms\"\n\
             max_backoff = \"50ms\"\n\
             breaker_failures = 1000000\n",
            entries.join(", ")
        );
        project.write("tenon.toml", configuration.as_bytes());
        // The user's own: a change is looked at before the next one.
        project.write(
            "tenon/config.toml",
            b"watch = { debounce = \"50ms\", max_delay = \"200ms\" }\n",
        );
        project.rewrite();
        project
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What the environment of each process of this project contains, or its command line.
    pub(crate) fn mark(&self) -> &str {
        self.folder.path().to_str().expect("temporary folders have plain names")
    }

    /// Writes a file as a whole.
    fn write(&self, name: &str, content: &[u8]) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("it is in a folder")).expect("a folder is made");
        let partial = path.with_extension("partial");
        fs::write(&partial, content).expect("a file is written");
        fs::rename(partial, path).expect("a file is renamed");
    }

    /// Writes the script and the component, each with other content than before. The component takes turns between two
    /// contents, so that it is compiled twice and not each time.
    pub(crate) fn rewrite(&self) {
        let version = self.version.fetch_add(1, Ordering::Relaxed) + 1;
        let script = format!(
            "tool(#{{ name: \"say\", description: \"Says its number, in version {version}\", \
             schema: #{{ type: \"object\", properties: #{{ number: #{{ type: \"integer\" }} }} }} }}, \
             |a| `{version} ${{a.number}}`);\n"
        );
        self.write("script.rhai", script.as_bytes());
        let mut component = fs::read(guests::MISBEHAVE).expect("the guest was built");
        // A custom section: its number, the length of all, the length of the name, the name, and a byte.
        component.extend([0, 6, 4, b's', b'o', b'a', b'k', (version % 2) as u8]);
        self.write("echo.wasm", &component);
    }

    /// The version of the script that was written last.
    pub(crate) fn version(&self) -> u32 {
        self.version.load(Ordering::Relaxed)
    }

    /// The command that serves this project.
    pub(crate) fn serve(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program("tenon"));
        command.args(["--trust", "serve"]).args(arguments).current_dir(self.folder.path());
        for name in ["HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"] {
            command.env(name, self.folder.path());
        }
        command.env("NO_COLOR", "1").env_remove("TENON_LOG");
        command
    }

    /// The processes that a server had.
    pub(crate) fn starts(&self, server: &str) -> Vec<u32> {
        let starts = fs::read_to_string(self.path(server).join("starts")).unwrap_or_default();
        starts.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Kills the newest process of the first server, if it still is one.
    pub(crate) fn kill_server(&self) -> bool {
        let Some(number) = self.starts(SERVERS[0]).pop() else { return false };
        // Another process may have its number by now.
        if !process_stats::is_marked(number, self.path(SERVERS[0]).to_str().unwrap_or_default()) {
            return false;
        }
        let pid = i32::try_from(number).ok().and_then(Pid::from_raw);
        pid.is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok())
    }

    /// How often a server carried out the call of each number.
    pub(crate) fn calls(&self, server: &str) -> BTreeMap<u64, u32> {
        let calls = fs::read_to_string(self.path(server).join("calls")).unwrap_or_default();
        let mut counts = BTreeMap::new();
        for number in calls.lines() {
            *counts.entry(number.parse().expect("it is a number")).or_default() += 1;
        }
        counts
    }
}

/// A program that was built with this one.
fn program(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("a program has a path");
    let program = own.parent().unwrap_or(Path::new(".")).join(name);
    assert!(program.exists(), "{} is not built: `cargo xtask soak` builds it", program.display());
    program
}
