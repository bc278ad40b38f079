//! Files: by each function that takes a path, of the standard library and both editions of WASI.
//!
//! Paths begin in the ground that plugins are let loose on, but for those that begin with `/`, and
//! those that are passed as they are, beneath the first folder that the guest was given (`raw:`).
//! Nothing is written, whatever the host does, but beneath that ground.

use serde_json::json;

use crate::attempt::{Deed, Expect, Words};
use crate::expectation::{Access, Capability};
use crate::plugins::Stage;
use crate::row::{Attempt, Row, Traces, answered};

const EDITIONS: [Access; 3] = [Access::Std, Access::Wasi02, Access::Wasi03];
const WASI: [Access; 2] = [Access::Wasi02, Access::Wasi03];

/// Deed, path, second path, answer.
type Allowed = (&'static str, &'static str, &'static str, &'static str);

/// What is granted works.
const ALLOWED: &[Allowed] = &[
    ("read", "pub/a.txt", "", "ok granted a"),
    ("read", "pub/deep/../a.txt", "", "ok granted a"),
    ("read", "pub/./deep//c.txt", "", "ok granted c"),
    ("read", "pub/good", "", "ok granted c"),
    ("read", "pub/good-absolute", "", "ok granted r"),
    ("read", "ro/r.txt", "", "ok granted r"),
    ("read", "mixed/ok.md", "", "ok granted m"),
    ("stat", "pub/a.txt", "", "ok 9"),
    ("lstat", "pub/good", "", "ok 10"),
    ("read-link", "pub/good", "", "ok deep/c.txt"),
    // A listing shows what is granted, and the way there.
    ("list", "mixed", "", "ok link.md ok.md"),
    ("list", "ro", "", "ok r.txt"),
    ("list", "log", "", "ok "),
    ("list", ".", "", "ok code log mixed own pub ro"),
    ("list", "/", "", "ok {first}"),
    // What only may not be changed by a glob is read and listed, and what has passwords is not.
    ("read", "code/tenon.toml", "", "ok granted t"),
    ("read", "code/.git/config", "", "ok granted g"),
    ("read", "code/to-config", "", "ok granted g"),
    ("list", "code", "", "ok .config .git free.txt named nested plain tenon.toml to-config to-git"),
    (
        "list",
        "pub",
        "",
        "ok a.txt deep good good-absolute loop out out-absolute out-folder pipe root",
    ),
];

/// What is granted and not there is said to be so, in the words of WASI.
const WRONG: &[Allowed] = &[
    ("read", "pub/none", "", "no-entry"),
    ("read", "pub/loop", "", "loop"),
    ("read", "pub/a.txt/", "", "not-directory"),
    ("read", "pub/a.txt/x", "", "not-directory"),
    ("identity", "pub/good", "", "ok true"),
    ("stat", "raw:", "", "no-entry"),
    ("stat", "raw:a\0b", "", "invalid"),
    ("stat", "ro/\u{fffd}\u{202e}", "", "no-entry"),
];

/// What may be written is written: in a folder of each way's own, and what has become of it.
const WRITTEN: &[(&str, &str, &str, &[&str])] = &[
    ("write", "OWN/new.txt", "", &["OWN/new.txt: \"written\""]),
    ("append", "OWN/append.txt", "", &["OWN/append.txt: \"granted appended\""]),
    ("truncate", "OWN/truncate.txt", "", &["OWN/truncate.txt: \"\""]),
    ("write", "OWN/good", "", &["OWN/target.txt: \"written\""]),
    ("create-new", "OWN/created", "", &["OWN/created: \"\""]),
    ("make-folder", "OWN/made", "", &["OWN/made: a folder"]),
    ("rename", "OWN/from", "OWN/empty/to", &["OWN/empty/to: \"granted\"", "OWN/from: gone"]),
    (
        "rename",
        "OWN/folder",
        "OWN/renamed",
        &[
            "OWN/folder/inner: gone",
            "OWN/folder: gone",
            "OWN/renamed/inner: \"granted\"",
            "OWN/renamed: a folder",
        ],
    ),
    ("link", "OWN/a.txt", "OWN/linked", &["OWN/linked: \"granted\""]),
    ("symlink", "OWN/to-a", "a.txt", &["OWN/to-a: leads to a.txt"]),
    ("unlink", "OWN/gone.txt", "", &["OWN/gone.txt: gone"]),
    ("remove-folder", "OWN/bare", "", &["OWN/bare: gone"]),
    ("set-times", "OWN/timed.txt", "", &["OWN/timed.txt: touched"]),
    ("write", "log/new-BY.txt", "", &["log/new-BY.txt: \"written\""]),
    ("write", "code/named/.git/BY", "", &["code/named/.git/BY: \"written\""]),
];

