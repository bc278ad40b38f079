//! Files: what was granted works, through the guest's own standard library and both editions of
//! WASI, and nothing else does.
//!
//! Most attempts at what was not granted are rows of the table of the conformance suite. Here are
//! those that it has no control for, other races, and the words of refusals.

use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tenon_host::services::GrantAll;
use tenon_host::{Event, HostEnvironment, Step};

use crate::guests;
use crate::support::{Project, RunningPlatform, call, host_environment, stderr, stdout, text};

const EDITIONS: [&str; 3] = ["std", "0.2", "0.3"];

/// A project with a plugin that tries things, and files around it:
///
/// * `pub`, which it may read and write, with links that lead everywhere;
/// * `ro`, which it may read;
/// * `mixed`, of which it may read `*.md`;
/// * `log`, in which it may write single files;
/// * `secret`, which it may not know of.
async fn platform() -> RunningPlatform {
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
    RunningPlatform::new(builder.build().await.expect("the platform is built"), project)
}

/// Where the project really is.
fn base(project: &Project) -> PathBuf {
    project.path("").canonicalize().expect("the project is there")
}

/// What comes of an attempt: `BASE` in paths stands for the project's folder.
async fn attempt(
    platform: &RunningPlatform,
    edition: &str,
    deed: &str,
    path: &str,
    other: &str,
) -> String {
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

async fn denied(
    platform: &RunningPlatform,
    editions: &[&str],
    deed: &str,
    path: &str,
    other: &str,
) {
    for edition in editions {
        let said = attempt(platform, edition, deed, path, other).await;
        assert!(is_denied(&said), "{edition} {deed} {path} {other}: {said}");
        // The plugin is none the worse.
        let well = attempt(platform, edition, "read", "BASE/ro/r.txt", "").await;
        assert_eq!(well, "ok granted r", "after {edition} {deed} {path}");
    }
}

async fn check(platform: &RunningPlatform, deed: &str, path: &str, other: &str, expected: &str) {
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
    for path in ["/proc/self/environ", "/dev/zero"] {
        denied(p, &EDITIONS, "read", path, "").await;
    }
    // Not even that it is no link is told.
    for path in ["BASE/secret/s.txt", "BASE/mixed/no.txt"] {
        denied(p, &EDITIONS, "read-link", path, "").await;
    }
    denied(p, &["std"], "read-link", "BASE/pub/out-absolute", "").await;
    // The folder above `ro`, as no standard library would pass it.
    for deed in ["read", "write"] {
        denied(p, &["0.2", "0.3"], deed, "raw:..", "").await;
    }
}

#[tokio::test]
async fn a_folder_has_a_name_within_itself() {
    let platform = platform().await;
    for path in ["raw:.", "raw:./"] {
        for edition in ["0.2", "0.3"] {
            let said = attempt(&platform, edition, "stat", path, "").await;
            assert!(said.starts_with("ok "), "{edition} {path}: {said}");
        }
    }
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

/// Where it is granted, each of these fails as well, for what is there or is not.
#[tokio::test]
async fn a_change_that_is_not_granted_tells_nothing_of_what_is_there() {
    let platform = platform().await;
    let p = &platform;
    for path in [
        "BASE/ro/new.txt",
        "BASE/mixed/new.md",
        "BASE/pub/out-folder/new.txt",
        "BASE/secret/new.txt",
        "/new.txt",
    ] {
        for deed in ["truncate", "set-times"] {
            denied(p, &EDITIONS, deed, path, "").await;
        }
    }
    for path in ["BASE/ro/r.txt", "BASE/mixed/ok.md"] {
        denied(p, &EDITIONS, "create-new", path, "").await;
    }
    denied(p, &EDITIONS, "link", "BASE/pub/a.txt", "BASE/secret/s.txt").await;
    let base = base(&p.project);
    for (path, content) in
        [("ro/r.txt", "granted r"), ("mixed/ok.md", "granted m"), ("secret/s.txt", "hidden")]
    {
        assert_eq!(fs::read_to_string(base.join(path)).unwrap(), content);
    }
    assert!(!base.join("secret/new.txt").exists() && !base.join("ro/new.txt").exists());
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
                if let Step::Refused { message: words } = call.step {
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
    let platform =
        RunningPlatform::new(builder.build().await.expect("the platform is built"), project);
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
        RunningPlatform::new(builder.build().await.expect("the platform is built"), project)
    };
    for edition in EDITIONS {
        let said = attempt(&platform, edition, "write", "BASE/pub/.git/config", "").await;
        assert_eq!(said, "ok", "{edition}");
        let said = attempt(&platform, edition, "write", "BASE/pub/.git/other", "").await;
        assert!(is_denied(&said), "{edition}: {said}");
    }
}

/// Names that the table of the conformance suite does not have with each operation. The ways that
/// lead to a name are tried there.
#[tokio::test]
async fn no_operation_changes_what_no_glob_covers() {
    let project = Project::new("plugins.folders = [\"own\"]");
    let base = base(&project);
    for (path, content) in [
        (".git/config", "kept"),
        ("tenon.toml", "kept"),
        ("x.git/description", "kept"),
        ("GIT~1/config", "kept"),
        ("plain/CLAUDE.md", "kept"),
        ("plugin.toml", "kept"),
        (".idea/workspace.xml", "kept"),
        (".envrc", "kept"),
        ("free", "kept"),
    ] {
        project.write(&format!("pub/{path}"), content);
    }
    symlink(".idea", base.join("pub/harmless")).unwrap();
    project.write("own/e/escape.wasm", fs::read(guests::ESCAPE).unwrap());
    let manifest = format!(
        "plugin.id = \"e\"\nruntime = {{ kind = \"wasm\", path = \"escape.wasm\" }}\n\
         [capabilities]\nfilesystem = [\"readwrite:{}/pub/**\"]",
        base.display()
    );
    project.write("own/e/plugin.toml", manifest);
    let builder = project.builder().approver(GrantAll);
    let platform =
        RunningPlatform::new(builder.build().await.expect("the platform is built"), project);
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
        "TENON.toml",
        "tenon.toml.",
        "harmless/settings.json",
        ".envrc",
        ".husky",
        "plain/AGENTS.md",
        "plain/.claude",
        "plain/CLAUDE.md",
        "plugin.toml",
        "GIT~1/config",
    ];
    let mut rows: Vec<(&str, &str, &str)> = Vec::new();
    for path in paths {
        let changing = match base.join("pub").join(path).exists() {
            true => &to_what_is_there[..],
            false => &to_what_is_not,
        };
        rows.extend(changing.iter().map(|&deed| (deed, path, "")));
    }
    rows.push(("link", "free", "x.git/config"));
    for (deed, path, other) in rows {
        let at =
            |path: &str| if path.is_empty() { String::new() } else { format!("BASE/pub/{path}") };
        for edition in EDITIONS {
            let said = attempt(&platform, edition, deed, &at(path), &at(other)).await;
            assert!(is_denied(&said), "{edition} {deed} {path} {other}: {said}");
        }
    }
    // What has these names is there already.
    for path in ["tenon.toml", ".envrc"] {
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
async fn each_plugin_has_a_folder_for_its_data() {
    let project =
        Project::new("plugins.folders = [\"own\"]\nsettings.where.book = \"${data}/book\"");
    let data = base(&project).join("data");
    let component = fs::read(guests::ESCAPE).unwrap();
    let plugin = |id: &str, grant: &str| {
        let manifest = format!(
            "plugin.id = \"{id}\"\nruntime = {{ kind = \"wasm\", path = \"e.wasm\" }}\n\
             [capabilities]\nfilesystem = [\"{grant}\"]"
        );
        project.write(&format!("own/{id}/plugin.toml"), manifest);
        project.write(&format!("own/{id}/e.wasm"), &component);
    };
    plugin("one", "readwrite:${data}/**");
    plugin("two", "readwrite:${data}/**");
    // A glob over all of it is one over the plugin's own.
    plugin("greedy", &format!("readwrite:{}/**", data.display()));
    let both = format!("readwrite:{}/**\", \"readwrite:${{data}}/**", data.display());
    plugin("both", &both);
    let script = "tool(#{ name: \"is\", description: \"Says where\" }, |arguments| \
                  `${config(\"book\")} ${config(\"home\")}`);";
    project.write("own/where/w.rhai", script);
    let manifest = "plugin.id = \"where\"\nruntime = { kind = \"rhai\", path = \"w.rhai\" }\n\
                    [settings]\nhome = \"~/notes\"";
    project.write("own/where/plugin.toml", manifest);
    let host_environment = HostEnvironment {
        data: Some(data.clone()),
        home: Some("/no/such/home".into()),
        ..host_environment()
    };
    let builder = project.builder().approver(GrantAll).host_environment(host_environment);
    let platform =
        RunningPlatform::new(builder.build().await.expect("the platform is built"), project);

    // Where it is follows from the project and the plugin.
    let projects = fs::read_dir(data.join("projects")).unwrap().map(|entry| entry.unwrap().path());
    let folder = projects.last().expect("the project has one");
    let own = |id: &str, name: &str| folder.join(id).join(name).display().to_string();
    let mode = fs::metadata(folder.join("one")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o700);
    assert!(!folder.join("where").exists(), "it is not granted its folder");
    let is = text(&platform, "where__is", json!({})).await;
    assert_eq!(is, format!("{} /no/such/home/notes", own("where", "book")));

    let attempt = async |plugin: &str, deed: &str, path: &str, other: &str| {
        let arguments = json!({ "edition": "std", "deed": deed, "path": path, "other": other });
        text(&platform, &format!("{plugin}__attempt"), arguments).await
    };
    for id in ["one", "two", "both"] {
        assert_eq!(attempt(id, "write", &own(id, "x"), "").await, "ok");
        assert_eq!(attempt(id, "read", &own(id, "x"), "").await, "ok written");
        // As `create_dir_all` makes it first of all.
        assert_eq!(attempt(id, "make-folder", &own(id, ""), "").await, "AlreadyExists");
    }
    for (id, path) in [("one", own("two", "x")), ("greedy", own("one", "x"))] {
        let said = attempt(id, "read", &path, "").await;
        assert!(is_denied(&said) || said == "NotFound", "{id} {path}: {said}");
        let said = attempt(id, "write", &path, "").await;
        assert!(is_denied(&said) || said == "NotFound", "{id} {path}: {said}");
    }
    assert_eq!(fs::read_to_string(own("two", "x")).unwrap(), "written");
}

#[test]
fn the_folder_for_data_is_that_of_the_project_wherever_a_command_runs() {
    let where_is = |project: &Project, folder: &str, more: &[&str]| {
        let mut command = project.command(&["call", "where__is"]);
        command.args(more).current_dir(project.path(folder));
        command.env("XDG_DATA_HOME", "/no/such/data").env("HOME", "/no/such/home");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    let project = || {
        let project =
            Project::new("plugins.scripts = [\"where.rhai\"]\nsettings.where.data = \"${data}\"");
        let script =
            "tool(#{ name: \"is\", description: \"Says where\" }, |arguments| config(\"data\"));";
        project.write("where.rhai", script);
        project.write("below/deep/x", "");
        project
    };
    let (one, two) = (project(), project());
    let here = where_is(&one, "", &[]);
    assert!(here.starts_with("/no/such/data/tenon/projects/"), "{here}");
    assert_eq!(where_is(&one, "below/deep", &[]), here);
    assert_eq!(where_is(&one, "below", &["--project", ".."]), here);
    let whole = one.path("");
    assert_eq!(where_is(&one, "below", &["--project", whole.to_str().unwrap()]), here);
    assert_ne!(where_is(&two, "", &[]), here);
}
