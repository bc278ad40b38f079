//! Files: what was granted works, through the guest's own standard library and both editions of
//! WASI, and nothing else does.

use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tenon_host::services::GrantAll;
use tenon_host::{Event, Step};

use crate::guests;
use crate::support::{Project, Running, call, text};

const EDITIONS: [&str; 3] = ["std", "0.2", "0.3"];

/// A project with a plugin that tries things, and files around it:
///
/// * `pub`, which it may read and write, with links that lead everywhere;
/// * `ro`, which it may read;
/// * `mixed`, of which it may read `*.md`;
/// * `log`, in which it may write single files;
/// * `secret`, which it may not know of.
async fn platform() -> Running {
    let project = Project::new("plugins.folders = [\"own\"]");
    let base = base(&project);
    let at = |path: &str| base.join(path);
    for (path, content) in [
        ("pub/a.txt", "granted a"),
        ("pub/deep/c.txt", "granted c"),
        ("ro/r.txt", "granted r"),
        ("mixed/ok.md", "granted m"),
        ("mixed/no.txt", "hidden"),
        ("mixed/sub/no.md", "hidden"),
        ("log/l.txt", "hidden"),
        ("secret/s.txt", "hidden"),
    ] {
        project.write(path, content);
    }
    symlink("../secret/s.txt", at("pub/out")).unwrap();
    symlink("../secret", at("pub/out-folder")).unwrap();
    symlink(at("secret/s.txt"), at("pub/out-absolute")).unwrap();
    symlink("/proc/self/root", at("pub/root")).unwrap();
    symlink("loop", at("pub/loop")).unwrap();
    symlink("deep/c.txt", at("pub/good")).unwrap();
    symlink(at("ro/r.txt"), at("pub/good-absolute")).unwrap();
    symlink("no.txt", at("mixed/link.md")).unwrap();
    symlink("../pub", at("secret/way-in")).unwrap();
    let status = std::process::Command::new("mkfifo").arg(at("pub/pipe")).status();
    assert!(status.expect("mkfifo starts").success());
    let base = base.display();
    project.write(
        "own/e/plugin.toml",
        format!(
            r#"
            plugin.id = "e"
            runtime = {{ kind = "wasm", path = "escape.wasm" }}
            [capabilities]
            filesystem = [
                "readwrite:{base}/pub/**",
                "read:{base}/ro/**",
                "read:{base}/mixed/*.md",
                "write:{base}/log/*",
            ]
            "#
        ),
    );
    project.write("own/e/escape.wasm", fs::read(guests::ESCAPE).unwrap());
    let builder = project.builder().approver(GrantAll);
    Running::new(builder.build().await.expect("the platform is built"), project)
}

/// Where the project really is.
fn base(project: &Project) -> PathBuf {
    project.path("").canonicalize().expect("the project is there")
}

/// What comes of an attempt: `BASE` in paths stands for the project's folder.
async fn attempt(platform: &Running, edition: &str, deed: &str, path: &str, other: &str) -> String {
    let base = base(&platform.project);
    let put = |path: &str| path.replace("BASE", base.to_str().unwrap());
    let arguments =
        json!({ "edition": edition, "deed": deed, "path": put(path), "other": put(other) });
    text(platform, "e__attempt", arguments).await
}

/// Whether an edition says that something is not permitted.
fn is_denied(said: &str) -> bool {
    matches!(said, "PermissionDenied" | "not-permitted")
}

async fn denied(platform: &Running, editions: &[&str], deed: &str, path: &str, other: &str) {
    for edition in editions {
        let said = attempt(platform, edition, deed, path, other).await;
        assert!(is_denied(&said), "{edition} {deed} {path} {other}: {said}");
        // The plugin is none the worse.
        let well = attempt(platform, edition, "read", "BASE/ro/r.txt", "").await;
        assert_eq!(well, "ok granted r", "after {edition} {deed} {path}");
    }
}

async fn check(platform: &Running, deed: &str, path: &str, other: &str, expected: &str) {
    for edition in EDITIONS {
        let said = attempt(platform, edition, deed, path, other).await;
        assert_eq!(said, expected, "{edition} {deed} {path} {other}");
    }
}