/// Nothing else is read, looked at or told of.
const UNREADABLE: &[(&str, &[&str])] = &[
    (
        "read",
        &[
            "secret/s.txt",
            "pub/../secret/s.txt",
            "pub/deep/../../secret/s.txt",
            "pub/out",
            "pub/out/",
            "pub/out-folder/s.txt",
            "pub/out-folder/../secret/s.txt",
            "pub/out-folder/way-in/a.txt",
            "pub/out-absolute",
            "pub/root/etc/passwd",
            "secret/way-in/a.txt",
            "mixed/no.txt",
            "mixed/link.md",
            "mixed/sub/no.md",
            "mixed/OK.MD",
            "PUB/a.txt",
            "log/l.txt",
            "code/.env",
            "secret/none",
            "/etc/passwd",
            "/proc/self/environ",
            "/proc/self/root/etc/passwd",
        ],
    ),
    ("stat", HIDDEN),
    ("lstat", &["secret/s.txt", "mixed/no.txt", "secret/way-in"]),
    ("read-link", &["secret/s.txt", "mixed/no.txt", "secret/way-in", "pub/out-absolute"]),
    ("list", &["secret", "pub/out-folder", "mixed/sub", "/etc"]),
];

/// What nobody is told of, by its own name and by links.
const HIDDEN: &[&str] = &[
    "secret/s.txt",
    "pub/out",
    "pub/out-folder/s.txt",
    "mixed/no.txt",
    "code/.env",
    "secret",
    "/etc/passwd",
];

/// The same for what has no function in the standard library.
const UNREADABLE_BY_WASI: &[(&str, &[&str])] = &[
    ("identity", HIDDEN),
    // As no standard library would pass them: beneath the folder `ro`.
    (
        "read",
        &[
            "raw:../secret/s.txt",
            "raw:./../secret/s.txt",
            "raw:../ro/r.txt",
            "raw:..",
            "raw:/etc/passwd",
            "raw://etc/passwd",
            "raw:../../../../../../../../etc/passwd",
        ],
    ),
    ("stat", &["raw:../secret/s.txt", "raw:..", "raw:/etc/passwd"]),
    ("write", &["raw:../secret/s.txt", "raw:./../secret/new.txt", "raw:{ground}/secret/s.txt"]),
];

/// What is neither file nor folder is not opened, granted or not.
const NO_FILES: &[&str] = &["/dev/zero", "pub/pipe"];

/// Nothing is changed that may not be.
const UNWRITABLE: &[(&str, &[&str])] = &[
    (
        "write",
        &[
            "ro/r.txt",
            "ro/new.txt",
            "mixed/ok.md",
            "mixed/new.md",
            "pub/out",
            "pub/out-folder/new.txt",
            "secret/new.txt",
            "new.txt",
        ],
    ),
    ("append", FILES),
    ("create-new", &["ro/new.txt", "mixed/new.md", "pub/out-folder/new.txt", "secret/new.txt"]),
    ("truncate", FILES),
    ("set-times", &["ro/r.txt", "mixed/ok.md", "pub/out", "secret/s.txt"]),
    ("make-folder", &["ro/new", "secret/new", "new", "mixed/new.md"]),
    ("unlink", &["ro/r.txt", "mixed/ok.md", "secret/s.txt"]),
    ("remove-folder", &["ro", "secret", "mixed/sub", "."]),
];

