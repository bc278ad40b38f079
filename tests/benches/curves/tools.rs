//! By the number of tools: loading them, finding, calling and refusing one, and listing them, also as MCP clients do.

use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::time::Instant;
use tempfile::TempDir;
use tenon_host::{Allocation, Call, CallError, Platform};
use tenon_serve::{Server, Settings};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf, duplex, split,
};

use crate::curve::{Curve, CurveReport};
use crate::support::{call, median_time, platform, time};

const SIZES: &[usize] = &[1, 10, 100, 1_000, 3_000, 10_000];

/// The tools of a plugin at most.
const PER_PLUGIN: usize = 1_000;

/// How long a page of a list may be that is on its way.
const PIPE_BYTES: usize = 8 << 20;

pub(crate) async fn all(report: &mut CurveReport) {
    let curve = |what, exponent, reason| Curve::new(what, "tools", exponent, reason);
    let mut building = curve("platform, scripts", 1.0, "each tool is defined and checked once");
    let mut finding = curve("one tool by its name", 0.0, "names are in a tree");
    let mut calling = curve("call of one tool", 0.0, "the others do not matter");
    let mut refusing =
        curve("refusal of a name that no tool has", 1.0, "the nearest name is looked for in all");
    let mut listing = curve("list of all tools", 1.0, "each is visited once");
    let mut first = curve("first `tools/list` of a server", 1.0, "each tool is written once");
    let mut serving = curve("`tools/list`, all pages", 1.0, "each tool is copied once");

    for &size in SIZES {
        let folder = TempDir::new().unwrap();
        let configuration = write(&folder, size);
        let build = async || platform(&configuration, Allocation::OnDemand).await;
        let built = median_time(size >= PER_PLUGIN, async || {
            let began = Instant::now();
            let platform = build().await;
            let built = began.elapsed();
            platform.shutdown().await;
            built
        });
        building.time(size, built.await);

        let platform = build().await;
        let registry = platform.registry();
        let last = name(size - 1);
        finding.time(
            size,
            time(async || {
                let (_, tool) = registry.tool(&last).expect("it is there");
                assert_eq!(tool.name.as_str(), last);
            })
            .await,
        );
        let answer = format!("{}: hello", (size - 1) % PER_PLUGIN);
        let arguments = || json!({ "text": "hello" });
        calling.time(size, time(async || call(&platform, &last, arguments(), &answer).await).await);
        let nobody = last.replace("tool", "toll");
        refusing.time(
            size,
            time(async || {
                let refused = platform.call(Call::new(nobody.clone(), arguments())).await;
                let Err(CallError::NotFound { nearest, .. }) = refused else {
                    panic!("{refused:?}")
                };
                assert!(nearest.is_some());
            })
            .await,
        );
        listing.time(
            size,
            time(async || {
                let names = registry.tools().map(|(_, tool)| tool.name.as_str().len());
                assert!(names.sum::<usize>() > size);
                assert_eq!(registry.tools().count(), size);
            })
            .await,
        );
        drop(registry);

        let listed = median_time(false, async || {
            let mut client = Client::new(&platform).await;
            let began = Instant::now();
            let bytes = client.list().await;
            let listed = began.elapsed();
            assert_eq!(client.count().await, (size, bytes));
            listed
        });
        first.time(size, listed.await);
        let mut client = Client::new(&platform).await;
        let (count, bytes) = client.count().await;
        assert_eq!(count, size);
        serving.time(size, time(async || assert_eq!(client.list().await, bytes)).await);
        drop(client);
        platform.shutdown().await;
    }
    for curve in [building, finding, calling, refusing, listing, first, serving] {
        report.add(curve);
    }
}

/// The name of a tool by its number.
fn name(number: usize) -> String {
    format!("s{}__tool_{}", number / PER_PLUGIN, number % PER_PLUGIN)
}

/// Writes scripts that have so many tools together, and gives the configuration that loads them.
fn write(folder: &TempDir, tools: usize) -> String {
    let mut scripts = String::new();
    for (i, first) in (0..tools).step_by(PER_PLUGIN).enumerate() {
        let count = PER_PLUGIN.min(tools - first);
        let script = format!(
            "for i in 0..{count} {{ tool(#{{ name: `tool_${{i}}`, description: `Has the number ${{i}}`, \
             schema: #{{ type: \"object\", properties: #{{ text: #{{ type: \"string\" }} }} }} }}, \
             |a| `${{i}}: ${{a.text}}`); }}"
        );
        let path = folder.path().join(format!("s{i}.rhai"));
        fs::write(&path, script).unwrap();
        write!(scripts, "{path:?}, ").unwrap();
    }
    format!("plugins.scripts = [{scripts}]")
}

/// A client of a server in this process.
struct Client {
    input: WriteHalf<DuplexStream>,
    output: BufReader<ReadHalf<DuplexStream>>,
    /// What was answered last.
    answer: String,
}

impl Client {
    /// A client of a server of its own.
    async fn new(platform: &Platform) -> Self {
        let server = Server::new(platform.clone(), Settings::default()).expect("it is made");
        let (ours, theirs) = duplex(PIPE_BYTES);
        tokio::spawn(async move {
            let (output, input) = split(theirs);
            let input_ended = server
                .serve_lines(None, BufReader::new(output), input, std::future::pending())
                .await;
            input_ended.expect("the streams can be read and written");
        });
        let (output, input) = split(ours);
        let mut client = Self {
            input,
            output: BufReader::with_capacity(1 << 16, output),
            answer: String::new(),
        };
        let about = json!({ "name": "curves", "version": "1" });
        client
            .ask(
                "initialize",
                json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about }),
            )
            .await;
        let begun = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        client.write(&begun).await;
        client
    }

    async fn write(&mut self, message: &Value) {
        self.input.write_all(format!("{message}\n").as_bytes()).await.expect("it reads");
    }

    async fn ask(&mut self, method: &str, params: Value) {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.write(&request).await;
        self.answer.clear();
        self.output.read_line(&mut self.answer).await.expect("it answers");
        assert!(
            self.answer.starts_with(r#"{"jsonrpc":"2.0","id":1,"result":"#),
            "{:.200}",
            self.answer
        );
    }

    /// Asks for all pages without reading more of them than where the next one begins, and gives their length.
    async fn list(&mut self) -> usize {
        let (mut cursor, mut bytes) = (None, 0);
        loop {
            self.ask("tools/list", cursor.map_or(json!({}), |cursor| json!({ "cursor": cursor })))
                .await;
            bytes += self.answer.len();
            // It is the last member of a page.
            let end = &self.answer[self.answer.len().saturating_sub(64)..];
            let Some((_, next)) = end.split_once(r#""nextCursor":""#) else { return bytes };
            cursor = next.split_once('"').map(|(cursor, _)| cursor.to_string());
        }
    }

    /// Reads all pages, and gives how many tools they have, and their length.
    async fn count(&mut self) -> (usize, usize) {
        let (mut cursor, mut count, mut bytes) = (Value::Null, 0, 0);
        loop {
            let params = if cursor.is_null() { json!({}) } else { json!({ "cursor": cursor }) };
            self.ask("tools/list", params).await;
            bytes += self.answer.len();
            let page: Value = serde_json::from_str(&self.answer).expect("it is JSON");
            count += page["result"]["tools"].as_array().expect("it is a list").len();
            cursor = page["result"]["nextCursor"].clone();
            if cursor.is_null() {
                return (count, bytes);
            }
        }
    }
}
