//! Files: by each function that takes a path, of the standard library and both editions of WASI.
//!
//! Paths begin in the fixture that plugins are let loose on, but for those that begin with `/`, and
//! those that are passed as they are, beneath the folder `ro` (`raw:`).
//! Nothing is written, whatever the host does, but beneath that fixture.

use serde_json::json;

use crate::action::{Action, Expect, RefusalText};
use crate::case::{ApiSurface, Capability};
use crate::fixture::{CASE, PROCESSES};
use crate::plugins::ServicesSource;
use crate::row::{AttemptEffects, AttemptKind, Control, Race, Row, answered};

const EDITIONS: [ApiSurface; 3] = [ApiSurface::Std, ApiSurface::Wasi02, ApiSurface::Wasi03];
const WASI: [ApiSurface; 2] = [ApiSurface::Wasi02, ApiSurface::Wasi03];

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
    ("list", "ro", "", "ok bare r.txt"),
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
        "ok a.txt dangling deep good good-absolute loop module.rhai out out-absolute out-folder pipe \
         root",
    ),
];

/// What is granted and not there is said to be so, in the words of WASI.
const WRONG: &[Allowed] = &[
    ("read", "pub/none", "", "no-entry"),
    ("read", "pub/loop", "", "loop"),
    ("read", "pub/a.txt/", "", "not-directory"),
    ("read", "pub/a.txt/x", "", "not-directory"),
    ("identity", "pub/good", "", "ok true"),
    ("stat", "ro/\u{fffd}\u{202e}", "", "no-entry"),
];

/// What is the path of nothing is said to be so, too.
const NO_PATHS: &[(&str, &str)] = &[("raw:", "no-entry"), ("raw:a\0b", "invalid")];

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

/// What is not granted, by its path or by links to it, and the answer where it is: one that ends in `…`
/// begins so, and one without `ok` is an error of the system.
type Hidden = (&'static str, &'static [(&'static str, &'static str)]);

/// Nothing else is read, looked at or told of.
const UNREADABLE: &[Hidden] = &[
    (
        "read",
        &[
            ("secret/s.txt", "ok hidden"),
            ("pub/../secret/s.txt", "ok hidden"),
            ("pub/deep/../../secret/s.txt", "ok hidden"),
            ("pub/out", "ok hidden"),
            ("pub/out/", "not-directory"),
            ("pub/out-folder/s.txt", "ok hidden"),
            ("pub/out-folder/../secret/s.txt", "ok hidden"),
            ("pub/out-folder/way-in/a.txt", "ok granted a"),
            ("pub/out-absolute", "ok hidden"),
            ("pub/root/etc/passwd", "ok…"),
            ("secret/way-in/a.txt", "ok granted a"),
            ("mixed/no.txt", "ok hidden"),
            ("mixed/link.md", "ok hidden"),
            ("mixed/sub/no.md", "ok hidden"),
            ("mixed/OK.MD", "ok hidden"),
            ("PUB/a.txt", "ok hidden"),
            ("log/l.txt", "ok hidden"),
            ("code/.env", "ok hidden"),
            ("secret/none", "no-entry"),
            ("/etc/passwd", "ok…"),
            ("/proc/self/comm", "ok…"),
            ("/proc/self/fd/{fd}", "ok hidden"),
            ("/proc/self/root/etc/passwd", "ok…"),
        ],
    ),
    ("stat", HIDDEN),
    ("lstat", &[("secret/s.txt", "ok 6"), ("mixed/no.txt", "ok 6"), ("secret/way-in", "ok 6")]),
    (
        "read-link",
        &[("secret/to-s", "ok s.txt"), ("mixed/to-ok", "ok ok.md"), ("secret/way-in", "ok ../pub")],
    ),
    (
        "list",
        &[
            ("secret", "ok a.txt bare s.txt to-s way-in"),
            ("pub/out-folder", "ok a.txt bare s.txt to-s way-in"),
            ("mixed/sub", "ok no.md"),
            ("/etc", "ok…"),
        ],
    ),
];

/// What nobody is told of, by its own name and by links.
const HIDDEN: &[(&str, &str)] = &[
    ("secret/s.txt", "ok 6"),
    ("pub/out", "ok 6"),
    ("pub/out-folder/s.txt", "ok 6"),
    ("mixed/no.txt", "ok 6"),
    ("code/.env", "ok 6"),
    ("secret", "ok…"),
    ("/etc/passwd", "ok…"),
];

