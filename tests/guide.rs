//! The guide in `docs/`, followed word for word from an empty folder: every command is run, what it
//! prints is compared, and every listing is written to its file or found in it.
//!
//! In a block of `console`, lines that begin with `$ ` are commands, with continuation lines that
//! begin with `> `; what stands below is what they print, where `…` stands for anything, on a line of
//! its own for any lines. A command that is shown to print an error has to fail, and any other to
//! succeed. The comment `<!-- write: FILE -->` above a listing writes it to a file, and `<!-- shows:
//! FILE -->` finds it in one.
//!
//! `cargo xtask test` says where the compilers are that it needs. Without them the test is listed as
//! ignored.

#![allow(clippy::print_stderr)]

use libtest_mimic::{Arguments, Failed, Trial};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use tempfile::TempDir;

#[path = "it/support.rs"]
#[allow(dead_code)]
mod support;

/// The chapters, in the order of the table of contents.
const CHAPTERS: &[&str] = &[
    "first-tool.md",
    "worlds.md",
    "resources-and-prompts.md",
    "capabilities.md",
    "asking.md",
    "state.md",
    "hooks.md",
    "skills.md",
    "testing.md",
    "five-plugins.md",
    "publishing.md",
    "python.md",
    "javascript.md",
    "languages.md",
    "from-mcp-servers.md",
    "from-scripts.md",
    "serving.md",
    "approving-calls.md",
    "scripts-as-calls.md",
];
/// What stands beside the chapters.
const NOT_CHAPTERS: &[&str] = &["README.md", "performance.md"];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let groups = ["TENON_TOOLCHAINS_NPM", "TENON_TOOLCHAINS_PIP", "TENON_TOOLCHAINS_CARGO"];
    let tools = tenon_tests::installed(&groups);
    // Its Python has the official SDK of MCP.
    let tools = tools.zip(tenon_tests::installed(&["TENON_REAL_SERVERS_PIP"]));
    if tools.is_none() {
        eprintln!(
            "note: not all compilers of other languages are installed, so the guide is not followed; `cargo xtask test` installs them"
        );
    }
    let ignored = tools.is_none();
    let progress = Arc::new(Mutex::new(Progress::default()));
    let chapter = |(index, name): (usize, &&str)| {
        let (progress, tools) = (progress.clone(), tools.clone());
        let name = name.trim_end_matches(".md").replace('-', "_");
        let follow = move || {
            let (tools, servers) = tools.ok_or("no compilers are installed")?;
            let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
            progress.follow_until(index, || GuideUser::new(&tools, &servers))
        };
        Trial::test(format!("{name}_works_word_for_word"), follow).with_ignored_flag(ignored)
    };
    let mut trials: Vec<Trial> = CHAPTERS.iter().enumerate().map(chapter).collect();
    trials.push(Trial::test("its_table_of_contents_has_every_chapter", contents));
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs")
}

/// The chapters are those that are there, and linked in this order.
fn contents() -> Result<(), Failed> {
    let index = fs::read_to_string(docs().join("README.md"))?;
    let links = index.lines().filter_map(|line| line.split_once("](")?.1.split(')').next());
    let links: Vec<&str> = links.filter(|link| CHAPTERS.contains(link)).collect();
    let mut there = Vec::new();
    for entry in fs::read_dir(docs())? {
        there.extend(entry?.file_name().into_string());
    }
    there.retain(|name| name.ends_with(".md") && !NOT_CHAPTERS.contains(&name.as_str()));
    there.sort();
    let mut chapters = CHAPTERS.to_vec();
    assert_eq!(links, chapters, "docs/README.md");
    chapters.sort_unstable();
    assert_eq!(there, chapters);
    Ok(())
}

/// How far the guide was followed. A chapter goes on with what those before it have left.
#[derive(Default)]
struct Progress {
    reader: Option<GuideUser>,
    /// What came of each chapter that was followed, in their order.
    outcomes: Vec<Result<(), String>>,
}

impl Progress {
    /// Follows the chapters that were not followed yet, up to this one, and says what came of it.
    fn follow_until(
        &mut self,
        chapter: usize,
        reader: impl FnOnce() -> Result<GuideUser, Failed>,
    ) -> Result<(), Failed> {
        let reader = match &mut self.reader {
            Some(reader) => reader,
            none => none.insert(reader()?),
        };
        while self.outcomes.len() <= chapter {
            let followed = reader.follow(CHAPTERS[self.outcomes.len()]);
            self.outcomes.push(followed.map_err(|error| error.message().unwrap_or("").to_string()));
        }
        Ok(self.outcomes[chapter].clone()?)
    }
}