/// No glob covers what decides what is started: with each function that changes something, by its own
/// name, by links, and for the name of its folder.
const PROTECTED: &[(&str, &[&str])] = &[
    (
        "write",
        &[
            "code/tenon.toml",
            "code/.env",
            "code/.git/config",
            "code/.git/hooks-new",
            "code/to-git/new",
            "code/to-config",
            "code/plain/../.git/config",
            "code/plain/.mcp.json",
            "code/plain/plugin.toml",
            "code/plain/CLAUDE.md",
            "code/plain/.envrc",
        ],
    ),
    ("append", &["code/tenon.toml", "code/to-config"]),
    ("create-new", &["code/.bashrc", "code/.git/new", "code/to-git/new", "code/HEAD"]),
    ("truncate", &["code/tenon.toml", "code/to-config"]),
    ("set-times", &["code/tenon.toml", "code/to-config", "code/.git"]),
    ("make-folder", &["code/.GIT", "code/.vscode", "code/.tenon", "code/.git/hooks"]),
    ("unlink", &["code/tenon.toml", "code/.env", "code/.git/config", "code/.config"]),
    ("remove-folder", &["code/.git"]),
];

/// And none is moved, replaced, or led to by another name.
const PROTECTED_NAMES: &[(&str, &str, &str)] = &[
    ("rename", "code/free.txt", "code/tenon.toml"),
    ("rename", "code/free.txt", "code/plain/.mcp.json"),
    ("rename", "code/tenon.toml", "code/x"),
    ("rename", "code/.git", "code/x"),
    ("rename", "code/.git/config", "code/x"),
    ("rename", "code/plain", "code/.vscode"),
    ("rename", "code/plain", "code/.github"),
    ("rename", "code/.config", "code/x"),
    ("rename", "code/.env", "code/x"),
    // A folder takes along what is in it.
    ("rename", "code/nested", "code/x"),
    ("rename", "code/nested", "code/plain/x"),
    ("link", "code/free.txt", "code/.bashrc"),
    ("link", "code/tenon.toml", "code/x"),
    ("link", "code/.env", "code/x"),
    ("symlink", "code/.vscode", "plain"),
    ("symlink", "code/.github", "plain"),
    ("symlink", "code/.git/x", "config"),
];

/// Files that are there, and may not be written.
const FILES: &[&str] =
    &["ro/r.txt", "mixed/ok.md", "pub/out", "pub/out-folder/s.txt", "secret/s.txt"];

/// No new name gives new rights.
const RENAMED: &[(&str, &str, &str)] = &[
    // What may be read only would become writable.
    ("rename", "ro/r.txt", "pub/r.txt"),
    ("link", "ro/r.txt", "pub/r.txt"),
    ("rename", "mixed/ok.md", "pub/ok.md"),
    ("link", "mixed/ok.md", "pub/ok.md"),
    // What may be written only would become readable.
    ("rename", "log/l.txt", "pub/l.txt"),
    ("link", "log/l.txt", "pub/l.txt"),
    // In and out.
    ("rename", "secret/s.txt", "pub/s.txt"),
    ("link", "secret/s.txt", "pub/s.txt"),
    ("rename", "pub/a.txt", "secret/b.txt"),
    ("link", "pub/a.txt", "secret/b.txt"),
    ("rename", "pub/a.txt", "ro/a.txt"),
    ("link", "pub/a.txt", "ro/a.txt"),
    // Another's place.
    ("rename", "pub/a.txt", "secret/s.txt"),
    // A folder takes along what is in it.
    ("rename", "secret", "pub/secret"),
    ("rename", "mixed/sub", "pub/sub"),
    ("rename", "pub/deep", "log/deep"),
    ("rename", "ro", "pub/ro"),
    // Links that would lead out, or stand where nothing may be.
    ("symlink", "pub/l", "../secret/s.txt"),
    ("symlink", "pub/l", "../../../../../../etc/passwd"),
    ("symlink", "pub/l", "/etc/passwd"),
    ("symlink", "pub/deep/l", "../../secret"),
    ("symlink", "ro/l", "r.txt"),
    ("symlink", "secret/l", "../pub/a.txt"),
];

