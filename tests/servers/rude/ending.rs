//! Habits of living and dying: processes that end when they should not, or do not when they should.

use serde_json::json;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio, exit};
use std::thread;
use std::time::Duration;

use crate::Habit;
use crate::server::{answer, on_call, properly, receive, send, serve, tool, write};

pub(crate) const HABITS: &[Habit] = &[
    // Ends at once, saying why.
    ("dies", || {
        eprintln!("cannot find my configuration");
        exit(7);
    }),
    // The same on its standard output.
    ("dies-aloud", || {
        println!("usage: dies-aloud [OPTIONS]");
        exit(6);
    }),
    // The same, noting that it was started in the file that its next argument names.
    ("dies-noting", || {
        let mut diary = fs::File::options().create(true).append(true).open(argument(2));
        let diary = diary.as_mut().expect("a diary can be kept");
        writeln!(diary, "started").expect("it can be written to");
        exit(5);
    }),
    // The same in calls of its tool, noting each; what it says of that tool invites to try again.
    ("dies-noting-calls", || {
        serve(|message| match message["method"].as_str() {
            Some("tools/list") => {
                let mut rude = tool("rude");
                rude["annotations"] = json!({ "readOnlyHint": true, "idempotentHint": true });
                answer(message, json!({ "tools": [tool("echo"), rude] }));
                true
            }
            Some("tools/call") if message["params"]["name"] == "rude" => {
                let mut diary = fs::File::options().create(true).append(true).open(argument(2));
                let diary = diary.as_mut().expect("a diary can be kept");
                writeln!(diary, "called").expect("it can be written to");
                exit(9);
            }
            _ => false,
        });
    }),
    // Ends in the middle of something.
    ("dies-listing", || {
        serve(|message| {
            if message["method"] == "tools/list" {
                eprintln!("what tools?");
                exit(8);
            }
            false
        });
    }),
    ("dies-calling", || {
        on_call(|_| {
            eprintln!("not that one");
            exit(9);
        });
    }),
    ("dies-speaking", || {
        on_call(|call| {
            write(format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{\"cont", call["id"]));
            exit(10);
        });
    }),
    ("aborts", || on_call(|_| std::process::abort())),
    // Ends after each call; started again, it waits for the file that its next argument names, and
    // counts its starts in `starts` beside it.
    ("gated", || {
        wait_at_the_gate();
        while let Some(message) = receive() {
            properly(&message);
            if message["method"] == "tools/call" {
                return;
            }
        }
    }),
    // Keeps a diary of what it is told, in the file that its next argument names: a line for each
    // message with its method, and `end` where its input ends. It answers no call.
    ("diary", || {
        let mut diary = fs::File::create(argument(2)).expect("a diary can be kept");
        let mut note = |what: &str| writeln!(diary, "{what}").expect("it can be written to");
        while let Some(message) = receive() {
            let method = message["method"].as_str().unwrap_or("answer");
            note(method);
            if method != "tools/call" {
                properly(&message);
            }
        }
        note("end");
    }),
    // Shows that it is there by a file in the folder that its next argument names, and waits until
    // as many as the one after that says are there.
    ("meets", || {
        let folder = PathBuf::from(argument(2));
        let wanted: usize = argument(3).parse().expect("it is a number");
        let mine = folder.join(std::process::id().to_string());
        fs::write(mine, "").expect("the folder is there");
        while fs::read_dir(&folder).expect("the folder is there").count() < wanted {
            thread::sleep(Duration::from_millis(10));
        }
        serve(|_| false);
    }),
    // Closes its pipes, and lives on.
    ("closes", || on_call(|_| become_another("exec sleep 1000 <&- >&- 2>&-"))),
    ("closes-first", || {
        receive();
        become_another("exec sleep 1000 >&-");
    }),
    // Writes on, and reads nothing any more.
    ("deaf", || {
        on_call(|_| {
            loop {
                send(&json!({ "jsonrpc": "2.0", "method": "notifications/unheard-of" }));
                thread::sleep(Duration::from_millis(10));
            }
        });
    }),
    // The same, with more to write than anybody can read.
    ("deaf-and-loud", || {
        on_call(|_| {
            loop {
                send(&json!({ "jsonrpc": "2.0", "method": "notifications/unheard-of" }));
            }
        });
    }),
    // Leaves a child of its own running, which holds the pipes open.
    ("child", || {
        leave_a_child();
        serve(|_| false);
    }),
    // The same, and it takes for ever.
    ("family", || {
        leave_a_child();
        on_call(|_| {});
    }),
    // Ends, and leaves a child that goes on writing where it did.
    ("heir", || {
        on_call(|_| {
            let chatter = "while echo still here; do sleep 0.02; done";
            Command::new("/bin/sh").args(["-c", chatter]).spawn().expect("a shell is there");
            exit(11);
        });
    }),
    // Ignores SIGTERM and the end of its input, but that it writes `end` to the file that `DIARY` names,
    // if any.
    ("stubborn", || {
        if std::env::var_os("STUBBORN").is_none() {
            become_another("trap '' TERM; STUBBORN=1 exec \"$0\" stubborn");
        }
        serve(|_| false);
        if let Some(diary) = std::env::var_os("DIARY") {
            fs::write(diary, "end").expect("a diary can be kept");
        }
        loop {
            thread::sleep(Duration::from_secs(1));
        }
    }),
];

fn leave_a_child() {
    #[expect(clippy::zombie_processes, reason = "being left alone is its part")]
    Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn().expect("sleep is there");
}

fn argument(index: usize) -> String {
    std::env::args().nth(index).expect("it is told more than its habit")
}

fn wait_at_the_gate() {
    let gate = PathBuf::from(argument(2));
    let counter = gate.with_file_name("starts");
    let starts = fs::read(&counter).map_or(0, |starts| starts.len()) + 1;
    fs::write(&counter, vec![b'x'; starts]).expect("it can be counted");
    while starts > 1 && !gate.exists() {
        thread::sleep(Duration::from_millis(10));
    }
}

/// Goes on as a shell with this script, whose `$0` is this program. The standard library has no
/// words for signals and for closing what is standard; a shell has.
#[cfg(unix)]
fn become_another(script: &str) {
    let this = std::env::current_exe().expect("a program has a path");
    let mut shell = Command::new("/bin/sh");
    let error = std::os::unix::process::CommandExt::exec(shell.args(["-c", script]).arg(this));
    panic!("{error}");
}

#[cfg(not(unix))]
fn become_another(_: &str) {}