#[tokio::test]
async fn what_is_granted_is_read_at_its_real_path() {
    let platform = platform().await;
    let p = &platform;
    check(p, "read", "BASE/pub/a.txt", "", "ok granted a").await;
    check(p, "read", "BASE/pub/deep/../a.txt", "", "ok granted a").await;
    check(p, "read", "BASE/pub/./deep//c.txt", "", "ok granted c").await;
    check(p, "read", "BASE/pub/good", "", "ok granted c").await;
    check(p, "read", "BASE/pub/good-absolute", "", "ok granted r").await;
    check(p, "read", "BASE/ro/r.txt", "", "ok granted r").await;
    check(p, "read", "BASE/mixed/ok.md", "", "ok granted m").await;
    check(p, "stat", "BASE/pub/a.txt", "", "ok 9").await;
    check(p, "lstat", "BASE/pub/good", "", "ok 10").await;
    check(p, "read-link", "BASE/pub/good", "", "ok deep/c.txt").await;
    for edition in ["0.2", "0.3"] {
        assert_eq!(attempt(p, edition, "identity", "BASE/pub/good", "").await, "ok true");
        assert_eq!(attempt(p, edition, "read", "BASE/pub/none", "").await, "no-entry");
        assert_eq!(attempt(p, edition, "read", "BASE/pub/loop", "").await, "loop");
        assert_eq!(attempt(p, edition, "read", "BASE/pub/a.txt/", "").await, "not-directory");
        assert_eq!(attempt(p, edition, "read", "BASE/pub/a.txt/x", "").await, "not-directory");
    }
    assert_eq!(attempt(p, "std", "read", "BASE/pub/none", "").await, "NotFound");
}

#[tokio::test]
async fn a_listing_shows_what_is_granted_and_the_way_there() {
    let platform = platform().await;
    let p = &platform;
    check(p, "list", "BASE/mixed", "", "ok link.md ok.md").await;
    check(p, "list", "BASE/ro", "", "ok r.txt").await;
    check(p, "list", "BASE/log", "", "ok ").await;
    check(p, "list", "BASE", "", "ok log mixed pub ro").await;
    let root = platform.project.path("").canonicalize().unwrap();
    let first = root.components().nth(1).unwrap().as_os_str().to_str().unwrap();
    check(p, "list", "/", "", &format!("ok {first}")).await;
    let all = "ok a.txt deep good good-absolute loop out out-absolute out-folder pipe root";
    check(p, "list", "BASE/pub", "", all).await;
    denied(p, &EDITIONS, "list", "BASE/secret", "").await;
}

#[tokio::test]
async fn a_folder_of_many_names_is_listed_whole() {
    let platform = platform().await;
    let names: Vec<String> = (1000..1700).map(|i| i.to_string()).collect();
    for name in &names {
        fs::create_dir(base(&platform.project).join("ro").join(name)).unwrap();
        // In between there is much that is not shown.
        fs::write(base(&platform.project).join("mixed").join(name), "").unwrap();
    }
    check(&platform, "list", "BASE/ro", "", &format!("ok {} r.txt", names.join(" "))).await;
    check(&platform, "list", "BASE/mixed", "", "ok link.md ok.md").await;
}