pub(super) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for by in EDITIONS {
        for (deed, path, other, answer) in ALLOWED {
            let row = row(by, deed, path, other, Expect::answer(*answer));
            let needs_pipe = answer.contains("pipe");
            rows.push(Row { requires: needs_pipe.then_some("pipes").or(row.requires), ..row });
        }
    }
    for by in WASI {
        for (deed, path, other, answer) in WRONG {
            rows.push(row(by, deed, path, other, Expect::answer(*answer)));
        }
        let long = [("name", "x".repeat(300)), ("path", "x/".repeat(3000))];
        for (what, long) in long {
            let tried = format!("stat a {what} of {} bytes", long.len());
            let expect = Expect::answer("name-too-long");
            let deed = deed("files", by, "stat", &format!("ro/{long}"), "", expect);
            rows.push(Row::new(Capability::Filesystem, by, tried, deed));
        }
    }
    for by in EDITIONS {
        rows.extend(written(by));
        let both: &[_] = if by == Access::Std { &[] } else { UNREADABLE_BY_WASI };
        for (deed, paths) in UNREADABLE.iter().chain(both) {
            rows.extend(paths.iter().map(|path| denied(by, deed, path, "")));
        }
        for path in NO_FILES {
            let expect = refusal(by, "read");
            let row = row(by, "read", path, "", expect).then(well(by));
            let needs_pipe = path.contains("pipe");
            rows.push(Row { requires: needs_pipe.then_some("pipes"), ..row });
        }
        for (deed, paths) in UNWRITABLE.iter().chain(PROTECTED) {
            rows.extend(paths.iter().map(|path| denied(by, deed, path, "")));
        }
        let renamed = RENAMED.iter().chain(PROTECTED_NAMES).filter(|(deed, ..)| has(by, deed));
        rows.extend(renamed.map(|(deed, path, other)| denied(by, deed, path, other)));
        let attempt = Attempt::Race(edition(by), "pub/race");
        let tried = "read a file while a link that leads out is swapped in";
        let race =
            Row::trying(Capability::Filesystem, by, tried, "nothing of what is outside", attempt);
        rows.push(Row { requires: Some("links"), ..race.then(well(by)) });
        rows.extend(approved(by));
    }
    rows
}

/// What may be written is, and what is written is there.
fn written(by: Access) -> Vec<Row> {
    let own = format!("own/{by}");
    let put = |text: &str| text.replace("OWN", &own).replace("BY", &by.to_string());
    let mut rows = Vec::new();
    for (deed, path, other, changes) in WRITTEN.iter().filter(|(deed, ..)| has(by, deed)) {
        // The folder's name is in the paths, which are the same for all ways otherwise.
        let row = row(by, deed, &put(path), &put(other), Expect::answer("ok"));
        let mut files: Vec<String> = changes.iter().map(|change| put(change)).collect();
        files.sort();
        rows.push(row.leaves(Traces { files, ..Traces::default() }));
    }
    rows
}

