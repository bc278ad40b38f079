//! By the number of recorded calls: questions as `tenon history` has them.

use serde_json::json;
use std::fs;
use std::path::Path;
use tempfile::TempDir;
use tenon_host::history::{LOG, Query, Record, read};
use tenon_host::services::{
    Durability, LogPolicy, LogStore, MAX_BATCH_ENTRIES, NewEntry, STATE_FILE, SqliteStore,
};

use crate::curve::{Curve, CurveReport};
use crate::support::{builder, call, time};

const SIZES: &[usize] = &[1, 10, 100, 1_000, 10_000, 100_000, 1_000_000];

/// What comes on top with `--large`: three gigabytes of records, each of which is read for half a minute.
const LARGE: usize = 10_000_000;

/// How many calls are shown where nothing else is said.
const LIMIT: usize = 20;

/// One of so many calls has failed.
const FAILED: usize = 100;

pub(crate) async fn all(report: &mut CurveReport) {
    let curve = |what, exponent, reason| Curve::new(what, "calls", exponent, reason);
    let mut latest =
        curve("the latest 20 calls of a history", 0.0, "they are at the end of the log");
    let mut failed = curve("the latest 20 of one in 100", 0.0, "they are near the end");
    let mut none = curve("a filter that fits no call", 1.0, "each record is looked at");
    let like = recorded().await;
    let is_large = std::env::args().any(|argument| argument == "--large");
    for &size in SIZES.iter().chain(is_large.then_some(&LARGE)) {
        let folder = TempDir::new().unwrap();
        write(folder.path(), &like, size);
        let ask = async |curve: &mut Curve, query: Query, expected: usize| {
            let query = Query { limit: Some(LIMIT), ..query };
            let asked = time(async || {
                let found = read(folder.path(), &query).expect("the files are read");
                assert_eq!(found.len(), expected);
                let last = found.last();
                assert!(
                    last.is_none_or(|last| last.call.parse::<usize>().unwrap() + FAILED >= size)
                );
            });
            curve.time(size, asked.await);
        };
        ask(&mut latest, Query::default(), size.min(LIMIT)).await;
        let query = Query { failed: true, ..Query::default() };
        ask(&mut failed, query, size.div_ceil(FAILED).min(LIMIT)).await;
        let query = Query { tool: Some("nobody__*".into()), ..Query::default() };
        ask(&mut none, query, 0).await;
    }
    for curve in [latest, failed, none] {
        report.add(curve);
    }
}

/// What is recorded of a call.
async fn recorded() -> Record {
    let folder = TempDir::new().unwrap();
    let script = folder.path().join("p.rhai");
    fs::write(&script, "tool(#{ name: \"echo\", description: \"Echoes\" }, |a| a.text);").unwrap();
    let configuration = format!("plugins.scripts = [{script:?}]");
    let state = folder.path().join("state");
    let platform = builder(&configuration).state(&state).build().await.expect("it is built");
    let text = "The quick brown fox jumps over the lazy dog, and then it does so again";
    call(&platform, "p__echo", json!({ "text": text }), text).await;
    platform.shutdown().await;
    read(&state, &Query::default()).expect("the file is read").remove(0)
}

/// Writes records that differ in their numbers, tools and outcomes, as the host does.
fn write(folder: &Path, like: &Record, count: usize) {
    let store = SqliteStore::open(folder.join(STATE_FILE)).expect("the database is made");
    let policy = LogPolicy { max_bytes: u64::MAX, durability: Durability::Process };
    let mut record = like.clone();
    let numbers: Vec<usize> = (0..count).collect();
    for numbers in numbers.chunks(MAX_BATCH_ENTRIES) {
        let lines = numbers.iter().map(|&i| {
            record.at = like.at + i as u64;
            record.call = i.to_string();
            record.tool = format!("p{}__echo", i % 10);
            record.outcome = if i % FAILED == 0 { "tool-error" } else { "ok" }.into();
            (record.at, serde_json::to_vec(&record).expect("a record is JSON"))
        });
        let lines: Vec<(u64, Vec<u8>)> = lines.collect();
        let entries: Vec<NewEntry<'_>> =
            lines.iter().map(|(at, value)| NewEntry { at: *at, value }).collect();
        store.append(LOG, &entries, policy).expect("there is room");
    }
}