/// What leads out of the folder that it begins in, which no standard library would pass: beneath the
/// folder `ro`, with what it leads to.
const RAW: &[(&str, &str, &str)] = &[
    ("read", "raw:../secret/s.txt", "secret/s.txt"),
    ("read", "raw:./../secret/s.txt", "secret/s.txt"),
    ("read", "raw:../ro/r.txt", "ro/r.txt"),
    ("read", "raw:/etc/passwd", "/etc/passwd"),
    ("read", "raw://etc/passwd", "/etc/passwd"),
    ("read", "raw:../../../../../../../../etc/passwd", "/etc/passwd"),
    ("stat", "raw:../secret/s.txt", "secret/s.txt"),
    ("stat", "raw:./../secret/s.txt", "secret/s.txt"),
    ("stat", "raw:../ro/r.txt", "ro/r.txt"),
    ("stat", "raw:..", "."),
    ("stat", "raw:/etc/passwd", "/etc/passwd"),
    ("stat", "raw://etc/passwd", "/etc/passwd"),
    ("stat", "raw:../../../../../../../../etc/passwd", "/etc/passwd"),
    ("append", "raw:../secret/s.txt", "secret/s.txt"),
    ("write", "raw:../secret/s.txt", "secret/s.txt"),
    ("write", "raw:./../secret/new.txt", "secret/new.txt"),
    ("write", "raw:../ro/r.txt", "ro/r.txt"),
    ("write", "raw:{fixture}/secret/s.txt", "secret/s.txt"),
    ("write", "raw:/{fixture}/secret/s.txt", "secret/s.txt"),
    ("write", "raw:{up}{fixture}/secret/s.txt", "secret/s.txt"),
];

/// What is neither file nor folder is not opened, granted or not.
const NO_FILES: &[&str] = &["/dev/zero", "pub/pipe"];