/// What was approved holds, if it was requested; what was requested holds, if it was approved.
fn approved(by: Access) -> Vec<Row> {
    let read = |plugin, path, expect| deed(plugin, by, "read", path, "", expect);
    let granted = |plugin, path, answer| read(plugin, path, Expect::answer(answer));
    let refuse = || refusal(by, "read");
    let row = |tried: &str, deed| Row::new(Capability::Filesystem, by, tried, deed).on(Stage::Ours);
    let narrow = || granted("narrow-files", "pub/a.txt", "ok granted a");
    let wide = || granted("wide-files", "ro/r.txt", "ok granted r");
    let write = |plugin, path| deed(plugin, by, "write", path, "", refuse());
    vec![
        row("read what was requested and approved", narrow()),
        row("read what was requested and not approved", read("narrow-files", "ro/r.txt", refuse()))
            .then(narrow()),
        row(
            "read what was approved and not requested",
            read("narrow-files", "secret/a.txt", refuse()),
        )
        .then(narrow()),
        row("write what was approved for reading", write("narrow-files", "pub/a.txt"))
            .then(narrow()),
        row(
            "read beside a request that was more than approved",
            read("wide-files", "secret/s.txt", refuse()),
        )
        .then(wide()),
        row("write what was requested for reading", write("wide-files", "ro/r.txt")).then(wide()),
    ]
}

/// The standard library of the target makes no links.
fn has(by: Access, deed: &str) -> bool {
    by != Access::Std || deed != "symlink"
}

fn denied(by: Access, what: &str, path: &str, other: &str) -> Row {
    let expect = refusal(by, what);
    row(by, what, path, other, expect).then(well(by))
}

/// A path that leads out of the folder that it begins in has no line that would request it. Of
/// what is only looked for nobody is told: libraries do so all the time.
pub(super) fn refusal(by: Access, what: &str) -> Expect {
    let words = match what {
        "stat" | "lstat" | "identity" | "read-link" => Words::None,
        _ => Words::RequestOrNever("filesystem"),
    };
    Expect::Refused(Some(code(by)), words)
}

/// What still works.
fn well(by: Access) -> Deed {
    deed("files", by, "read", "ro/r.txt", "", Expect::answer("ok granted r"))
}

fn row(by: Access, what: &str, path: &str, other: &str, expect: Expect) -> Row {
    let tried = match other {
        "" => format!("{what} {path:?}"),
        other => format!("{what} {path:?} {other:?}"),
    };
    let deed = deed("files", by, what, path, other, expect);
    let row = Row::new(Capability::Filesystem, by, tried.replace('"', ""), deed);
    // Without them it would be about something else.
    Row { requires: Some("links"), ..row }
}

fn deed(
    plugin: &'static str,
    by: Access,
    what: &str,
    path: &str,
    other: &str,
    expect: Expect,
) -> Deed {
    let at = |path: &str| match path {
        "" => String::new(),
        "." => "{ground}".into(),
        _ if path.starts_with(['/', '{']) || path.starts_with("raw:") => path.to_string(),
        _ => format!("{{ground}}/{path}"),
    };
    // The target of a link is a text.
    let other = if what == "symlink" { other.to_string() } else { at(other) };
    let arguments =
        json!({ "edition": edition(by), "deed": what, "path": at(path), "other": other });
    Deed::new(plugin, "attempt", arguments, expect)
}

/// The same words as the guest has for it.
pub(super) fn edition(by: Access) -> &'static str {
    match by {
        Access::Wasi02 => "0.2",
        Access::Wasi03 => "0.3",
        _ => "std",
    }
}

/// What a guest is told that is not permitted something.
fn code(by: Access) -> &'static str {
    match by {
        Access::Std => "PermissionDenied",
        _ => "not-permitted",
    }
}

/// The environment, which the same guest looks at.
pub(super) fn environment() -> Vec<Row> {
    let row = |by, tried: &str, plugin, answer| {
        let arguments = json!({ "edition": edition(by) });
        let deed = answered(plugin, "variables", arguments, answer);
        Row::new(Capability::Environment, by, tried, deed)
    };
    let granted = "SEEN=one SEEN_TOKEN=[redacted]";
    let mut rows = Vec::new();
    for by in EDITIONS {
        rows.extend([
            row(
                by,
                "list the variables that were granted, of which one is secret",
                "files",
                granted,
            ),
            row(by, "list the variables of which fewer were approved", "narrow-files", "SEEN=one")
                .on(Stage::Ours),
            row(by, "list the variables of which more were approved", "wide-files", "SEEN=one")
                .on(Stage::Ours),
        ]);
    }
    rows
}