/// Somebody who does what the guide says.
struct GuideUser {
    home: TempDir,
    path: String,
    tools: PathBuf,
}

/// Something that the guide says to do, and where.
struct Step<'a> {
    place: String,
    what: What<'a>,
}

enum What<'a> {
    Run { command: String, printed: Vec<&'a str> },
    Write { file: &'a str, text: String },
    Show { file: &'a str, text: String },
}

impl GuideUser {
    fn new(tools: &Path, servers: &Path) -> Result<Self, Failed> {
        let home = TempDir::new()?;
        fs::create_dir(home.path().join("guide"))?;
        let mut folders = vec![
            support::tenon().parent().ok_or("a program is in a folder")?.to_path_buf(),
            servers.join("python/bin"),
            tools.join("python/bin"),
            tools.join("node_modules/.bin"),
            tools.join("bin"),
        ];
        let path = std::env::var_os("PATH").unwrap_or_default();
        folders.extend(std::env::split_paths(&path));
        let path = std::env::join_paths(folders)?.into_string().map_err(|_| "a path is text")?;
        Ok(Self { home, path, tools: tools.to_path_buf() })
    }

    /// Follows a chapter as far as it leads.
    fn follow(&self, chapter: &str) -> Result<(), Failed> {
        let text = fs::read_to_string(docs().join(chapter))?;
        // Each begins where the guide does.
        self.settle("cwd", &self.home.path().join("guide").display().to_string())?;
        for Step { place, what } in steps(chapter, &text)? {
            self.take(&what)
                .map_err(|error| format!("{place}: {}", error.message().unwrap_or("")))?;
        }
        Ok(())
    }

    fn settle(&self, name: &str, value: &str) -> std::io::Result<()> {
        fs::write(self.home.path().join(name), value)
    }

    fn folder(&self) -> Result<PathBuf, Failed> {
        Ok(fs::read_to_string(self.home.path().join("cwd"))?.trim_end().into())
    }

    fn take(&self, what: &What<'_>) -> Result<(), Failed> {
        match what {
            What::Write { file, text } => {
                let path = self.folder()?.join(file);
                fs::create_dir_all(path.parent().ok_or("a file is in a folder")?)?;
                Ok(fs::write(path, text)?)
            }
            What::Show { file, text } => {
                let path = match file.strip_prefix("$TENON_CHECKOUT/") {
                    Some(file) => docs().join("..").join(file),
                    None => self.folder()?.join(file),
                };
                let there = fs::read_to_string(path)?;
                match there.contains(text.trim_end()) {
                    true => Ok(()),
                    false => Err(format!("{file} is\n{there}").into()),
                }
            }
            What::Run { command, printed } => self.run(command, printed),
        }
    }

    fn run(&self, command: &str, printed: &[&str]) -> Result<(), Failed> {
        let home = self.home.path();
        // What a command sets and where it goes stays for the next one.
        let script = format!(
            "set -o pipefail; [ -f {0}/env ] && . {0}/env; cd \"$(cat {0}/cwd)\"\n{command}\n\
             code=$?; pwd > {0}/cwd; export -p > {0}/env; exit $code",
            home.display()
        );
        let mut bash = Command::new("bash");
        bash.args(["-c", &script])
            .env("HOME", home)
            .env("PATH", &self.path)
            .env("NO_COLOR", "1")
            .env("XDG_CONFIG_HOME", home.join("config"))
            .env("XDG_STATE_HOME", home.join("state"))
            .env("XDG_CACHE_HOME", home.join("cache"))
            .env("TENON_CHECKOUT", docs().join("..").canonicalize()?)
            .env("TENON_TOOLCHAINS", &self.tools)
            // What is compiled for one plugin need not be compiled again for the next.
            .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("guide"))
            .env("ZIG_GLOBAL_CACHE_DIR", self.tools.join("zig-cache"))
            // The chapters install the same packages again and again. A registry that does not answer is asked again.
            .env("PIP_CACHE_DIR", self.tools.join("pip-cache"))
            .env("PIP_RETRIES", "10")
            .env("PIP_DISABLE_PIP_VERSION_CHECK", "1")
            .env("npm_config_cache", self.tools.join("npm-cache"))
            .env("npm_config_prefer_offline", "true")
            .env("npm_config_fetch_retries", "5")
            .env("CARGO_TERM_COLOR", "never")
            // All that plugins are made of was needed to build this; which versions a registry has
            // by now is nobody's concern here.
            .env("CARGO_NET_OFFLINE", "true")
            .stdin(Stdio::null());
        for variable in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "RUSTC_WRAPPER", "TENON_LOG"] {
            bash.env_remove(variable);
        }
        // Rust and npm live where they live, whatever HOME is here.
        for (name, folder) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
            if std::env::var_os(name).is_none()
                && let Some(of_user) = std::env::home_dir()
            {
                bash.env(name, of_user.join(folder));
            }
        }
        let output = bash.output()?;
        let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
        write!(said, "{}", String::from_utf8_lossy(&output.stderr))?;
        let is_failure = |line: &&str| line.starts_with("error") || line.starts_with("vetoed by ");
        let fails = printed.iter().any(is_failure);
        if output.status.success() == fails || !is_like(printed, &said) {
            let shown = printed.join("\n");
            return Err(format!(
                "`{command}` ended with {}\n--- it printed\n{said}\n--- the guide shows\n{shown}",
                output.status
            )
            .into());
        }
        Ok(())
    }
}