#[tokio::test]
async fn what_may_be_written_is_written() {
    for edition in EDITIONS {
        let platform = platform().await;
        let p = &platform;
        let check = async |deed, path, other, expected: &str| {
            assert_eq!(attempt(p, edition, deed, path, other).await, expected, "{edition} {deed}");
        };
        let at = |path: &str| base(&p.project).join(path);
        check("write", "BASE/pub/new.txt", "", "ok").await;
        check("read", "BASE/pub/new.txt", "", "ok written").await;
        check("append", "BASE/pub/new.txt", "", "ok").await;
        assert_eq!(fs::read_to_string(at("pub/new.txt")).unwrap(), "written appended");
        check("truncate", "BASE/pub/new.txt", "", "ok").await;
        assert_eq!(fs::read_to_string(at("pub/new.txt")).unwrap(), "");
        check("write", "BASE/pub/good", "", "ok").await;
        assert_eq!(fs::read_to_string(at("pub/deep/c.txt")).unwrap(), "written");
        check("create-new", "BASE/pub/created", "", "ok").await;
        check("make-folder", "BASE/pub/made", "", "ok").await;
        check("rename", "BASE/pub/created", "BASE/pub/made/moved", "ok").await;
        check("link", "BASE/pub/a.txt", "BASE/pub/made/linked", "ok").await;
        check("symlink", "BASE/pub/made/to-a", "../a.txt", "ok").await;
        check("read", "BASE/pub/made/to-a", "", "ok granted a").await;
        check("rename", "BASE/pub/made", "BASE/pub/renamed", "ok").await;
        check("unlink", "BASE/pub/renamed/moved", "", "ok").await;
        check("unlink", "BASE/pub/renamed/linked", "", "ok").await;
        check("unlink", "BASE/pub/renamed/to-a", "", "ok").await;
        check("remove-folder", "BASE/pub/renamed", "", "ok").await;
        check("set-times", "BASE/pub/a.txt", "", "ok").await;
        check("write", "BASE/log/new.txt", "", "ok").await;
        assert_eq!(fs::read_to_string(at("log/new.txt")).unwrap(), "written");
    }
}

#[tokio::test]
async fn no_path_leads_out() {
    let platform = platform().await;
    let p = &platform;
    for path in [
        "BASE/secret/s.txt",
        "BASE/pub/../secret/s.txt",
        "BASE/pub/deep/../../secret/s.txt",
        "BASE/pub/out",
        "BASE/pub/out/",
        "BASE/pub/out-folder/s.txt",
        "BASE/pub/out-folder/../secret/s.txt",
        "BASE/pub/out-folder/way-in/a.txt",
        "BASE/pub/out-absolute",
        "BASE/pub/root/etc/passwd",
        "BASE/secret/way-in/a.txt",
        "BASE/mixed/no.txt",
        "BASE/mixed/link.md",
        "BASE/mixed/sub/no.md",
        "BASE/mixed/OK.MD",
        "BASE/PUB/a.txt",
        "BASE/log/l.txt",
        "BASE/secret/none",
        "/etc/passwd",
        "/proc/self/environ",
        "/proc/self/root/etc/passwd",
        "/dev/zero",
        "BASE/pub/pipe",
    ] {
        denied(p, &EDITIONS, "read", path, "").await;
    }
    for path in [
        "BASE/secret/s.txt",
        "BASE/pub/out",
        "BASE/pub/out-folder/s.txt",
        "BASE/mixed/no.txt",
        "BASE/secret",
        "/etc/passwd",
    ] {
        denied(p, &EDITIONS, "stat", path, "").await;
        denied(p, &["0.2", "0.3"], "identity", path, "").await;
    }
    for path in ["BASE/secret/s.txt", "BASE/mixed/no.txt", "BASE/secret/way-in"] {
        denied(p, &EDITIONS, "lstat", path, "").await;
        denied(p, &EDITIONS, "read-link", path, "").await;
    }
    denied(p, &EDITIONS, "read-link", "BASE/pub/out-absolute", "").await;
    // As no standard library would pass them: beneath the folder `ro`.
    for path in [
        "raw:../secret/s.txt",
        "raw:./../secret/s.txt",
        "raw:../ro/r.txt",
        "raw:..",
        "raw:/etc/passwd",
        "raw://etc/passwd",
        "raw:../../../../../../../../etc/passwd",
    ] {
        denied(p, &["0.2", "0.3"], "read", path, "").await;
        denied(p, &["0.2", "0.3"], "stat", path, "").await;
        denied(p, &["0.2", "0.3"], "write", path, "").await;
    }
}

#[tokio::test]
async fn names_that_are_none_are_errors_and_nothing_else() {
    let platform = platform().await;
    let p = &platform;
    let long = format!("raw:{}", "x/".repeat(3000));
    let name = format!("raw:{}", "x".repeat(300));
    for (path, expected) in [
        ("raw:", "no-entry"),
        ("raw:a\0b", "invalid"),
        ("raw:\u{fffd}\u{202e}", "no-entry"),
        (&long, "name-too-long"),
        (&name, "name-too-long"),
        ("raw:.", "ok"),
        ("raw:./", "ok"),
    ] {
        for edition in ["0.2", "0.3"] {
            let said = attempt(p, edition, "stat", path, "").await;
            let said = said.split(' ').next().unwrap();
            assert_eq!(said, expected, "{edition} {path:?}");
        }
    }
    assert_eq!(attempt(p, "std", "read", "BASE/ro/r.txt", "").await, "ok granted r");
}

