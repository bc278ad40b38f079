//! A server of PostgreSQL, on a Unix socket, and with TLS on a port of this machine.

use postgres::{Client, NoTls};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair,
};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use std::fs;
use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The password of the server's only user, which the port asks for.
pub(crate) const PASSWORD: &str = "a-SECRET-word";

/// Who may connect: everybody through the socket, and over the network with TLS and a password.
const ACCESS: &str = "
local   all all              trust
hostssl all all 127.0.0.1/32 scram-sha-256
";

/// A server, which ends with this.
pub(crate) struct Server {
    process: Child,
    /// Its files, and its socket.
    folder: TempDir,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        end(&mut self.process);
    }
}

/// Ends a server at once, with all of its processes.
fn end(process: &mut Child) {
    let id = i32::try_from(process.id()).ok().and_then(Pid::from_raw);
    if let Some(id) = id {
        let _ = kill_process(id, Signal::QUIT);
    }
    let _ = process.wait();
}

impl Server {
    /// Makes and starts a server from the packages in this folder.
    pub(crate) fn start(packages: &Path) -> Self {
        let folder = tempfile::tempdir().expect("there is room");
        make_data(packages, folder.path());
        make_certificates(folder.path());
        let (process, port) = (0..5)
            .find_map(|_| start(packages, folder.path()))
            .expect("the server starts on one of five free ports");
        let server = Self { process, folder, port };
        let set = format!("ALTER ROLE tenon PASSWORD '{PASSWORD}'");
        server.client().batch_execute(&set).expect("it is set");
        server
    }

    /// The authority that says who the server is, as a PEM file.
    pub(crate) fn authority(&self) -> PathBuf {
        self.folder.path().join("authority.pem")
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join(format!(".s.PGSQL.{}", self.port))
    }

    /// The address of a new database, through the socket.
    pub(crate) fn database(&self) -> String {
        url(self.folder.path(), self.port, &self.new_database())
    }

    /// Makes a database and gives its name.
    pub(crate) fn new_database(&self) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("test_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.client().batch_execute(&format!("CREATE DATABASE {name}")).expect("there is room");
        name
    }

    fn client(&self) -> Client {
        let url = url(self.folder.path(), self.port, "postgres");
        Client::connect(&url, NoTls).expect("it answers")
    }
}

fn url(folder: &Path, port: u16, database: &str) -> String {
    let socket = folder.display().to_string().replace('/', "%2F");
    format!("postgresql://tenon@{socket}:{port}/{database}")
}

/// A program of the packages, which works in this folder.
fn program(packages: &Path, folder: &Path, name: &str) -> Command {
    let program = packages.join("usr/lib/postgresql/15/bin").join(name);
    let mut command = match geteuid().is_root() {
        // A server refuses to be root. Seen from inside it is somebody else, to whom the same files belong.
        true => {
            let mut command = Command::new("unshare");
            command.args(["--user", "--map-user=1000", "--map-group=1000"]).arg(program);
            command
        }
        false => Command::new(program),
    };
    command.env("HOME", folder).current_dir(folder);
    // The libraries that the system may not have.
    command.env("LD_LIBRARY_PATH", packages.join("usr/lib/x86_64-linux-gnu"));
    command.arg("-D").arg(folder.join("data")).stdin(Stdio::null()).stdout(Stdio::null());
    command
}

fn make_data(packages: &Path, folder: &Path) {
    let made = program(packages, folder, "initdb")
        .args(["-U", "tenon", "--auth=trust", "-E", "UTF8", "--locale=C", "--no-sync", "-L"])
        .arg(packages.join("usr/share/postgresql/15"))
        .status();
    assert!(made.expect("initdb starts").success());
    fs::write(folder.join("data/pg_hba.conf"), ACCESS).expect("there is room");
}

/// Makes an authority, and a certificate in which it says who the server is.
fn make_certificates(folder: &Path) {
    let authority = new_authority("tests of tenon");
    fs::write(folder.join("authority.pem"), authority.pem()).expect("there is room");
    let key = KeyPair::generate().expect("there is randomness");
    let names = [Ipv4Addr::LOCALHOST.to_string()];
    let server = CertificateParams::new(names).expect("it is an address");
    let server = server.signed_by(&key, &authority).expect("the authority can sign");
    fs::write(folder.join("server.pem"), server.pem()).expect("there is room");
    // The server refuses a key that others can read.
    let mut file = fs::OpenOptions::new();
    let file = file.write(true).create_new(true).mode(0o600).open(folder.join("server.key"));
    let written = file.and_then(|mut file| file.write_all(key.serialize_pem().as_bytes()));
    written.expect("there is room");
}

pub(crate) fn new_authority(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    let key = KeyPair::generate().expect("there is randomness");
    CertifiedIssuer::self_signed(params, key).expect("it can sign")
}

/// Starts the server on a port that was free before, and gives the port. Somebody else may take it first.
fn start(packages: &Path, folder: &Path) -> Option<(Child, u16)> {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    let port = free.local_addr().expect("it has one").port();
    drop(free);
    let mut command = program(packages, folder, "postgres");
    for setting in [
        "listen_addresses=127.0.0.1",
        "fsync=off",
        "max_connections=200",
        "ssl=on",
        "ssl_cert_file=../server.pem",
        "ssl_key_file=../server.key",
    ] {
        command.args(["-c", setting]);
    }
    command.arg("-p").arg(port.to_string()).arg("-k").arg(folder);
    let mut process = command.stderr(Stdio::null()).spawn().expect("the server starts");
    let until = Instant::now() + Duration::from_secs(60);
    while Client::connect(&url(folder, port, "postgres"), NoTls).is_err() {
        if process.try_wait().expect("it is a child").is_some() {
            return None;
        }
        if Instant::now() > until {
            end(&mut process);
            panic!("the server answers nobody");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Some((process, port))
}
