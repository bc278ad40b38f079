//! By the number of plugins: building a platform from the cache and ending it, listing what there is, finding and calling
//! one plugin, and memory. The first of the scripts has a hook before calls of tools.

use serde_json::json;
use std::fmt::Write as _;
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tenon_host::{Config, HostEnvironment, Platform};

use crate::curve::{Curve, CurveReport};
use crate::guests;
use crate::support::{assert_ready, call, median_time, time};

/// Names the folder whose plugins a process of its own is to load, to measure its memory.
pub(crate) const MEASURE: &str = "TENON_BENCH_CURVES_MEMORY";

/// The sizes of a folder half of whose plugins are components. Compiling more would take minutes, and so much code a
/// gigabyte of the disk.
const MIXED: &[usize] = &[1, 10, 100, 500, 1_000];

/// The sizes of a folder of scripts.
const SCRIPTS: &[usize] = &[1, 10, 100, 500, 1_000, 5_000];

/// The sizes of a folder of scripts each of which has a secret among its settings.
const SECRETS: &[usize] = &[1, 10, 100, 500, 1_000];

/// After how long a compiled component is known again by its times.
const KNOWN_AFTER: Duration = Duration::from_secs(4);

const OF: &str = "plugins";

pub(crate) async fn all(report: &mut CurveReport) {
    let wasm = fs::read(guests::HELLO).expect("the guest was built");
    let plugins = |wasm, has_secrets| {
        let folder = TempDir::new().unwrap();
        fs::create_dir(folder.path().join("plugins")).unwrap();
        Plugins { folder, wasm, has_secrets, count: 0 }
    };
    grow(report, "half of them components", plugins(Some(&wasm), false), MIXED).await;
    grow(report, "scripts", plugins(None, false), SCRIPTS).await;
    grow(report, "scripts with a secret each", plugins(None, true), SECRETS).await;
}

/// A folder of plugins that grows.
struct Plugins<'a> {
    folder: TempDir,
    /// A component, where every other plugin is one.
    wasm: Option<&'a [u8]>,
    has_secrets: bool,
    count: usize,
}

impl Plugins<'_> {
    /// Adds plugins until there are so many.
    fn grow(&mut self, count: usize) {
        for i in self.count..count {
            let plugin = self.folder.path().join(format!("plugins/p{i}"));
            fs::create_dir_all(&plugin).unwrap();
            let (kind, code) = match self.wasm.filter(|_| i % 2 == 0) {
                // Each component is another one.
                Some(wasm) => {
                    ("wasm", [wasm, &[0, 5, 1, b'v', (i >> 8) as u8, i as u8, 0]].concat())
                }
                None => {
                    let tool = format!(
                        "tool(#{{ name: \"number\", description: \"Has a number\" }}, |a| \"{i}\");"
                    );
                    let hook = "fn BeforeToolCall(context) { context.arguments.seen = true; }";
                    ("rhai", if i == 0 { format!("{tool}\n{hook}") } else { tool }.into_bytes())
                }
            };
            let manifest =
                format!("plugin.id = \"p{i}\"\nruntime = {{ kind = {kind:?}, path = \"code\" }}\n");
            fs::write(plugin.join("plugin.toml"), manifest).unwrap();
            fs::write(plugin.join("code"), code).unwrap();
        }
        self.count = count;
        let mut config = format!("plugins.folders = [{:?}]\n", self.folder.path().join("plugins"));
        for i in (0..count).filter(|_| self.has_secrets) {
            writeln!(config, "settings.p{i}.token = \"secret-{i:05}-of-this-plugin\"").unwrap();
        }
        fs::write(self.folder.path().join("tenon.toml"), config).unwrap();
    }

    async fn build(&self) -> Platform {
        build(self.folder.path()).await
    }

    /// The memory in bytes that a process of its own has written to when it has loaded the plugins, where the system tells.
    fn written(&self) -> Option<f64> {
        let bench = std::env::current_exe().expect("a program has a path");
        let output = Command::new(bench).env(MEASURE, self.folder.path()).output();
        let output = output.expect("it starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().parse().ok()
    }
}

