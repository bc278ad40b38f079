//! A keychain that nobody here wrote: the Secret Service of GNOME, on a bus of its own.
//!
//! `cargo xtask test` installs it, and says where it is. Without it these tests are listed as ignored,
//! which one line says, and none of them passes.

#![allow(clippy::print_stderr)]

#[path = "it/support.rs"]
#[allow(dead_code)]
mod support;

use libtest_mimic::Arguments;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Output, Stdio};

use support::{DEMO_SERVER, Project, files_with, output_of, stderr, stdout};
use tenon_tests::trial;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let programs = std::env::var_os("TENON_KEYCHAIN").map(PathBuf::from);
    if programs.is_none() {
        eprintln!(
            "note: no real keychain is installed, so its tests are ignored; `cargo xtask test` installs one"
        );
    }
    let mut trials = Vec::new();
    macro_rules! trials {
        ($($name:ident),* $(,)?) => {$(
            let test = |folder: PathBuf| $name(&folder);
            trials.push(trial(stringify!($name), "real keychain", programs.clone(), test));
        )*};
    }
    trials!(
        secrets_are_in_the_keychain_where_there_is_one,
        a_server_gets_a_secret_of_the_keychain,
        without_a_keychain_secrets_are_in_files,
    );
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// A message bus, on which a keychain starts when somebody asks for it. Both end with this.
struct Bus {
    child: Child,
    address: String,
}

