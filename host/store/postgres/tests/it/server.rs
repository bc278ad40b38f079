//! A server of PostgreSQL on a Unix socket.

use postgres::{Client, NoTls};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A server, which ends with this.
pub(crate) struct Server {
    process: Child,
    folder: TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let id = i32::try_from(self.process.id()).ok().and_then(Pid::from_raw);
        // It ends at once, with all of its processes.
        if let Some(id) = id {
            let _ = kill_process(id, Signal::QUIT);
        }
        let _ = self.process.wait();
    }
}

impl Server {
    pub(crate) fn start(packages: &Path) -> Self {
        let folder = tempfile::tempdir().expect("there is room");
        let data = folder.path().join("data");
        let run = |program: &str| {
            let program = packages.join("usr/lib/postgresql/15/bin").join(program);
            let mut command = match geteuid().is_root() {
                // A server refuses to be root. Seen from inside it is somebody else, to whom the same files belong.
                true => {
                    let mut command = Command::new("unshare");
                    command.args(["--user", "--map-user=1000", "--map-group=1000"]).arg(program);
                    command
                }
                false => Command::new(program),
            };
            command.env("HOME", folder.path()).current_dir(folder.path());
            // The libraries that the system may not have.
            command.env("LD_LIBRARY_PATH", packages.join("usr/lib/x86_64-linux-gnu"));
            command.arg("-D").arg(&data).stdin(Stdio::null()).stdout(Stdio::null());
            command
        };
        let share = packages.join("usr/share/postgresql/15");
        let made = run("initdb")
            .args(["-U", "tenon", "--auth=trust", "-E", "UTF8", "--locale=C", "--no-sync", "-L"])
            .arg(share)
            .status();
        assert!(made.expect("initdb starts").success());
        let mut command = run("postgres");
        command.args([
            "-c",
            "listen_addresses=",
            "-c",
            "fsync=off",
            "-c",
            "max_connections=200",
            "-k",
        ]);
        let process = command.arg(folder.path()).stderr(Stdio::null()).spawn();
        let process = process.expect("the server starts");
        let server = Self { process, folder };
        let until = Instant::now() + Duration::from_secs(60);
        while Client::connect(&server.url("postgres"), NoTls).is_err() {
            assert!(Instant::now() < until, "the server answers nobody");
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }

    fn url(&self, database: &str) -> String {
        let socket = self.folder.path().display().to_string().replace('/', "%2F");
        format!("postgresql://tenon@{socket}/{database}")
    }

    /// The address of a new database.
    pub(crate) fn database(&self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("test_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let mut client = Client::connect(&self.url("postgres"), NoTls).expect("it answers");
        client.batch_execute(&format!("CREATE DATABASE {name}")).expect("there is room");
        self.url(&name)
    }
}