/// What is tried on a path that may not be changed, and what has changed where it may.
type Changing = (&'static str, &'static [(&'static str, &'static [&'static str])]);

/// Nothing is changed that may not be.
const UNWRITABLE: &[Changing] = &[
    (
        "write",
        &[
            ("ro/r.txt", &["ro/r.txt: \"written\""]),
            ("ro/new.txt", &["ro/new.txt: \"written\""]),
            ("mixed/ok.md", &["mixed/ok.md: \"written\""]),
            ("mixed/new.md", &["mixed/new.md: \"written\""]),
            ("pub/out", &["secret/s.txt: \"written\""]),
            ("pub/out-folder/new.txt", &["secret/new.txt: \"written\""]),
            ("pub/dangling", &["secret/to-come: \"written\""]),
            ("secret/new.txt", &["secret/new.txt: \"written\""]),
            ("new.txt", &["new.txt: \"written\""]),
        ],
    ),
    (
        "append",
        &[
            ("ro/r.txt", &["ro/r.txt: \"granted r appended\""]),
            ("ro/new.txt", &["ro/new.txt: \" appended\""]),
            ("mixed/ok.md", &["mixed/ok.md: \"granted m appended\""]),
            ("mixed/new.md", &["mixed/new.md: \" appended\""]),
            ("pub/out", &["secret/s.txt: \"hidden appended\""]),
            ("pub/out-folder/s.txt", &["secret/s.txt: \"hidden appended\""]),
            ("pub/out-folder/new.txt", &["secret/new.txt: \" appended\""]),
            ("pub/dangling", &["secret/to-come: \" appended\""]),
            ("secret/s.txt", &["secret/s.txt: \"hidden appended\""]),
            ("secret/new.txt", &["secret/new.txt: \" appended\""]),
            ("new.txt", &["new.txt: \" appended\""]),
        ],
    ),
    (
        "create-new",
        &[
            ("ro/new.txt", &["ro/new.txt: \"\""]),
            ("mixed/new.md", &["mixed/new.md: \"\""]),
            ("pub/out-folder/new.txt", &["secret/new.txt: \"\""]),
            ("secret/new.txt", &["secret/new.txt: \"\""]),
            ("new.txt", &["new.txt: \"\""]),
        ],
    ),
    (
        "truncate",
        &[
            ("ro/r.txt", &["ro/r.txt: \"\""]),
            ("mixed/ok.md", &["mixed/ok.md: \"\""]),
            ("pub/out", &["secret/s.txt: \"\""]),
            ("pub/out-folder/s.txt", &["secret/s.txt: \"\""]),
            ("secret/s.txt", &["secret/s.txt: \"\""]),
        ],
    ),
    (
        "set-times",
        &[
            ("ro/r.txt", &["ro/r.txt: touched"]),
            ("mixed/ok.md", &["mixed/ok.md: touched"]),
            ("pub/out", &["secret/s.txt: touched"]),
            ("secret/s.txt", &["secret/s.txt: touched"]),
        ],
    ),
    (
        "make-folder",
        &[
            ("ro/new", &["ro/new: a folder"]),
            ("secret/new", &["secret/new: a folder"]),
            ("new", &["new: a folder"]),
            ("mixed/new.md", &["mixed/new.md: a folder"]),
        ],
    ),
    (
        "unlink",
        &[
            ("ro/r.txt", &["ro/r.txt: gone"]),
            ("mixed/ok.md", &["mixed/ok.md: gone"]),
            ("secret/s.txt", &["secret/s.txt: gone"]),
        ],
    ),
    (
        "remove-folder",
        &[
            ("ro/bare", &["ro/bare: gone"]),
            ("secret/bare", &["secret/bare: gone"]),
            ("mixed/bare", &["mixed/bare: gone"]),
        ],
    ),
];

/// The same for what has no function in the standard library: to make a file by opening it for reading.
const UNWRITABLE_BY_WASI: &[Changing] = &[(
    "create-to-read",
    &[
        ("ro/new.txt", &["ro/new.txt: \"\""]),
        ("mixed/new.md", &["mixed/new.md: \"\""]),
        ("pub/dangling", &["secret/to-come: \"\""]),
        ("secret/new.txt", &["secret/new.txt: \"\""]),
        ("code/.bashrc", &["code/.bashrc: \"\""]),
    ],
)];

/// What is opened for reading is not changed by what was opened; and what does the same by the path, with
/// what has changed then.
const OPENED_TO_READ: &[(&str, &str, &str)] = &[
    ("read-and-write", "write", "ro/r.txt: \"written\""),
    ("read-and-append", "append", "ro/r.txt: \"granted r appended\""),
    ("read-and-truncate", "truncate", "ro/r.txt: \"\""),
    ("read-and-set-times", "set-times", "ro/r.txt: touched"),
];

/// No glob covers what decides what is started: with each function that changes something, by its own
/// name, by links, and for the name of its folder.
const PROTECTED: &[Changing] = &[
    (
        "write",
        &[
            ("code/tenon.toml", &["code/tenon.toml: \"written\""]),
            ("code/.env", &["code/.env: \"written\""]),
            ("code/.git/config", &["code/.git/config: \"written\""]),
            ("code/.git/hooks-new", &["code/.git/hooks-new: \"written\""]),
            ("code/to-git/config", &["code/.git/config: \"written\""]),
            ("code/to-git/new", &["code/.git/new: \"written\""]),
            ("code/to-config", &["code/.git/config: \"written\""]),
            ("code/plain/../.git/config", &["code/.git/config: \"written\""]),
            ("code/nested/tenon.toml", &["code/nested/tenon.toml: \"written\""]),
            ("code/.vscode", &["code/.vscode: \"written\""]),
            ("code/plain/.mcp.json", &["code/plain/.mcp.json: \"written\""]),
            ("code/plain/plugin.toml", &["code/plain/plugin.toml: \"written\""]),
            ("code/plain/CLAUDE.md", &["code/plain/CLAUDE.md: \"written\""]),
            ("code/plain/.envrc", &["code/plain/.envrc: \"written\""]),
        ],
    ),
    (
        "append",
        &[
            ("code/tenon.toml", &["code/tenon.toml: \"granted t appended\""]),
            ("code/.git/config", &["code/.git/config: \"granted g appended\""]),
            ("code/.git/new", &["code/.git/new: \" appended\""]),
            ("code/to-git/config", &["code/.git/config: \"granted g appended\""]),
            ("code/to-git/new", &["code/.git/new: \" appended\""]),
            ("code/to-config", &["code/.git/config: \"granted g appended\""]),
            ("code/plain/../tenon.toml", &["code/tenon.toml: \"granted t appended\""]),
            ("code/nested/tenon.toml", &["code/nested/tenon.toml: \"granted n appended\""]),
            ("code/.vscode", &["code/.vscode: \" appended\""]),
            ("code/plain/.mcp.json", &["code/plain/.mcp.json: \" appended\""]),
        ],
    ),
    (
        "create-new",
        &[
            ("code/.bashrc", &["code/.bashrc: \"\""]),
            ("code/.git/new", &["code/.git/new: \"\""]),
            ("code/to-git/new", &["code/.git/new: \"\""]),
            ("code/.vscode", &["code/.vscode: \"\""]),
            ("code/plain/.mcp.json", &["code/plain/.mcp.json: \"\""]),
            ("code/HEAD", &["code/HEAD: \"\""]),
        ],
    ),
    (
        "truncate",
        &[
            ("code/tenon.toml", &["code/tenon.toml: \"\""]),
            ("code/.git/config", &["code/.git/config: \"\""]),
            ("code/to-git/config", &["code/.git/config: \"\""]),
            ("code/to-config", &["code/.git/config: \"\""]),
            ("code/plain/../tenon.toml", &["code/tenon.toml: \"\""]),
            ("code/nested/tenon.toml", &["code/nested/tenon.toml: \"\""]),
        ],
    ),
    (
        "set-times",
        &[
            ("code/tenon.toml", &["code/tenon.toml: touched"]),
            ("code/.git/config", &["code/.git/config: touched"]),
            ("code/to-git/config", &["code/.git/config: touched"]),
            ("code/to-config", &["code/.git/config: touched"]),
            ("code/plain/../tenon.toml", &["code/tenon.toml: touched"]),
            ("code/nested/tenon.toml", &["code/nested/tenon.toml: touched"]),
        ],
    ),
    (
        "make-folder",
        &[
            ("code/.GIT", &["code/.GIT: a folder"]),
            ("code/.vscode", &["code/.vscode: a folder"]),
            ("code/.tenon", &["code/.tenon: a folder"]),
            ("code/.git/hooks", &["code/.git/hooks: a folder"]),
            ("code/to-git/new", &["code/.git/new: a folder"]),
            ("code/plain/.mcp.json", &["code/plain/.mcp.json: a folder"]),
        ],
    ),
    (
        "unlink",
        &[
            ("code/tenon.toml", &["code/tenon.toml: gone"]),
            ("code/.env", &["code/.env: gone"]),
            ("code/.git/config", &["code/.git/config: gone"]),
            ("code/to-git/config", &["code/.git/config: gone"]),
            ("code/plain/../tenon.toml", &["code/tenon.toml: gone"]),
            ("code/nested/tenon.toml", &["code/nested/tenon.toml: gone"]),
            ("code/.config", &["code/.config: gone"]),
        ],
    ),
    ("remove-folder", &[("code/.git/bare", &["code/.git/bare: gone"])]),
];

/// The same for what the standard library cannot do with a folder, which nobody sees of it afterwards.
const PROTECTED_BY_WASI: &[Changing] = &[("set-times", &[("code/.git", &[])])];

/// Deed, path, second path, and what has changed where it may.
type Moving = (&'static str, &'static str, &'static str, &'static [&'static str]);

/// And none is moved, replaced, or led to by another name.
const PROTECTED_NAMES: &[Moving] = &[
    (
        "rename",
        "code/free.txt",
        "code/tenon.toml",
        &["code/free.txt: gone", "code/tenon.toml: \"granted f\""],
    ),
    (
        "rename",
        "code/free.txt",
        "code/plain/.mcp.json",
        &["code/free.txt: gone", "code/plain/.mcp.json: \"granted f\""],
    ),
    (
        "rename",
        "code/free.txt",
        "code/.git/new",
        &["code/.git/new: \"granted f\"", "code/free.txt: gone"],
    ),
    ("rename", "code/tenon.toml", "code/x", &["code/tenon.toml: gone", "code/x: \"granted t\""]),
    (
        "rename",
        "code/.git",
        "code/x",
        &[
            "code/.git: gone",
            "code/.git/bare: gone",
            "code/.git/config: gone",
            "code/x: a folder",
            "code/x/bare: a folder",
            "code/x/config: \"granted g\"",
        ],
    ),
    ("rename", "code/.git/config", "code/x", &["code/.git/config: gone", "code/x: \"granted g\""]),
    (
        "rename",
        "code/plain",
        "code/.git/new",
        &[
            "code/plain: gone",
            "code/plain/x: gone",
            "code/.git/new: a folder",
            "code/.git/new/x: \"granted x\"",
        ],
    ),
    (
        "rename",
        "code/plain",
        "code/.vscode",
        &[
            "code/plain: gone",
            "code/plain/x: gone",
            "code/.vscode: a folder",
            "code/.vscode/x: \"granted x\"",
        ],
    ),
    (
        "rename",
        "code/plain",
        "code/.github",
        &[
            "code/plain: gone",
            "code/plain/x: gone",
            "code/.github: a folder",
            "code/.github/x: \"granted x\"",
        ],
    ),
    ("rename", "code/.config", "code/x", &["code/.config: gone", "code/x: leads to plain"]),
    ("rename", "code/.env", "code/x", &["code/.env: gone", "code/x: \"hidden\""]),
    // A folder takes along what is in it.
    (
        "rename",
        "code/nested",
        "code/x",
        &[
            "code/nested: gone",
            "code/nested/tenon.toml: gone",
            "code/x: a folder",
            "code/x/tenon.toml: \"granted n\"",
        ],
    ),
    (
        "rename",
        "code/nested",
        "code/plain/y",
        &[
            "code/nested: gone",
            "code/nested/tenon.toml: gone",
            "code/plain/y: a folder",
            "code/plain/y/tenon.toml: \"granted n\"",
        ],
    ),
    ("link", "code/free.txt", "code/.bashrc", &["code/.bashrc: \"granted f\""]),
    ("link", "code/tenon.toml", "code/x", &["code/x: \"granted t\""]),
    ("link", "code/.env", "code/x", &["code/x: \"hidden\""]),
    ("symlink", "code/.vscode", "plain", &["code/.vscode: leads to plain"]),
    ("symlink", "code/.github", "plain", &["code/.github: leads to plain"]),
    ("symlink", "code/.git/x", "config", &["code/.git/x: leads to config"]),
];

/// No new name gives new rights.
const RENAMED: &[Moving] = &[
    // What may be read only would become writable.
    ("rename", "ro/r.txt", "pub/r.txt", &["pub/r.txt: \"granted r\"", "ro/r.txt: gone"]),
    ("link", "ro/r.txt", "pub/r.txt", &["pub/r.txt: \"granted r\""]),
    ("rename", "mixed/ok.md", "pub/ok.md", &["mixed/ok.md: gone", "pub/ok.md: \"granted m\""]),
    ("link", "mixed/ok.md", "pub/ok.md", &["pub/ok.md: \"granted m\""]),
    // What may be written only would become readable.
    ("rename", "log/l.txt", "pub/l.txt", &["log/l.txt: gone", "pub/l.txt: \"hidden\""]),
    ("link", "log/l.txt", "pub/l.txt", &["pub/l.txt: \"hidden\""]),
    // In and out.
    ("rename", "secret/s.txt", "pub/s.txt", &["secret/s.txt: gone", "pub/s.txt: \"hidden\""]),
    ("link", "secret/s.txt", "pub/s.txt", &["pub/s.txt: \"hidden\""]),
    ("rename", "pub/a.txt", "secret/b.txt", &["pub/a.txt: gone", "secret/b.txt: \"granted a\""]),
    ("link", "pub/a.txt", "secret/b.txt", &["secret/b.txt: \"granted a\""]),
    ("rename", "pub/a.txt", "b.txt", &["b.txt: \"granted a\"", "pub/a.txt: gone"]),
    ("link", "pub/a.txt", "b.txt", &["b.txt: \"granted a\""]),
    ("rename", "pub/a.txt", "ro/a.txt", &["pub/a.txt: gone", "ro/a.txt: \"granted a\""]),
    ("link", "pub/a.txt", "ro/a.txt", &["ro/a.txt: \"granted a\""]),
    // Another's place.
    ("rename", "pub/a.txt", "secret/s.txt", &["pub/a.txt: gone", "secret/s.txt: \"granted a\""]),
    // A folder takes along what is in it.
    (
        "rename",
        "secret",
        "pub/secret",
        &[
            "secret: gone",
            "secret/a.txt: gone",
            "secret/bare: gone",
            "secret/s.txt: gone",
            "secret/to-s: gone",
            "secret/way-in: gone",
            "pub/secret: a folder",
            "pub/secret/a.txt: \"hidden\"",
            "pub/secret/bare: a folder",
            "pub/secret/s.txt: \"hidden\"",
            "pub/secret/to-s: leads to s.txt",
            "pub/secret/way-in: leads to ../pub",
        ],
    ),
    (
        "rename",
        "mixed/sub",
        "pub/sub",
        &[
            "mixed/sub: gone",
            "mixed/sub/no.md: gone",
            "pub/sub: a folder",
            "pub/sub/no.md: \"hidden\"",
        ],
    ),
    (
        "rename",
        "pub/deep",
        "log/deep",
        &[
            "pub/deep: gone",
            "pub/deep/c.txt: gone",
            "log/deep: a folder",
            "log/deep/c.txt: \"granted c\"",
        ],
    ),
    (
        "rename",
        "ro",
        "pub/ro",
        &[
            "ro: gone",
            "ro/bare: gone",
            "ro/r.txt: gone",
            "pub/ro: a folder",
            "pub/ro/bare: a folder",
            "pub/ro/r.txt: \"granted r\"",
        ],
    ),
    // A part of what is in it may be read, and a part of where it goes written.
    (
        "rename",
        "log",
        "pub/log",
        &["log: gone", "log/l.txt: gone", "pub/log: a folder", "pub/log/l.txt: \"hidden\""],
    ),
    (
        "rename",
        "pub/deep",
        "mixed/deep.md",
        &[
            "pub/deep: gone",
            "pub/deep/c.txt: gone",
            "mixed/deep.md: a folder",
            "mixed/deep.md/c.txt: \"granted c\"",
        ],
    ),
    // Links that would lead out, or stand where nothing may be.
    ("symlink", "pub/l", "../secret/s.txt", &["pub/l: leads to ../secret/s.txt"]),
    ("symlink", "pub/l", "{up}etc/passwd", &["pub/l: leads to {up}etc/passwd"]),
    ("symlink", "pub/deep/l", "../../secret", &["pub/deep/l: leads to ../../secret"]),
    ("symlink", "ro/l", "r.txt", &["ro/l: leads to r.txt"]),
    ("symlink", "secret/l", "../pub/a.txt", &["secret/l: leads to ../pub/a.txt"]),
];

/// What is done with what is swapped meanwhile.
const RACES: &[&str] = &[
    "read",
    "stat",
    "write",
    "append",
    "truncate",
    "set-times",
    "unlink",
    "rename",
    "link",
    "make-folder",
];

/// Who may do everything that is tried here.
const FREE: &str = "free-files";

pub(super) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for by in EDITIONS {
        for (what, path, other, answer) in ALLOWED {
            rows.push(granted(by, what, path, other, Expect::answer(*answer)));
        }
    }
    for by in WASI {
        for (what, path, other, answer) in WRONG {
            rows.push(granted(by, what, path, other, Expect::answer(*answer)));
        }
        let shown = || deed("files", by, "stat", "raw:r.txt", "", Expect::answer("ok 9"));
        let nothing = || Control::never(shown(), "it is the path of nothing");
        for (path, answer) in NO_PATHS {
            let deed = deed("files", by, "stat", path, "", Expect::answer(*answer));
            rows.push(row(by, "stat", path, "", deed, nothing()));
        }
        let long = [("name", "x".repeat(300)), ("path", "x/".repeat(3000))];
        for (what, long) in long {
            let tried = format!("stat a {what} of {} bytes", long.len());
            let expect = Expect::answer("name-too-long");
            let deed = deed("files", by, "stat", &format!("ro/{long}"), "", expect);
            rows.push(Row::new(Capability::Filesystem, by, tried, deed, nothing()));
        }
    }
    for by in EDITIONS {
        let is_wasi = by != ApiSurface::Std;
        rows.extend(written(by));
        let identity = [("identity", HIDDEN)];
        for (what, paths) in UNREADABLE.iter().chain(identity.iter().filter(|_| is_wasi)) {
            for (path, answer) in *paths {
                let answer = if *what == "identity" { "ok true" } else { *answer };
                rows.push(denied(by, what, path, "", self::answer(by, answer), &[]));
            }
        }
        rows.extend(never(by));
        let by_wasi = UNWRITABLE_BY_WASI.iter().chain(PROTECTED_BY_WASI).filter(|_| is_wasi);
        for (what, paths) in UNWRITABLE.iter().chain(PROTECTED).chain(by_wasi) {
            let ok = || Expect::answer("ok");
            rows.extend(paths.iter().map(|(path, left)| denied(by, what, path, "", ok(), left)));
        }
        for path in [".", "ro", "secret", "mixed/sub"] {
            rows.push(denied(by, "remove-folder", path, "", answer(by, "not-empty"), &[]));
        }
        let renamed = RENAMED.iter().chain(PROTECTED_NAMES).filter(|(what, ..)| has(by, what));
        rows.extend(renamed.map(|(what, path, other, left)| {
            denied(by, what, path, other, Expect::answer("ok"), left)
        }));
        for what in RACES {
            rows.push(race(by, what).then(well(by)));
        }
        rows.extend(approved(by));
        rows.push(flood(by));
    }
    rows
}

/// What no grant covers.
fn never(by: ApiSurface) -> Vec<Row> {
    let mut rows = Vec::new();
    for path in NO_FILES {
        let tried = deed(FREE, by, "read", path, "", refusal(by, "read"));
        let shown = deed(FREE, by, "stat", path, "", Expect::answer("ok 0"));
        let control = Control::never(shown, "it is neither a file nor a folder");
        let row = row(by, "read", path, "", tried, control).then(well(by));
        let needs = if path.contains("pipe") { "pipes" } else { "links" };
        rows.push(Row { requires: Some(needs), ..row });
    }
    if by == ApiSurface::Std {
        return rows;
    }
    let began = || deed("files", by, "read", "raw:r.txt", "", Expect::answer("ok granted r"));
    for (what, path, there) in RAW {
        let (answer, left) = match *what {
            "append" => (Expect::answer("ok"), format!("{there}: \"hidden appended\"")),
            "write" => (Expect::answer("ok"), format!("{there}: \"written\"")),
            _ => (Expect::Begins("ok "), String::new()),
        };
        let files = Some(left).filter(|left| !left.is_empty()).into_iter().collect();
        let shown = vec![began(), deed(FREE, by, what, there, "", answer)];
        let why = "a path does not lead out of the folder that it begins in";
        let control =
            Control::Never(shown, AttemptEffects { files, ..AttemptEffects::default() }, why);
        let tried = deed("files", by, what, path, "", refusal(by, what));
        rows.push(row(by, what, path, "", tried, control).then(well(by)));
    }
    for (what, shown, left) in OPENED_TO_READ {
        let shown = deed(FREE, by, shown, "ro/r.txt", "", Expect::answer("ok"));
        let files = vec![left.to_string()];
        let why = "what was opened for reading is not there for writing";
        let control =
            Control::Never(vec![shown], AttemptEffects { files, ..AttemptEffects::default() }, why);
        let tried = deed("files", by, what, "ro/r.txt", "", unopened(by));
        rows.push(row(by, what, "ro/r.txt", "", tried, control).then(well(by)));
    }
    let links = |path, target, expect| deed("files", by, "symlink", path, target, expect);
    let shown = links("pub/l", "a.txt", Expect::answer("ok"));
    let files = vec!["pub/l: leads to a.txt".to_string()];
    let why = "a link says where it leads from where it is";
    let control =
        Control::Never(vec![shown], AttemptEffects { files, ..AttemptEffects::default() }, why);
    let tried = links("pub/l", "/etc/passwd", refusal(by, "symlink"));
    rows.push(row(by, "symlink", "pub/l", "/etc/passwd", tried, control).then(well(by)));
    let read = |path, expect| deed("files", by, "read-link", path, "", expect);
    let shown = read("pub/good", Expect::answer("ok deep/c.txt"));
    let control = Control::never(shown, "where an absolute link leads is told nobody");
    let tried = read("pub/out-absolute", refusal(by, "read-link"));
    rows.push(row(by, "read-link", "pub/out-absolute", "", tried, control).then(well(by)));
    rows
}

/// Something that is done while a link that leads out is swapped in.
fn race(by: ApiSurface, what: &'static str) -> Row {
    let attempt = AttemptKind::Race(Race { edition: edition(by), deed: what });
    let tried = format!("{what} while a link that leads out is swapped in");
    let expected = "nothing of what is outside is read or changed";
    let control = Control::RaceReaches(FREE);
    let row = Row::trying(Capability::Filesystem, by, tried, expected, attempt, control);
    Row { requires: Some("links"), ..row }
}

/// What may be written is, and what is written is there.
fn written(by: ApiSurface) -> Vec<Row> {
    let own = format!("own/{by}");
    let put = |text: &str| text.replace("OWN", &own).replace("BY", &by.to_string());
    let mut rows = Vec::new();
    for (deed, path, other, changes) in WRITTEN.iter().filter(|(deed, ..)| has(by, deed)) {
        // The folder's name is in the paths, which are the same for all ways otherwise.
        let row = granted(by, deed, &put(path), &put(other), Expect::answer("ok"));
        let mut files: Vec<String> = changes.iter().map(|change| put(change)).collect();
        files.sort();
        rows.push(row.leaves(AttemptEffects { files, ..AttemptEffects::default() }));
    }
    rows
}

/// More open files than a plugin may have: the descriptors of the system are all of the host's.
fn flood(by: ApiSurface) -> Row {
    let hold = |times: u32, expect| {
        let arguments =
            json!({ "edition": edition(by), "path": "{fixture}/ro/r.txt", "times": times });
        Action::new("files", "hold", arguments, expect)
    };
    // WASI has no error of its own for it.
    let too_many = Expect::answer(match by {
        ApiSurface::Std => "256, then I/O error (os error 29)",
        _ => "256, then io",
    });
    let control = Control::Call(hold(100, Expect::answer("100")), AttemptEffects::default());
    let tried = "open a file again and again and keep it open";
    Row::new(Capability::Limits, by, tried, hold(400, too_many), control).then(well(by))
}

/// What was approved holds, if it was requested; what was requested holds, if it was approved.
fn approved(by: ApiSurface) -> Vec<Row> {
    let row = |tried: &str, deed: Action, answer: &str, left: &str| {
        let files = Some(left.to_string()).filter(|left| !left.is_empty()).into_iter().collect();
        let left = AttemptEffects { files, ..AttemptEffects::default() };
        let control = Control::call(&deed, "both-files", answer).leaving(left);
        Row::new(Capability::Filesystem, by, tried, deed, control).on(ServicesSource::Ours)
    };
    let read = |plugin, path| deed(plugin, by, "read", path, "", refusal(by, "read"));
    let write = |plugin, path| deed(plugin, by, "write", path, "", refusal(by, "write"));
    let granted = |plugin, path, answer| deed(plugin, by, "read", path, "", Expect::answer(answer));
    let narrow = || granted("narrow-files", "pub/a.txt", "ok granted a");
    let wide = || granted("wide-files", "ro/r.txt", "ok granted r");
    let refused = Control::Refused(read("wide-files", "pub/a.txt"));
    let both = "read what was requested and approved";
    vec![
        Row::new(Capability::Filesystem, by, both, narrow(), refused).on(ServicesSource::Ours),
        row(
            "read what was requested and not approved",
            read("narrow-files", "ro/r.txt"),
            "ok granted r",
            "",
        )
        .then(narrow()),
        row(
            "read what was approved and not requested",
            read("narrow-files", "secret/a.txt"),
            "ok hidden",
            "",
        )
        .then(narrow()),
        row(
            "write what was approved for reading",
            write("narrow-files", "pub/a.txt"),
            "ok",
            "pub/a.txt: \"written\"",
        )
        .then(narrow()),
        row(
            "read beside a request that was more than approved",
            read("wide-files", "secret/s.txt"),
            "ok hidden",
            "",
        )
        .then(wide()),
        row(
            "write what was requested for reading",
            write("wide-files", "ro/r.txt"),
            "ok",
            "ro/r.txt: \"written\"",
        )
        .then(wide()),
    ]
}

/// The standard library of the target makes no links.
fn has(by: ApiSurface, deed: &str) -> bool {
    by != ApiSurface::Std || deed != "symlink"
}

/// What is granted works, and is refused where nothing is.
fn granted(by: ApiSurface, what: &str, path: &str, other: &str, expect: Expect) -> Row {
    let deed = deed("files", by, what, path, other, expect);
    let control = Control::Refused(deed.by("bare-files", refusal(by, what)));
    row(by, what, path, other, deed, control)
}

/// What is not granted is refused, and where it is it is answered so and leaves these changes.
fn denied(
    by: ApiSurface,
    what: &str,
    path: &str,
    other: &str,
    answer: Expect,
    left: &[&str],
) -> Row {
    let deed = deed("files", by, what, path, other, refusal(by, what));
    let files = left.iter().map(|change| change.to_string()).collect();
    let control =
        Control::Call(deed.by(FREE, answer), AttemptEffects { files, ..AttemptEffects::default() });
    row(by, what, path, other, deed, control).then(well(by))
}

/// An answer as the tables have it, in the words of an edition.
fn answer(by: ApiSurface, text: &'static str) -> Expect {
    if let Some(beginning) = text.strip_suffix('…') {
        return Expect::Begins(beginning);
    }
    Expect::answer(match (by, text) {
        (ApiSurface::Std, "no-entry") => "NotFound",
        (ApiSurface::Std, "not-directory") => "NotADirectory",
        // The standard library of the target has no name for it.
        (ApiSurface::Std, "not-empty") => "Uncategorized",
        _ => text,
    })
}

/// What is said of a descriptor that was not opened for this.
fn unopened(by: ApiSurface) -> Expect {
    Expect::answer(code(by))
}

/// A path that leads out of the folder that it begins in has no line that would request it. Of
/// what is only looked for nobody is told: libraries do so all the time.
pub(super) fn refusal(by: ApiSurface, what: &str) -> Expect {
    let words = match what {
        "stat" | "lstat" | "identity" | "read-link" => RefusalText::None,
        _ => RefusalText::RequestOrNever("filesystem"),
    };
    Expect::Refused(Some(code(by)), words)
}

/// What still works.
fn well(by: ApiSurface) -> Action {
    deed("files", by, "read", "ro/r.txt", "", Expect::answer("ok granted r"))
}

fn row(by: ApiSurface, what: &str, path: &str, other: &str, deed: Action, control: Control) -> Row {
    let tried = match other {
        "" => format!("{what} {path:?}"),
        other => format!("{what} {path:?} {other:?}"),
    };
    let tried = tried.replace('"', "");
    let row = Row::new(Capability::Filesystem, by, tried, deed, control);
    let has = |part: &str| path.contains(part);
    let needs = match path {
        _ if has("/proc/") || has("/root") => PROCESSES,
        _ if has("OK.MD") || has("PUB") => CASE,
        // The pipe is in a listing of it.
        _ if what == "list" && path == "pub" => "pipes",
        // Without them it would be about something else.
        _ => "links",
    };
    Row { requires: Some(needs), ..row }
}

fn deed(
    plugin: &'static str,
    by: ApiSurface,
    what: &str,
    path: &str,
    other: &str,
    expect: Expect,
) -> Action {
    let at = |path: &str| match path {
        "" => String::new(),
        "." => "{fixture}".into(),
        _ if path.starts_with(['/', '{']) => path.to_string(),
        _ if path.starts_with("raw:") => path.replacen("raw:", "raw:{fixture}/ro|", 1),
        _ => format!("{{fixture}}/{path}"),
    };
    // The target of a link is a text.
    let other = if what == "symlink" { other.to_string() } else { at(other) };
    let arguments =
        json!({ "edition": edition(by), "deed": what, "path": at(path), "other": other });
    Action::new(plugin, "attempt", arguments, expect)
}

/// The same words as the guest has for it.
pub(super) fn edition(by: ApiSurface) -> &'static str {
    match by {
        ApiSurface::Wasi02 => "0.2",
        ApiSurface::Wasi03 => "0.3",
        _ => "std",
    }
}

/// What a guest is told that is not permitted something.
fn code(by: ApiSurface) -> &'static str {
    match by {
        ApiSurface::Std => "PermissionDenied",
        _ => "not-permitted",
    }
}

/// The environment, which the same guest looks at.
pub(super) fn environment() -> Vec<Row> {
    let variables = |plugin, by, answer| {
        answered(plugin, "variables", json!({ "edition": edition(by) }), answer)
    };
    let row = |by, tried: &str, deed, control| {
        Row::new(Capability::Environment, by, tried, deed, control)
    };
    let all = "HIDDEN=three SEEN=one SEEN_TOKEN=[redacted]";
    let mut rows = Vec::new();
    for by in EDITIONS {
        let granted = variables("files", by, "SEEN=one SEEN_TOKEN=[redacted]");
        let bare = Control::Refused(granted.by("bare-files", Expect::answer("")));
        let tried = "list the variables that were granted, of which one is secret";
        rows.push(row(by, tried, granted, bare));
        for (tried, plugin) in [
            ("list the variables of which fewer were approved", "narrow-files"),
            ("list the variables of which more were approved", "wide-files"),
        ] {
            let deed = variables(plugin, by, "SEEN=one");
            let control = Control::call(&deed, "both-files", all);
            rows.push(row(by, tried, deed, control).on(ServicesSource::Ours));
        }
    }
    rows
}
