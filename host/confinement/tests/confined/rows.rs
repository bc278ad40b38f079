//! The table of attempts, and the tests that are made of it.

use libtest_mimic::{Failed, Trial};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::Path;
use std::thread;
use tempfile::TempDir;
use tenon_confinement::{
    Confinement, ConfinementViolation, ProcessLimits, ReachableFolder, RecordingOptions,
};

use crate::sandbox::System::{self, WithNamespaces, WithoutNamespaces};
use crate::sandbox::{confined, folder, start, start_program, unconfined};

/// What an attempt is refused without, and succeeds with.
enum ControlGrant {
    /// Reading the folder `granted` of the test.
    Read,
    /// Changing it.
    Write,
    /// The same, which nothing allows without namespaces.
    WriteInNamespaces,
    /// Changing the whole folder of the test: what is granted by itself is a file system of its own.
    WriteAll,
    /// No sandbox at all: nothing in it can be granted.
    Unconfined,
    /// The same, for root alone.
    Privileged,
}

use ControlGrant::{
    Privileged, Read, Unconfined, Write as Change, WriteAll as ChangeAll,
    WriteInNamespaces as ChangeInNamespaces,
};

/// Words of an attempt, in which `@` is the folder of the test, and what it is refused without.
const ROWS: &[(&str, &[&str], ControlGrant)] = &[
    ("a call has another number", &["x32"], Unconfined),
    ("a socket in a folder is connected to", &["connect-unix", "@/own/socket"], Unconfined),
    ("a file is read", &["read", "@/granted/secret"], Read),
    ("a folder is listed", &["list", "@/granted"], Read),
    ("a program of its own is run", &["run", "@/granted/program"], Read),
    ("a file is written", &["write", "@/granted/new"], Change),
    ("a file is removed", &["remove", "@/granted/secret"], Change),
    (
        "a file is read through a link",
        &["read-through-link", "@/own/link", "@/granted/secret"],
        Read,
    ),
    ("a file is moved in", &["rename", "@/own/moved", "@/granted/secret"], ChangeAll),
    ("a file is linked in", &["link", "@/own/linked", "@/granted/secret"], ChangeAll),
    ("another service is connected to", &["connect", "@port"], Unconfined),
    ("an abstract socket is connected to", &["connect-abstract", "@abstract"], Unconfined),
    ("a raw socket is opened", &["raw-socket"], Privileged),
    ("another process gets a signal", &["signal", "@process"], Unconfined),
    ("another process is limited", &["limit-process", "@process"], Unconfined),
    ("another process is slowed down", &["slow-process", "@process"], Unconfined),
    ("shared memory of others is found", &["shared-memory", "@memory"], Unconfined),
    ("another process gets signals of a file", &["own-signals", "@process"], Unconfined),
    ("another process is seen", &["see-process", "@process"], Unconfined),
    ("the launcher is looked into", &["memory-of-parent"], Unconfined),
    ("a user namespace is made", &["user-namespace"], Unconfined),
    ("a process is traced", &["trace"], Unconfined),
    ("io_uring is set up", &["io-uring"], Unconfined),
    ("a mode is changed", &["change-mode", "@/granted/secret"], ChangeInNamespaces),
    ("a time is changed", &["change-time", "@/granted/secret"], ChangeInNamespaces),
    ("an attribute is set", &["set-attribute", "@/granted/secret"], ChangeInNamespaces),
    ("a datagram is sent to a path", &["send-datagram", "@/own/datagrams"], Unconfined),
];

/// What a test has outside of the sandbox.
struct Outside {
    folder: TempDir,
    port: TcpListener,
    abstract_name: String,
    memory: SharedMemory,
    _sockets: [UnixListener; 2],
    _datagrams: UnixDatagram,
}

/// Memory that processes of this user share by a number. It ends with this.
struct SharedMemory {
    key: i32,
    id: i32,
}

impl SharedMemory {
    fn new() -> Self {
        // One that nobody has.
        (1..i32::MAX)
            .find_map(|key| {
                // SAFETY: nothing is mapped.
                let id = unsafe { libc::shmget(key, 1, libc::IPC_CREAT | libc::IPC_EXCL | 0o600) };
                (id != -1).then_some(Self { key, id })
            })
            .expect("there is memory")
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: it is nobody else's, and nothing of it is mapped.
        unsafe { libc::shmctl(self.id, libc::IPC_RMID, std::ptr::null_mut()) };
    }
}