impl Drop for Bus {
    fn drop(&mut self) {
        // The keychain ends with the bus.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Bus {
    /// Starts a bus for a project, with the keychain of a user or with none.
    fn start(programs: &Path, project: &Project, has_keychain: bool) -> Self {
        let services = project.path("services");
        fs::create_dir_all(&services).expect("a folder is made");
        let bin = programs.join("usr/bin");
        if has_keychain {
            let keychain = bin.join("gnome-keyring-daemon");
            // Whoever logs in to a desktop unlocks it with the same password.
            let script = format!(
                "#!/bin/sh\nprintf password | exec {keychain:?} --unlock --foreground --components=secrets\n"
            );
            project.write("keychain.sh", script);
            let service = format!(
                "[D-BUS Service]\nName=org.freedesktop.secrets\nExec=/bin/sh {}\n",
                project.path("keychain.sh").display()
            );
            project.write("services/org.freedesktop.secrets.service", service);
        }
        let config = format!(
            "<!DOCTYPE busconfig PUBLIC \"-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN\" \
             \"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd\">
             <busconfig>
               <type>session</type>
               <listen>unix:dir={}</listen>
               <servicedir>{}</servicedir>
               <policy context=\"default\">
                 <allow send_destination=\"*\" eavesdrop=\"true\"/>
                 <allow eavesdrop=\"true\"/>
                 <allow own=\"*\"/>
               </policy>
             </busconfig>",
            project.path("").display(),
            services.display()
        );
        project.write("bus.conf", config);
        let mut command = project.program(bin.join("dbus-daemon"));
        command.arg(format!("--config-file={}", project.path("bus.conf").display()));
        command.args(["--nofork", "--nopidfile", "--print-address=1"]);
        let libraries = [
            "usr/lib/x86_64-linux-gnu",
            "usr/lib/aarch64-linux-gnu",
            "lib/x86_64-linux-gnu",
            "lib/aarch64-linux-gnu",
        ];
        let libraries = libraries.map(|folder| programs.join(folder));
        let libraries = std::env::join_paths(libraries).expect("none has a colon");
        command.env("LD_LIBRARY_PATH", libraries).env("XDG_DATA_HOME", project.path("data"));
        command.env("XDG_RUNTIME_DIR", project.path("run")).env_remove("DBUS_SESSION_BUS_ADDRESS");
        fs::create_dir_all(project.path("run")).expect("a folder is made");
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the bus starts");
        let mut address = String::new();
        let mut said = BufReader::new(child.stdout.take().expect("it is piped"));
        said.read_line(&mut address).expect("it says where it is");
        Self { child, address: address.trim().into() }
    }

    fn command(&self, project: &Project, arguments: &[&str]) -> Command {
        let mut command = project.command(arguments);
        command.env("DBUS_SESSION_BUS_ADDRESS", &self.address);
        command
    }

    fn tenon(&self, project: &Project, arguments: &[&str]) -> Output {
        self.command(project, arguments).output().expect("tenon starts")
    }

    /// Stores a secret, and gives what the command says.
    fn store(&self, project: &Project, arguments: &[&str], value: &str) -> (String, String) {
        let command = self.command(project, &[&["secret", "set"], arguments].concat());
        let output = output_of(command, value);
        (stdout(&output), stderr(&output))
    }
}

fn secrets_are_in_the_keychain_where_there_is_one(programs: &Path) {
    let project = Project::new("");
    let bus = Bus::start(programs, &project, true);
    let (printed, said) = bus.store(&project, &["api-key"], "hunter22-of-keychain\n");
    assert_eq!(printed, "stored api-key (keychain)\n", "{said}");
    assert_eq!(files_with(&project.path(""), "hunter22-of-keychain"), [""; 0].map(PathBuf::from));
    assert_eq!(stdout(&bus.tenon(&project, &["secret", "list"])), "api-key  keychain\n");
    // One value, wherever it is.
    let (printed, said) = bus.store(&project, &["api-key", "--file"], "hunter22-of-file");
    assert_eq!(printed, "stored api-key (file)\n", "{said}");
    assert_eq!(
        files_with(&project.path(""), "hunter22-of-file"),
        [project.path("tenon/secrets/api-key")]
    );
    let (printed, said) = bus.store(&project, &["api-key", "--keychain"], "hunter22-again");
    assert_eq!(printed, "stored api-key (keychain)\n", "{said}");
    assert_eq!(files_with(&project.path(""), "hunter22"), [""; 0].map(PathBuf::from));
    let removed = bus.tenon(&project, &["secret", "remove", "api-key"]);
    assert_eq!(stdout(&removed), "removed api-key\n", "{}", stderr(&removed));
    assert_eq!(stdout(&bus.tenon(&project, &["secret", "list"])), "");
}

fn a_server_gets_a_secret_of_the_keychain(programs: &Path) {
    let entry = format!(
        "plugins.mcp = [{{ name = \"s\", command = {DEMO_SERVER:?}, env = {{ KEY = \"${{secret:api-key}}\" }} }}]"
    );
    let project = Project::new(&entry);
    let bus = Bus::start(programs, &project, true);
    let unset = bus.tenon(&project, &["tools", "s"]);
    assert!(stderr(&unset).contains("run `tenon secret set api-key`"), "{}", stderr(&unset));
    bus.store(&project, &["api-key"], "twelve-bytes");
    let called = bus.tenon(&project, &["call", "s__environment"]);
    assert!(stdout(&called).contains("KEY"), "{}{}", stdout(&called), stderr(&called));
    drop(bus);
    // What is not there any more is named.
    fs::remove_file(project.path("services/org.freedesktop.secrets.service")).unwrap();
    let bus = Bus::start(programs, &project, false);
    let listed = bus.tenon(&project, &["tools", "s"]);
    let problem = "the secret \"api-key\" cannot be used: ";
    assert!(stderr(&listed).contains(problem), "{}", stderr(&listed));
}

fn without_a_keychain_secrets_are_in_files(programs: &Path) {
    let project = Project::new("");
    let bus = Bus::start(programs, &project, false);
    let (printed, said) = bus.store(&project, &["api-key"], "hunter22-of-file");
    assert_eq!(printed, "stored api-key (file)\n", "{said}");
    let (_, said) = bus.store(&project, &["api-key", "--keychain"], "x");
    assert!(said.contains("this system has no keychain that can be reached"), "{said}");
    assert_eq!(
        files_with(&project.path(""), "hunter22-of-file"),
        [project.path("tenon/secrets/api-key")]
    );
}