async fn build(folder: &Path) -> Platform {
    let cache = Some(folder.join("cache"));
    let host_environment = HostEnvironment { cache, ..HostEnvironment::default() };
    let config = Config::read(folder.join("tenon.toml")).expect("the configuration is read");
    let builder = Platform::builder().host_environment(host_environment).config(config);
    let platform = builder.build().await.expect("the platform is built");
    assert_ready(&platform);
    platform
}

async fn grow(report: &mut CurveReport, kinds: &str, mut plugins: Plugins<'_>, sizes: &[usize]) {
    let curve =
        |what: &str, exponent, reason| Curve::new(format!("{what}, {kinds}"), OF, exponent, reason);
    let mut building =
        curve("platform from the cache", 1.0, "each plugin is taken through the steps once");
    let mut ending = curve("end of a platform", 1.0, "each plugin is let go once");
    let mut listing = curve("list of all tools", 1.0, "each is visited once");
    let mut finding = curve("one plugin by its id", 0.0, "the others do not matter");
    let called =
        if plugins.wasm.is_some() { "call of one tool" } else { "call of one tool, with a hook" };
    let mut calling = curve(called, 0.0, "the others do not matter");
    let mut memory = curve("memory of a process", 1.0, "each plugin keeps its own").of_memory();

    plugins.grow(0);
    let base = plugins.written();
    for &size in sizes {
        plugins.grow(size);
        if plugins.wasm.is_some() {
            plugins.build().await.shutdown().await;
            tokio::time::sleep(KNOWN_AFTER).await;
        }
        plugins.build().await.shutdown().await;

        let mut ends = Vec::new();
        let built = median_time(size >= 1_000, async || {
            let began = Instant::now();
            let platform = plugins.build().await;
            let built = began.elapsed();
            assert_eq!(platform.registry().plugins().len(), size);
            let began = Instant::now();
            platform.shutdown().await;
            ends.push(began.elapsed());
            built
        });
        building.time(size, built.await);
        ends.sort_unstable();
        ending.time(size, ends[ends.len() / 2]);

        let platform = plugins.build().await;
        let registry = platform.registry();
        listing.time(
            size,
            time(async || {
                let names = registry.tools().map(|(plugin, tool)| {
                    black_box(plugin.id());
                    tool.name.as_str().len()
                });
                assert!(names.sum::<usize>() >= size);
                assert_eq!(registry.tools().count(), size);
            })
            .await,
        );
        let last = format!("p{}", size - 1);
        finding.time(
            size,
            time(async || assert_eq!(**registry.plugin(&last).expect("it is there").id(), *last))
                .await,
        );
        let called = match plugins.wasm {
            Some(_) => {
                time(async || {
                    call(&platform, "p0__greet", json!({ "name": "Ada" }), "Hello, Ada!").await;
                })
                .await
            }
            None => {
                let (tool, number) = (format!("{last}__number"), (size - 1).to_string());
                time(async || call(&platform, &tool, json!({}), &number).await).await
            }
        };
        calling.time(size, called);
        drop(registry);
        platform.shutdown().await;

        if let (Some(base), Some(written)) = (base, plugins.written()) {
            memory.memory(size, (written - base).max(0.0));
        }
    }
    let memory = base.map(|_| memory);
    for curve in [building, ending, listing, finding, calling].into_iter().chain(memory) {
        report.add(curve);
    }
}

/// Loads the plugins of a folder, and prints the memory in bytes that this process has written to.
pub(crate) async fn print_memory(folder: &Path) {
    let platform = build(folder).await;
    let Ok(status) = fs::read_to_string("/proc/self/smaps_rollup") else { return };
    // What of files is private counts as written to as well, as long as a file has just been written.
    let line = status.lines().find_map(|line| line.strip_prefix("Anonymous:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    if let Some(kib) = kib {
        println!("{}", kib << 10);
    }
    platform.shutdown().await;
}