impl Outside {
    fn new() -> Self {
        // There, where it lies below what the sandbox has another of.
        let folder = TempDir::new_in("/tmp").expect("there is room");
        for name in ["granted", "own", "temporary"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        fs::write(folder.path().join("granted/secret"), "s").unwrap();
        fs::copy("/bin/true", folder.path().join("granted/program")).unwrap();
        let abstract_name = format!("tenon-{}", folder.path().display());
        let address = SocketAddr::from_abstract_name(&abstract_name).unwrap();
        let abstract_socket = UnixListener::bind_addr(&address).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap();
        // Also where everything is granted.
        let socket = UnixListener::bind(folder.path().join("own/socket")).unwrap();
        let datagrams = UnixDatagram::bind(folder.path().join("own/datagrams")).unwrap();
        let sockets = [abstract_socket, socket];
        let memory = SharedMemory::new();
        Self { folder, port, abstract_name, memory, _sockets: sockets, _datagrams: datagrams }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn words(&self, words: &[&str]) -> Vec<String> {
        let folder = self.folder.path().display().to_string();
        let filled_in = |word: &&str| match *word {
            "@port" => self.port.local_addr().unwrap().to_string(),
            "@abstract" => self.abstract_name.clone(),
            "@process" => std::process::id().to_string(),
            "@memory" => self.memory.key.to_string(),
            word => word.replace('@', &folder),
        };
        words.iter().map(filled_in).collect()
    }

    /// A sandbox with a folder of its own that can be changed.
    fn confinement(&self) -> Confinement {
        Confinement {
            reachable: vec![folder(&self.path("own"), true)],
            temporary: Some(self.path("temporary")),
            ..Confinement::default()
        }
    }
}

fn check(system: System, words: &[&str], control: &ControlGrant) -> Result<(), Failed> {
    let outside = Outside::new();
    let words = outside.words(words);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let said = confined(system, outside.confinement(), &words);
    if said == "reached" || said.contains("the server cannot be confined") {
        return Err(format!("in the sandbox it says: {said}").into());
    }
    let outside = Outside::new();
    let granted = outside.path("granted");
    let mut confinement = outside.confinement();
    let words = outside.words(ROWS.iter().find(|row| matches_words(row.1, &words)).unwrap().1);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let said = match control {
        Privileged if !rustix::process::getuid().is_root() => return Ok(()),
        Unconfined | Privileged => unconfined(&words),
        ChangeInNamespaces if system == WithoutNamespaces => unconfined(&words),
        ChangeAll => {
            confinement.reachable.push(folder(outside.folder.path(), true));
            confined(system, confinement, &words)
        }
        Read | Change | ChangeInNamespaces => {
            confinement.reachable.push(folder(&granted, !matches!(control, Read)));
            confined(system, confinement, &words)
        }
    };
    match said == "reached" {
        true => Ok(()),
        false => Err(format!("the control says: {said}").into()),
    }
}

fn matches_words(row: &[&str], words: &[&str]) -> bool {
    row[0] == words[0] && row.len() == words.len()
}

/// A test that holds with namespaces and without.
type Check = fn(System) -> Result<(), Failed>;

pub(crate) fn tests() -> Vec<Trial> {
    macro_rules! checks {
        ($($name:ident),* $(,)?) => { [$((stringify!($name), $name as Check)),*] };
    }
    let checks = checks![
        input_and_output_are_the_programs,
        the_code_of_the_program_is_told,
        what_is_hidden_is_not_there,
        what_may_be_read_in_what_may_be_changed_is_not_changed,
        what_is_granted_is_no_link,
        temporary_files_are_the_programs_own,
        limits_hold,
        no_daemon_survives_the_launcher,
        no_daemon_survives_a_launcher_that_is_killed,
        what_is_refused_is_recorded,
        connections_lead_to_the_proxy_and_nowhere_else,
        what_the_host_has_open_is_closed,
        what_cannot_be_started_is_told,
    ];
    let with_rows =
        [(WithNamespaces, ""), (WithoutNamespaces, "_without_namespaces")].map(
            |(system, suffix)| {
                let rows = ROWS.iter().map(move |(name, words, control)| {
                    let name = name.replace(' ', "_") + suffix;
                    Trial::test(name, move || check(system, words, control))
                });
                rows.chain(checks.map(|(name, check)| {
                    Trial::test(format!("{name}{suffix}"), move || check(system))
                }))
            },
        );
    with_rows.into_iter().flatten().collect()
}

fn input_and_output_are_the_programs(system: System) -> Result<(), Failed> {
    let mut child = start(system, Confinement::default(), &["echo"]);
    child.stdin.take().unwrap().write_all(b"one\ntwo\n").unwrap();
    let output = child.wait_with_output().unwrap();
    expect(&String::from_utf8_lossy(&output.stdout), "one\ntwo\nreached\n")
}

fn the_code_of_the_program_is_told(system: System) -> Result<(), Failed> {
    let run = |script: &str| {
        let child =
            start_program(system, Path::new("/bin/sh"), &["-c", script], Confinement::default());
        child.wait_with_output().unwrap().status.code()
    };
    expect(&run("exit 7"), &Some(7))?;
    expect(&run("kill -TERM $$"), &Some(128 + 15))
}

fn what_is_hidden_is_not_there(system: System) -> Result<(), Failed> {
    let outside = Outside::new();
    let granted = outside.path("granted");
    let mut confinement = outside.confinement();
    confinement.reachable.push(folder(&granted, false));
    confinement.hidden = vec![granted.join("secret"), granted.join("none")];
    let script = format!("cat {0}/secret; ls {0}", granted.display());
    let start =
        |confinement| start_program(system, Path::new("/bin/sh"), &["-c", &script], confinement);
    let output = start(confinement.clone()).wait_with_output().unwrap();
    if system == WithNamespaces {
        return expect(&String::from_utf8_lossy(&output.stdout), "program\nsecret\n");
    }
    // Nothing is started with it.
    expect(&output.status.code(), &Some(125))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let expected = format!("{0}/secret lies in {0}, which is granted", granted.display());
    expect(&said.contains(&expected), &true)?;
    confinement.hidden.remove(0);
    let output = start(confinement).wait_with_output().unwrap();
    expect(&String::from_utf8_lossy(&output.stdout), "sprogram\nsecret\n")
}

fn what_may_be_read_in_what_may_be_changed_is_not_changed(system: System) -> Result<(), Failed> {
    let outside = Outside::new();
    let granted = outside.path("granted");
    let mut confinement = outside.confinement();
    confinement.reachable.push(folder(&granted, true));
    let script = "cd $0; cat secret; echo y > secret; rm -f secret; mv program secret; echo x > new; ls; cat secret";
    let folder = granted.display().to_string();
    let start = |confinement| {
        let child =
            start_program(system, Path::new("/bin/sh"), &["-c", script, &folder], confinement);
        let output = child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    confinement.unchangeable = vec![granted.join("secret"), granted.join("none")];
    let protected = start(confinement.clone());
    match system {
        WithNamespaces => {
            expect(&protected, &(Some(0), "snew\nprogram\nsecret\ns".to_string()))?;
        }
        WithoutNamespaces => expect(&protected.0, &Some(125))?,
    }
    confinement.unchangeable = Vec::new();
    let changed = start(confinement);
    expect(&changed.1.starts_with("snew\nsecret\n"), &true)
}

fn what_is_granted_is_no_link(system: System) -> Result<(), Failed> {
    let outside = Outside::new();
    let (granted, link) = (outside.path("granted"), outside.path("link"));
    std::os::unix::fs::symlink(&granted, &link).unwrap();
    let check = |follows_links: bool, expected: &str| {
        let mut confinement = outside.confinement();
        let folder = ReachableFolder { follows_links, ..folder(&link, false) };
        confinement.reachable.push(folder);
        let secret = granted.join("secret").display().to_string();
        expect(&confined(system, confinement, &["read", &secret]), expected)
    };
    check(true, "reached")?;
    check(false, "Permission denied (os error 13)")
}

fn temporary_files_are_the_programs_own(system: System) -> Result<(), Failed> {
    let outside = Outside::new();
    let script = "ls $TMPDIR; echo x > $TMPDIR/y; echo x > /dev/shm/y; cat $TMPDIR/y /dev/shm/y; echo $TMPDIR";
    let run = |confinement: Confinement| {
        let child = start_program(system, Path::new("/bin/sh"), &["-c", script], confinement);
        let output = child.wait_with_output().unwrap();
        expect(&fs::read_to_string(outside.path("temporary/y")).unwrap(), "x\n")?;
        fs::remove_file(outside.path("temporary/y")).unwrap();
        Ok::<_, Failed>(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let temporary = outside.path("temporary").display().to_string();
    if system == WithoutNamespaces {
        // `/dev/shm` is that of all programs.
        return expect(&run(outside.confinement())?, &format!("x\n{temporary}\n"));
    }
    // What is granted below `/tmp` is still there.
    expect(&run(outside.confinement())?, &format!("x\nx\n{temporary}\n"))?;
    let none = Confinement { reachable: Vec::new(), ..outside.confinement() };
    expect(&run(none)?, "x\nx\n/tmp\n")
}

fn limits_hold(system: System) -> Result<(), Failed> {
    let limits = ProcessLimits { memory: Some(64 << 20), ..ProcessLimits::default() };
    let confinement = Confinement { limits, ..Confinement::default() };
    expect(&confined(system, confinement.clone(), &["allocate", "16"]), "reached")?;
    let said = confined(system, confinement, &["allocate", "256"]);
    expect(&said, "memory allocation failed because the memory allocator returned an error")?;
    let limits = ProcessLimits { processes: Some(32), ..ProcessLimits::default() };
    let confinement = Confinement { limits, ..Confinement::default() };
    expect(&confined(system, confinement.clone(), &["fork", "8"]), "reached")?;
    let said = confined(system, confinement, &["fork", "64"]);
    // The kernel counts no processes of root.
    let expected = match rustix::process::getuid().is_root() {
        true => "reached",
        false => "Resource temporarily unavailable (os error 11)",
    };
    expect(&said, expected)
}

fn no_daemon_survives_the_launcher(system: System) -> Result<(), Failed> {
    daemons_end_with_the_program(system, "daemon")?;
    daemons_end_with_the_program(system, "headless-daemon")
}

fn daemons_end_with_the_program(system: System, attempt: &str) -> Result<(), Failed> {
    let outside = Outside::new();
    let lock = outside.path("own/lock");
    fs::write(&lock, "").unwrap();
    let mut child = start(system, outside.confinement(), &[attempt, lock.to_str().unwrap()]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let said: Vec<String> = lines.by_ref().take(2).map(Result::unwrap).collect();
    // The program itself has ended, and what it left ends with that.
    child.wait().unwrap();
    expect(&said.contains(&"reached".to_string()), &true)?;
    is_unlocked(&lock)
}

fn no_daemon_survives_a_launcher_that_is_killed(system: System) -> Result<(), Failed> {
    let outside = Outside::new();
    let lock = outside.path("own/lock");
    fs::write(&lock, "").unwrap();
    let script = format!(
        "{} attempt daemon {} & sleep 600",
        crate::sandbox::this().display(),
        lock.display()
    );
    let mut confinement = outside.confinement();
    confinement.reachable.push(folder(&crate::sandbox::this(), false));
    let mut child = start_program(system, Path::new("/bin/sh"), &["-c", &script], confinement);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let is_daemon = lines.by_ref().map(Result::unwrap).any(|line| line == "daemon");
    let process = Pid::from_raw(child.id().cast_signed()).unwrap();
    kill_process(process, Signal::KILL).unwrap();
    child.wait().unwrap();
    expect(&is_daemon, &true)?;
    is_unlocked(&lock)
}

fn what_is_refused_is_recorded(system: System) -> Result<(), Failed> {
    let outside = Outside::new();
    let granted = outside.path("granted");
    let program = granted.join("program");
    let port = outside.port.local_addr().unwrap();
    fs::write(outside.path("hidden"), "h").unwrap();
    fs::write(outside.path("own/hidden"), "h").unwrap();
    let script = format!(
        "cat {0}/secret; cat {1}/hidden {1}/own/hidden; ls {0}; echo x > {0}/new; rm {0}/secret; {0}/program; \
         cat /etc/passwd {0}/none; echo x > $TMPDIR/y; (cd {1}; cat granted/../granted/secret & wait); \
         {2} attempt connect {port}; {2} attempt connect-later 127.0.0.1:1; exit 3",
        granted.display(),
        outside.path("").display(),
        crate::sandbox::this().display(),
    );
    let record = |opens_files: bool, expected: &[ConfinementViolation]| {
        let recordings = TempDir::new().unwrap();
        let file = recordings.path().join("attempts");
        let mut confinement = outside.confinement();
        confinement.reachable.push(folder(&crate::sandbox::this(), false));
        confinement.hidden = vec![outside.path("hidden"), outside.path("own/hidden")];
        confinement.recording = Some(RecordingOptions { file: file.clone(), opens_files });
        let child = start_program(system, Path::new("/bin/sh"), &["-c", &script], confinement);
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let lines = said.lines().filter(|line| line.starts_with("tenon: "));
        if system == WithoutNamespaces {
            let expected = "tenon: the server cannot be confined: recording: this system lets users make no namespaces, which that needs";
            return expect(&lines.collect::<Vec<_>>(), &[expected]);
        }
        expect(&(output.status.code(), lines.collect()), &(Some(3), Vec::<&str>::new()))?;
        let recorded = ConfinementViolation::read_all(&file).unwrap();
        expect(&recorded, &expected.iter().cloned().collect::<BTreeSet<_>>())
    };
    let reads = |path: &Path| ConfinementViolation::Read(path.into());
    let writes = |path: &Path| ConfinementViolation::Write(path.into());
    let expected = [
        reads(&granted),
        reads(&granted.join("secret")),
        reads(&program),
        reads(&outside.path("hidden")),
        reads(&outside.path("own/hidden")),
        writes(&granted.join("new")),
        writes(&granted.join("secret")),
        ConfinementViolation::Connect(port),
        ConfinementViolation::Connect(([127, 0, 0, 1], 1).into()),
    ];
    record(false, &expected)?;
    if system == WithoutNamespaces {
        return Ok(());
    }
    expect(&granted.join("new").exists(), &false)?;
    record(true, &expected)?;
    expect(&granted.join("new").exists(), &true)
}

fn connections_lead_to_the_proxy_and_nowhere_else(system: System) -> Result<(), Failed> {
    let outside = Outside::new();
    let proxy = UnixListener::bind(outside.path("proxy")).unwrap();
    let answered = thread::spawn(move || {
        let (mut stream, _) = proxy.accept().unwrap();
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
        line
    });
    let with_proxy = || Confinement { proxy: Some(outside.path("proxy")), ..outside.confinement() };
    let port = outside.port.local_addr().unwrap().to_string();
    let mut attempts = vec![
        ["connect", &*port],
        ["connect-later", &*port],
        ["connect-unix", "/no/such/socket"],
        ["connect-fast", &*port],
    ];
    // In namespaces there is nobody who hears it.
    if system == WithoutNamespaces {
        attempts.extend([["datagram", &*port], ["listen", ""], ["connect", "127.0.0.2:3128"]]);
    }
    for words in attempts {
        let words = &words[..];
        let said = confined(system, with_proxy(), words);
        match said != "reached" && !said.contains("cannot be confined") {
            true => {}
            false => return Err(format!("{words:?}: {said}").into()),
        }
    }
    expect(&confined(system, with_proxy(), &["request", "http://a.example/"]), "reached")?;
    expect(&answered.join().unwrap(), "GET http://a.example/ HTTP/1.1\r\n")?;
    let flags = ["set-flags", &*outside.path("granted/secret").display().to_string()];
    let mut readable = outside.confinement();
    readable.reachable.push(folder(&outside.path("granted"), false));
    expect(&(confined(system, readable, &flags) != "reached"), &true)?;
    // Nobody else listens there.
    expect(
        &confined(system, outside.confinement(), &["socket"]),
        match system {
            WithNamespaces => "reached",
            WithoutNamespaces => "Operation not permitted (os error 1)",
        },
    )
}

fn what_the_host_has_open_is_closed(system: System) -> Result<(), Failed> {
    let outside = Outside::new();
    let file = fs::File::open(outside.path("granted/secret")).unwrap();
    // As a shell that starts the host leaves it open.
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
    let script = "exec ls /proc/self/fd";
    let child =
        start_program(system, Path::new("/bin/sh"), &["-c", script], Confinement::default());
    let output = child.wait_with_output().unwrap();
    // The last one is the folder itself.
    expect(&String::from_utf8_lossy(&output.stdout), "0\n1\n2\n3\n")
}

fn what_cannot_be_started_is_told(system: System) -> Result<(), Failed> {
    let child = start_program(system, Path::new("/no/such/program"), &[], Confinement::default());
    let output = child.wait_with_output().unwrap();
    expect(&output.status.code(), &Some(125))?;
    let said = String::from_utf8_lossy(&output.stderr);
    expect(&said.contains("/no/such/program: No such file"), &true)
}

/// Waits until nobody holds a file any more.
fn is_unlocked(file: &Path) -> Result<(), Failed> {
    let file = fs::File::open(file).unwrap();
    flock(&file, FlockOperation::LockExclusive).map_err(|error| error.to_string().into())
}

fn expect<T: PartialEq<U> + std::fmt::Debug + ?Sized, U: std::fmt::Debug + ?Sized>(
    found: &T,
    expected: &U,
) -> Result<(), Failed> {
    match found == expected {
        true => Ok(()),
        false => Err(format!("expected {expected:?}, found {found:?}").into()),
    }
}
