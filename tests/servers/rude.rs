//! An MCP server without manners, one bad habit for each name on its command line:
//!
//! * `dies`: ends at once, saying why on standard error
//! * `silent`: reads and never answers
//! * `noisy`: writes a banner and other lines that are no messages between its answers
//! * `foreign`: speaks a revision of the protocol that nobody else does
//! * `stubborn`: ignores the end of its input and SIGTERM
//! * `pages`: lists its tools a page at a time, some of them broken
//! * `deep`: has a tool whose name looks like that of another server's
//! * `batch`: answers in batches of one
//! * `gated`: ends after each call; started again, it waits for the file that its next argument
//!   names, and counts its starts in `starts` beside it
//! * `child`: leaves a child of its own running, which holds the pipes open

#![allow(clippy::print_stderr, clippy::print_stdout)]

use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, Write, stdin, stdout};
use std::path::PathBuf;
use std::process::{Command, Stdio, exit};
use std::thread;
use std::time::Duration;

fn main() {
    let habit = std::env::args().nth(1).unwrap_or_default();
    match habit.as_str() {
        "dies" => {
            eprintln!("cannot find my configuration");
            exit(7);
        }
        "stubborn" => ignore_sigterm(),
        "gated" => wait_at_the_gate(),
        "child" => {
            #[expect(clippy::zombie_processes, reason = "being left alone is its part")]
            Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn().expect("sleep is there");
        }
        _ => {}
    }
    for line in stdin().lock().lines() {
        let Ok(line) = line else { break };
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        if habit == "silent" {
            continue;
        }
        if habit == "noisy" {
            println!("Welcome to my server!\r\n{{\"half\": \n");
        }
        let Some(id) = message.get("id") else { continue };
        let answer = answer(&habit, &message);
        let mut response = json!({ "jsonrpc": "2.0", "id": id });
        match answer {
            Ok(result) => response["result"] = result,
            Err(error) => response["error"] = error,
        }
        if habit == "batch" {
            response = json!([response]);
        }
        println!("{response}");
        stdout().flush().expect("standard output is open");
        if habit == "gated" && message["method"] == "tools/call" {
            return;
        }
    }
    if habit == "stubborn" {
        loop {
            thread::sleep(Duration::from_secs(1));
        }
    }
}

fn wait_at_the_gate() {
    let gate = PathBuf::from(std::env::args().nth(2).expect("it is told which file to wait for"));
    let counter = gate.with_file_name("starts");
    let starts = fs::read(&counter).map_or(0, |starts| starts.len()) + 1;
    fs::write(&counter, vec![b'x'; starts]).expect("it can be counted");
    while starts > 1 && !gate.exists() {
        thread::sleep(Duration::from_millis(10));
    }
}

fn answer(habit: &str, message: &Value) -> Result<Value, Value> {
    let params = &message["params"];
    match message["method"].as_str().unwrap_or_default() {
        "initialize" => {
            let asked = params["protocolVersion"].clone();
            let version = if habit == "foreign" { json!("2099-12-31") } else { asked };
            Ok(json!({
                "protocolVersion": version,
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "rude", "version": "0" },
            }))
        }
        "tools/list" if habit == "pages" => Ok(page(params["cursor"].as_str())),
        "tools/list" if habit == "deep" => Ok(json!({ "tools": [tool("b__c")] })),
        "tools/list" => Ok(json!({ "tools": [tool("echo"), tool("meta")] })),
        "tools/call" if params["name"] == "meta" => {
            let meta = params["_meta"].to_string();
            Ok(json!({ "content": [{ "type": "text", "text": meta }] }))
        }
        "tools/call" => {
            Ok(json!({ "content": [{ "type": "text", "text": params["arguments"]["text"] }] }))
        }
        method => Err(json!({ "code": -32601, "message": format!("no {method} here") })),
    }
}

fn page(cursor: Option<&str>) -> Value {
    match cursor {
        None => json!({ "tools": [tool("one"), { "name": "no-schema" }], "nextCursor": "" }),
        Some("") => json!({ "tools": [tool("two"), 3, tool("one")], "nextCursor": "last" }),
        Some(_) => json!({ "tools": [tool("three")] }),
    }
}

fn tool(name: &str) -> Value {
    json!({ "name": name, "description": "A tool", "inputSchema": { "type": "object" } })
}

#[cfg(unix)]
fn ignore_sigterm() {
    // The standard library has no word for signals; a shell has one.
    if std::env::var_os("STUBBORN").is_none() {
        let this = std::env::current_exe().expect("a program has a path");
        let script = "trap '' TERM; exec \"$0\" stubborn";
        let error = std::os::unix::process::CommandExt::exec(
            Command::new("/bin/sh").arg("-c").arg(script).arg(this).env("STUBBORN", "1"),
        );
        panic!("{error}");
    }
}

#[cfg(not(unix))]
fn ignore_sigterm() {}