/// Whether what was printed is what is shown; where nothing is shown, anything may be.
fn is_like(shown: &[&str], printed: &str) -> bool {
    fn lines(shown: &[&str], printed: &[&str]) -> bool {
        match shown {
            [] => printed.is_empty(),
            ["…", rest @ ..] => (0..=printed.len()).any(|from| lines(rest, &printed[from..])),
            [first, rest @ ..] => match printed {
                [line, others @ ..] => parts(first, line) && lines(rest, others),
                [] => false,
            },
        }
    }
    fn parts(shown: &str, printed: &str) -> bool {
        match shown.split_once('…') {
            None => shown == printed,
            Some((before, after)) => printed.strip_prefix(before).is_some_and(|rest| {
                let mut ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
                ends.any(|at| parts(after, &rest[at..]))
            }),
        }
    }
    let printed: Vec<&str> = printed.lines().map(str::trim_end).collect();
    shown.is_empty() || lines(shown, &printed)
}

/// What a chapter says to do.
fn steps<'a>(chapter: &str, text: &'a str) -> Result<Vec<Step<'a>>, Failed> {
    let mut steps = Vec::new();
    let mut lines = text.lines().enumerate();
    let mut directive = None;
    while let Some((number, line)) = lines.next() {
        if let Some(comment) = line.strip_prefix("<!-- ").and_then(|line| line.strip_suffix(" -->"))
        {
            directive = comment.split_once(": ");
            continue;
        }
        let Some(language) = line.strip_prefix("```") else {
            if !line.trim().is_empty() {
                directive = None;
            }
            continue;
        };
        let block: Vec<&str> =
            lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
        let place = format!("docs/{chapter}:{}", number + 1);
        let text = || block.join("\n") + "\n";
        match (language, directive.take()) {
            ("console", _) => commands(&block, &place, &mut steps),
            (_, Some(("write", file))) => {
                steps.push(Step { place, what: What::Write { file, text: text() } });
            }
            (_, Some(("shows", file))) => {
                steps.push(Step { place, what: What::Show { file, text: text() } });
            }
            _ => return Err(format!("{place}: nobody checks this listing").into()),
        }
    }
    Ok(steps)
}

fn commands<'a>(block: &[&'a str], place: &str, steps: &mut Vec<Step<'a>>) {
    for line in block {
        if let Some(command) = line.strip_prefix("$ ") {
            let (place, command) = (place.to_string(), command.to_string());
            steps.push(Step { place, what: What::Run { command, printed: Vec::new() } });
            continue;
        }
        let Some(Step { what: What::Run { command, printed }, .. }) = steps.last_mut() else {
            continue;
        };
        match line.strip_prefix("> ").or_else(|| line.strip_prefix('>')) {
            Some(more) if printed.is_empty() => {
                command.push('\n');
                command.push_str(more);
            }
            _ => printed.push(line.trim_end()),
        }
    }
    // The blank line between two commands is nobody's output.
    for step in steps.iter_mut() {
        if let What::Run { printed, .. } = &mut step.what {
            while printed.last().is_some_and(|line| line.is_empty()) {
                printed.pop();
            }
        }
    }
}