#[tokio::test]
async fn a_name_that_is_not_utf_8_is_neither_shown_nor_in_the_way() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let platform = platform().await;
    let name = OsStr::from_bytes(b"\xff\xfe");
    fs::write(base(&platform.project).join("ro").join(name), "hidden").unwrap();
    check(&platform, "list", "BASE/ro", "", "ok r.txt").await;
}

#[tokio::test]
async fn nothing_is_changed_that_may_not_be() {
    let platform = platform().await;
    let p = &platform;
    for path in [
        "BASE/ro/r.txt",
        "BASE/ro/new.txt",
        "BASE/mixed/ok.md",
        "BASE/mixed/new.md",
        "BASE/pub/out",
        "BASE/pub/out-folder/new.txt",
        "BASE/secret/new.txt",
        "/new.txt",
    ] {
        for deed in ["write", "append", "create-new", "set-times"] {
            if (deed, path) == ("create-new", "BASE/pub/out") {
                continue;
            }
            denied(p, &EDITIONS, deed, path, "").await;
        }
        for deed in ["truncate"] {
            denied(p, &EDITIONS, deed, path, "").await;
        }
    }
    for path in ["BASE/ro/new", "BASE/secret/new", "BASE/new", "BASE/mixed/new.md"] {
        denied(p, &EDITIONS, "make-folder", path, "").await;
    }
    for path in ["BASE/ro/r.txt", "BASE/mixed/ok.md", "BASE/secret/s.txt"] {
        denied(p, &EDITIONS, "unlink", path, "").await;
    }
    for path in ["BASE/ro", "BASE/secret", "BASE/mixed/sub", "BASE"] {
        denied(p, &EDITIONS, "remove-folder", path, "").await;
    }
    let base = base(&p.project);
    assert_eq!(fs::read_to_string(base.join("ro/r.txt")).unwrap(), "granted r");
    assert_eq!(fs::read_to_string(base.join("secret/s.txt")).unwrap(), "hidden");
    assert!(!base.join("secret/new.txt").exists() && !base.join("ro/new.txt").exists());
}

