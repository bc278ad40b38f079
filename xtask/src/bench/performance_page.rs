//! `cargo xtask bench report`: runs the benchmarks, and writes `docs/performance.md` of what they print. Where it is
//! interrupted, the next run on the same commit goes on with the benchmark that it was at. Where benchmarks are named, as in
//! `cargo xtask bench report costs counts`, the parts of the others stay as they are.

use anyhow::{Context, Result, ensure};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::Benchmark;
use crate::{cargo, root};

/// A part of the page.
struct Section {
    title: &'static str,
    /// What is measured, and how.
    about: &'static str,
    benchmark: Benchmark,
}

/// The page, from its top to its end.
const SECTIONS: [Section; 6] = [
    Section {
        title: "Beside the bare libraries",
        about: "The same work is done with Tenon and with the library alone, on the same bytes. The sides take turns, and \
                each figure is the median of many rounds. A ratio is Tenon's figure over the other one: of times less is \
                better, of calls a second more is. Rows without a figure of Tenon are there for comparison. Tenon's side \
                is a whole call: hooks, checks of arguments \
                and result against their schemas, limits, masking of secrets and usage. The figures of `tenon serve` \
                are those of a process of its own beside a server that is written with `rmcp` and has the same tool. \
                Loading a plugin (discover, admit, compile, link) is compared with compiling its component alone, and a \
                whole `tenon call` with `tenon --version`.",
        benchmark: Benchmark::Costs,
    },
    Section {
        title: "Beside other systems",
        about: "Each side does the same with the same 119 bytes of JSON, in turns in one run, as its users write it. \
                A ratio above 1 is slower than Tenon or takes more, one below 1 is faster or takes less.",
        benchmark: Benchmark::Peers,
    },
    Section {
        title: "What authors wait for",
        about: "The greeting that `tenon new` makes in each language. A call is a whole `tenon call`. The first one compiles \
                the component, which is kept. The first save under `tenon dev` builds all dependencies of a plugin in \
                Rust in the other profile.",
        benchmark: Benchmark::Authoring,
    },
    Section {
        title: "How costs grow",
        about: "What is done once at growing sizes. An exponent of 1 is a cost that doubles where the size does, and 0 one \
                that does not depend on it. The exponent is that of the larger half of the sizes, beside the one that \
                is expected.",
        benchmark: Benchmark::Curves,
    },
    Section {
        title: "Instructions and allocations",
        about: "What one thread does on the paths that are taken most often, in the build that tests use, which is not \
                optimized: what counts is how it changes. `cargo xtask counts` compares it with what is written down, and CI \
                fails where it differs by 3 %.",
        benchmark: Benchmark::Counts,
    },
    Section {
        title: "The size of the command",
        about: "What is loaded of the release build.",
        benchmark: Benchmark::Size,
    },
];

impl Section {
    /// What its benchmark is called.
    fn name(&self) -> &'static str {
        self.benchmark.arguments().unwrap_or("costs")
    }

    /// The part of a page that this section is.
    fn of<'a>(&self, page: &'a str) -> Option<&'a str> {
        let (_, rest) = page.split_once(&format!("\n## {}\n", self.title))?;
        let end = rest.find("\n## ").unwrap_or(rest.len());
        Some(rest[..end].trim())
    }
}

/// Runs these benchmarks, or all where none is named, and writes the page.
pub(super) fn run(names: &[String]) -> Result<()> {
    for name in names {
        let is_known = SECTIONS.iter().any(|section| section.name() == name);
        ensure!(is_known, "there is no benchmark `{name}`");
    }
    let path = root().join("docs/performance.md");
    let before = fs::read_to_string(&path).unwrap_or_default();
    let mut page = String::from(
        "# Performance\n\nThis page is what `cargo xtask bench report` has printed, and nothing else. \
         Compare the ratios: the times are those of one machine, and differ from run to run.\n",
    );
    let commit = commit()?;
    let circumstances = circumstances(&commit)?;
    let kept = root().join("target/bench-report").join(&commit);
    for section in SECTIONS {
        let Section { title, about, benchmark } = section;
        let is_run = names.is_empty() || names.iter().any(|name| section.name() == name);
        let text = match is_run {
            true => {
                let (command, printed) = (benchmark.command(), printed(benchmark, &kept)?);
                format!("{about} `{command}` prints it.\n\n{}\n\n{circumstances}", printed.trim())
            }
            false => section.of(&before).context("the page has not all the others")?.to_string(),
        };
        write!(page, "\n## {title}\n\n{text}\n")?;
    }
    fs::write(&path, page).with_context(|| path.display().to_string())?;
    println!("{} is written.", path.display());
    Ok(())
}

/// What a benchmark prints for a page, or has printed on the same commit.
fn printed(benchmark: Benchmark, kept: &Path) -> Result<String> {
    let file = kept.join(benchmark.arguments().unwrap_or("costs")).with_extension("md");
    let is_of_commit = !kept.ends_with(CHANGED);
    if let Some(printed) = fs::read_to_string(&file).ok().filter(|_| is_of_commit) {
        eprintln!("`{}` was run on this commit: {}", benchmark.command(), file.display());
        return Ok(printed);
    }
    let printed = captured(benchmark)?;
    fs::create_dir_all(kept)?;
    fs::write(&file, &printed).with_context(|| file.display().to_string())?;
    Ok(printed)
}

/// What a benchmark prints for a page.
fn captured(benchmark: Benchmark) -> Result<String> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["bench"].into_iter().chain(benchmark.arguments())).arg("--markdown");
    let output = command.stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "{command:?} ended with {}", output.status);
    Ok(String::from_utf8(output.stdout)?)
}

/// In place of a commit, where files differ from all.
const CHANGED: &str = "changed";

/// What is measured is what these name.
const MEASURED: [&str; 3] = ["--", ".", ":!*.md"];

/// The commit that is measured: the last one that changed more than pages.
fn commit() -> Result<String> {
    let git = |arguments: &[&str]| said(Command::new("git").args(arguments).args(MEASURED));
    match &*git(&["status", "--porcelain", "--untracked-files=no"])? {
        "" => git(&["log", "-1", "--abbrev=12", "--format=%h"]),
        _ => Ok(CHANGED.into()),
    }
}

/// What a command says.
fn said(command: &mut Command) -> Result<String> {
    let output = command.current_dir(root()).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
}

/// When, of what and on which machine it was measured.
fn circumstances(commit: &str) -> Result<String> {
    let processors = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        processors.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("unknown", |(_, model)| model);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let lock = said(
        cargo(".", &["tree", "--locked", "--package", "tenon-tests", "--depth=1", "--prefix=none"])
            .stderr(Stdio::null()),
    )?;
    let version = |name: &str| {
        let line = lock.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" v"));
        line.and_then(|rest| rest.split_whitespace().next()).unwrap_or("unknown").to_string()
    };
    let (date, system, compiler) = (
        said(Command::new("date").arg("+%Y-%m-%d"))?,
        said(Command::new("uname").args(["-s", "-r", "-m"]))?,
        said(Command::new("rustc").arg("--version"))?,
    );
    let [wasmtime, rmcp, rhai] = ["wasmtime", "rmcp", "rhai"].map(version);
    Ok(format!(
        "Measured on {date} at commit {commit}, with {cores} × {model}, {system}, {compiler}, wasmtime {wasmtime}, rmcp \
         {rmcp} and Rhai {rhai}."
    ))
}