#[tokio::test]
async fn no_new_name_gives_new_rights() {
    let platform = platform().await;
    let p = &platform;
    for (from, to) in [
        // What may be read only would become writable.
        ("BASE/ro/r.txt", "BASE/pub/r.txt"),
        ("BASE/mixed/ok.md", "BASE/pub/ok.md"),
        // What may be written only would become readable.
        ("BASE/log/l.txt", "BASE/pub/l.txt"),
        // In and out.
        ("BASE/secret/s.txt", "BASE/pub/s.txt"),
        ("BASE/pub/a.txt", "BASE/secret/a.txt"),
        ("BASE/pub/a.txt", "BASE/ro/a.txt"),
        ("BASE/pub/a.txt", "/a.txt"),
        // Another's place.
        ("BASE/pub/a.txt", "BASE/secret/s.txt"),
    ] {
        denied(p, &EDITIONS, "rename", from, to).await;
        denied(p, &EDITIONS, "link", from, to).await;
    }
    // A folder takes along what is in it.
    for (from, to) in [
        ("BASE/secret", "BASE/pub/secret"),
        ("BASE/mixed/sub", "BASE/pub/sub"),
        ("BASE/pub/deep", "BASE/log/deep"),
        ("BASE/ro", "BASE/pub/ro"),
    ] {
        denied(p, &EDITIONS, "rename", from, to).await;
    }
    for (link, target) in [
        ("BASE/pub/l", "../secret/s.txt"),
        ("BASE/pub/l", "../../../../../../etc/passwd"),
        ("BASE/pub/l", "/etc/passwd"),
        ("BASE/pub/deep/l", "../../secret"),
        ("BASE/ro/l", "r.txt"),
        ("BASE/secret/l", "../pub/a.txt"),
    ] {
        denied(p, &EDITIONS, "symlink", link, target).await;
    }
    let base = base(&p.project);
    assert!(base.join("secret/s.txt").exists() && base.join("ro/r.txt").exists());
    assert!(fs::symlink_metadata(base.join("pub/l")).is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_link_that_is_swapped_in_meanwhile_does_not_lead_out() {
    let platform = platform().await;
    let base = base(&platform.project);
    let (name, next) = (base.join("pub/race"), base.join("pub/next"));
    fs::write(&name, "granted").unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let swapping = std::thread::spawn({
        let (over, base) = (over.clone(), base.clone());
        move || {
            let mut swaps = 0_u64;
            while !over.load(Ordering::Relaxed) {
                match swaps % 4 {
                    0 => symlink("../secret/s.txt", &next).unwrap(),
                    2 => symlink(base.join("secret/s.txt"), &next).unwrap(),
                    _ => fs::write(&next, "granted").unwrap(),
                }
                fs::rename(&next, &name).unwrap();
                swaps += 1;
            }
            swaps
        }
    });
    // A folder on the way is swapped as well.
    let (folder, real, decoy) =
        (base.join("pub/way"), base.join("pub/real"), base.join("pub/decoy"));
    fs::create_dir(&real).unwrap();
    fs::write(real.join("s.txt"), "granted").unwrap();
    symlink("../secret", &decoy).unwrap();
    fs::rename(&real, &folder).unwrap();
    let swapping_folders = std::thread::spawn({
        let over = over.clone();
        move || {
            let mut swaps = 0_u64;
            while !over.load(Ordering::Relaxed) {
                fs::rename(&folder, &real).unwrap();
                fs::rename(&decoy, &folder).unwrap();
                fs::rename(&folder, &decoy).unwrap();
                fs::rename(&real, &folder).unwrap();
                swaps += 1;
            }
            swaps
        }
    });
    for edition in EDITIONS {
        for path in ["pub/race", "pub/way/s.txt"] {
            let (mut read, mut refused) = (0, 0);
            // Until enough of the attempts met what may be read, and what may not.
            for _ in 0..200 {
                let arguments =
                    json!({ "edition": edition, "path": base.join(path), "rounds": 500 });
                let said = text(&platform, "e__attempts", arguments).await;
                let [escaped, done, denied] = counted(&said);
                assert_eq!(escaped, 0, "{edition} {path}");
                (read, refused) = (read + done, refused + denied);
                if read >= 500 && refused >= 20 {
                    break;
                }
            }
            assert!(read >= 500 && refused >= 20, "{edition} {path}: {read} and {refused}");
        }
    }
    over.store(true, Ordering::Relaxed);
    assert!(swapping.join().unwrap() >= 200);
    assert!(swapping_folders.join().unwrap() >= 200);
    // What is read there is told from what is granted.
    fs::remove_file(base.join("pub/race")).unwrap();
    fs::write(base.join("pub/race"), "hidden").unwrap();
    let calm = json!({ "edition": "std", "path": base.join("pub/race"), "rounds": 5 });
    assert_eq!(counted(&text(&platform, "e__attempts", calm).await), [5, 5, 0]);
}

/// The numbers of an answer: how often something else was read than what is granted, how often anything
/// was, and how often that was refused.
fn counted(said: &str) -> [u32; 3] {
    let numbers: Vec<u32> = said.split(' ').filter_map(|word| word.parse().ok()).collect();
    numbers.try_into().expect("it counts three things")
}

#[tokio::test]
async fn a_folder_that_is_replaced_is_listed_as_it_was_or_as_it_is() {
    let platform = platform().await;
    let base = base(&platform.project);
    let over = Arc::new(AtomicBool::new(false));
    let swapping = std::thread::spawn({
        let (over, base) = (over.clone(), base.clone());
        move || {
            let (folder, aside) = (base.join("pub/deep"), base.join("aside"));
            let mut swaps = 0_u64;
            while !over.load(Ordering::Relaxed) {
                fs::rename(&folder, &aside).unwrap();
                symlink("../secret", &folder).unwrap();
                fs::remove_file(&folder).unwrap();
                fs::rename(&aside, &folder).unwrap();
                swaps += 1;
            }
            swaps
        }
    });
    let (mut listed, mut refused) = (0, 0);
    for round in 0..30_000 {
        let edition = EDITIONS[round % 3];
        let said = attempt(&platform, edition, "list", "BASE/pub/deep", "").await;
        let harmless = ["ok c.txt", "NotFound", "no-entry"].contains(&said.as_str());
        assert!(harmless || is_denied(&said), "{edition}: {said}");
        listed += u32::from(said == "ok c.txt");
        refused += u32::from(is_denied(&said));
        if round >= 300 && listed >= 20 && refused >= 20 {
            break;
        }
    }
    assert!(listed >= 20 && refused >= 20, "{listed} and {refused}");
    over.store(true, Ordering::Relaxed);
    assert!(swapping.join().unwrap() >= 200);
}

#[tokio::test]
async fn a_refusal_says_who_tried_what_and_how_to_request_it() {
    let platform = platform().await;
    let mut events = platform.events();
    let path = base(&platform.project).join("secret/s.txt");
    let arguments = json!({ "edition": "std", "deed": "read", "path": path });
    let result = call(&platform, "e__attempt", arguments).await.expect("it answers");
    let expected = format!(
        "plugin \"e\": reading {path} is not granted; its plugin.toml would request it with \
         `filesystem = [\"read:{path}\"]` under [capabilities]",
        path = path.display()
    );
    let extra: Value = serde_json::from_str(result.extra.as_deref().unwrap()).unwrap();
    assert_eq!(extra["_meta"]["tenon/refused"], json!([expected]));
    let refused = loop {
        match events.next().await.expect("the platform is there") {
            Event::Call(call) => {
                if let Step::Refused { words } = call.step {
                    break words;
                }
            }
            _ => continue,
        }
    };
    assert_eq!(refused, expected);
}

#[tokio::test]
async fn a_refusal_of_what_no_glob_covers_says_why_and_what_would() {
    let project = Project::new("plugins.folders = [\"own\"]");
    let base = base(&project);
    project.write("pub/.git/config", "");
    project.write("pub/moved/tenon.toml", "");
    project.write("pub/.env", "");
    let manifest = |files: &str| {
        format!(
            "plugin.id = \"e\"\nruntime = {{ kind = \"wasm\", path = \"escape.wasm\" }}\n\
             [capabilities]\nfilesystem = [{files}]"
        )
    };
    let glob = format!("\"readwrite:{}/pub/**\"", base.display());
    project.write("own/e/escape.wasm", fs::read(guests::ESCAPE).unwrap());
    project.write("own/e/plugin.toml", manifest(&glob));
    let builder = project.builder().approver(GrantAll);
    let platform = Running::new(builder.build().await.expect("the platform is built"), project);
    let rows = [
        ("write", ".git/config", "", "writing", "write", ".git/config", GIT),
        ("make-folder", ".git/hooks", "", "writing", "write", ".git/hooks", GIT),
        ("read", ".env", "", "reading", "read", ".env", ENV),
        ("rename", "moved", "x", "moving", "readwrite", "moved/tenon.toml", TENON),
    ];
    const GIT: &str = "settings and hooks of git, which name programs that it runs";
    const ENV: &str = "variables that programs are started with, and passwords";
    const TENON: &str = "the plugins and servers of a project";
    for edition in EDITIONS {
        for (deed, path, other, doing, access, needs, what) in rows {
            let at = |path: &str| base.join("pub").join(path).display().to_string();
            let other = if other.is_empty() { String::new() } else { at(other) };
            let arguments =
                json!({ "edition": edition, "deed": deed, "path": at(path), "other": other });
            let result = call(&platform, "e__attempt", arguments).await.expect("it answers");
            let expected = format!(
                "plugin \"e\": {doing} {needs} is not granted, as no glob covers {what}; its \
                 plugin.toml would request it by name, with `filesystem = [\"{access}:{needs}\"]` \
                 under [capabilities]",
                needs = at(needs),
            );
            let extra: Value = serde_json::from_str(result.extra.as_deref().unwrap()).unwrap();
            assert_eq!(extra["_meta"]["tenon/refused"], json!([expected]), "{edition} {deed}");
        }
    }
    let platform = {
        let project = platform.project;
        // The line of the refusal, as it stands there.
        let line = format!("{glob}, \"write:{}/pub/.git/config\"", base.display());
        project.write("own/e/plugin.toml", manifest(&line));
        let builder = project.builder().approver(GrantAll);
        Running::new(builder.build().await.expect("the platform is built"), project)
    };
    for edition in EDITIONS {
        let said = attempt(&platform, edition, "write", "BASE/pub/.git/config", "").await;
        assert_eq!(said, "ok", "{edition}");
        let said = attempt(&platform, edition, "write", "BASE/pub/.git/other", "").await;
        assert!(is_denied(&said), "{edition}: {said}");
    }
}

#[tokio::test]
async fn no_operation_changes_what_no_glob_covers() {
    let project = Project::new("plugins.folders = [\"own\"]");
    let base = base(&project);
    for (path, content) in [
        (".git/config", "kept"),
        (".git/hooks/sample", "kept"),
        ("tenon.toml", "kept"),
        (".env", "kept"),
        ("sub/deep/.mcp.json", "kept"),
        ("hooks/post-commit", "kept"),
        ("x.git/description", "kept"),
        ("GIT~1/config", "kept"),
        ("plain/CLAUDE.md", "kept"),
        ("plugin.toml", "kept"),
        (".idea/workspace.xml", "kept"),
        (".envrc", "kept"),
        ("plain/settings.json", "kept"),
        ("free", "kept"),
    ] {
        project.write(&format!("pub/{path}"), content);
    }
    symlink(".git", base.join("pub/harmless")).unwrap();
    symlink("tenon.toml", base.join("pub/also-harmless")).unwrap();
    symlink(".idea", base.join("pub/new-harmless")).unwrap();
    project.write("own/e/escape.wasm", fs::read(guests::ESCAPE).unwrap());
    let manifest = format!(
        "plugin.id = \"e\"\nruntime = {{ kind = \"wasm\", path = \"escape.wasm\" }}\n\
         [capabilities]\nfilesystem = [\"readwrite:{}/pub/**\"]",
        base.display()
    );
    project.write("own/e/plugin.toml", manifest);
    let builder = project.builder().approver(GrantAll);
    let platform = Running::new(builder.build().await.expect("the platform is built"), project);
    fn look_into(folder: &Path, found: &mut Vec<(PathBuf, Option<Vec<u8>>)>) {
        let entries = fs::read_dir(folder).expect("it can be looked into");
        let mut paths: Vec<PathBuf> =
            entries.map(|entry| entry.expect("it is there").path()).collect();
        paths.sort();
        for path in paths {
            if path.is_dir() && !path.is_symlink() {
                look_into(&path, found);
            }
            let content = fs::read(&path).ok();
            found.push((path, content));
        }
    }
    let look = || {
        let mut found = Vec::new();
        look_into(&base.join("pub"), &mut found);
        found
    };
    let before = look();
    // What of these a guard alone can stop.
    let to_what_is_there = ["write", "append", "truncate", "unlink", "set-times"];
    let to_what_is_not = ["write", "append", "create-new", "make-folder"];
    let paths = [
        "tenon.toml",
        "TENON.toml",
        "tenon.toml.",
        "plain/../tenon.toml",
        "also-harmless",
        ".git/config",
        ".git/hooks/new",
        "harmless/config",
        "harmless/hooks/new",
        "sub/.mcp.json",
        "sub/deep/.mcp.json",
        "sub/.vscode",
        "new-harmless/settings.json",
        ".envrc",
        ".husky",
        "plain/AGENTS.md",
        "plain/.claude",
        "plain/CLAUDE.md",
        "plugin.toml",
        "GIT~1/config",
    ];
    let mut rows: Vec<(&str, &str, &str)> = Vec::new();
    // A link that leads there is itself as free as any file.
    let is_link = |path: &str| path == "also-harmless";
    for path in paths {
        let changing = match base.join("pub").join(path).exists() {
            true => &to_what_is_there[..],
            false => &to_what_is_not,
        };
        for &deed in changing {
            let of_link = matches!(deed, "unlink" | "create-new" | "make-folder");
            if !(is_link(path) && of_link) {
                rows.push((deed, path, ""));
            }
        }
    }
    rows.extend([
        ("remove-folder", ".git/hooks", ""),
        ("rename", "free", "tenon.toml"),
        ("rename", "tenon.toml", "x"),
        ("rename", "free", ".git/hooks/post-commit"),
        ("rename", ".git/hooks/sample", "x"),
        ("rename", ".git", "x"),
        ("rename", "hooks", ".git/new"),
        ("rename", "plain", ".vscode"),
        ("rename", "plain", "sub/.vscode"),
        ("rename", "sub", "x"),
        ("rename", "sub/deep", "plain/x"),
        ("link", "free", "x.git/config"),
        ("link", "free", ".bashrc"),
        ("link", "tenon.toml", "x"),
        ("link", ".env", "x"),
        ("read", ".env", ""),
        ("stat", ".env", ""),
    ]);
    for (deed, path, other) in rows {
        let at =
            |path: &str| if path.is_empty() { String::new() } else { format!("BASE/pub/{path}") };
        for edition in EDITIONS {
            let said = attempt(&platform, edition, deed, &at(path), &at(other)).await;
            assert!(is_denied(&said), "{edition} {deed} {path} {other}: {said}");
        }
    }
    for path in ["tenon.toml", ".git/new", ".envrc", "sub/.vscode"] {
        let said = attempt(&platform, "0.2", "symlink", &format!("BASE/pub/{path}"), "free").await;
        assert!(is_denied(&said), "{path}: {said}");
    }
    assert_eq!(look(), before);
    // What is around them is as free as ever.
    check(&platform, "read", "BASE/pub/tenon.toml", "", "ok kept").await;
    check(&platform, "read", "BASE/pub/.git/config", "", "ok kept").await;
    check(&platform, "write", "BASE/pub/plain/new.toml", "", "ok").await;
}

#[tokio::test]
async fn who_was_granted_nothing_is_told_so() {
    let project = Project::new(&format!("plugins.wasm = [{:?}]", guests::ESCAPE));
    let platform = project.platform().await;
    for edition in EDITIONS {
        let arguments = json!({ "edition": edition, "deed": "read", "path": "/etc/hostname" });
        let result = call(&platform, "escape__attempt", arguments).await.expect("it answers");
        assert!(is_denied(&result.plain_text()), "{edition}: {}", result.plain_text());
        assert!(result.extra.unwrap().contains("reading /etc/hostname is not granted"));
    }
    assert_eq!(text(&platform, "escape__roots", json!({})).await, "/");
    assert_eq!(text(&platform, "escape__environment", json!({})).await, "");
}

#[tokio::test]
async fn fewer_files_can_be_granted_than_were_requested() {
    use async_trait::async_trait;
    use tenon_host::services::{Approval, ApprovalRequest, Approver};

    struct Fewer(String);

    #[async_trait]
    impl Approver for Fewer {
        async fn approve(&self, request: &ApprovalRequest) -> Approval {
            let mut granted = request.capabilities.clone();
            // More in one way, and less in another.
            granted.insert("filesystem".into(), vec![format!("read:{}/**/a.txt", self.0)]);
            granted.into()
        }
    }

    let project = platform().await.project;
    let approver = Fewer(base(&project).display().to_string());
    let built = project.builder().approver(approver).build().await.expect("it is built");
    let platform = Running::new(built, project);
    project_secret(&platform);
    check(&platform, "read", "BASE/pub/a.txt", "", "ok granted a").await;
    for path in ["BASE/ro/r.txt", "BASE/secret/a.txt", "BASE/pub/deep/c.txt"] {
        for edition in EDITIONS {
            let said = attempt(&platform, edition, "read", path, "").await;
            assert!(is_denied(&said), "{edition} {path}: {said}");
        }
    }
    for edition in EDITIONS {
        let said = attempt(&platform, edition, "write", "BASE/pub/a.txt", "").await;
        assert!(is_denied(&said), "{edition}: {said}");
    }
}

/// A file that the narrower grant would cover, if it did not have to be requested.
fn project_secret(platform: &Running) {
    platform.project.write("secret/a.txt", "hidden");
}
