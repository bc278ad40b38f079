//! `cargo xtask mutants`: which changes of the code that decides no unit test notices.
//!
//! cargo-mutants says which changes there are, each with its place and the text that goes there. It would build
//! the host anew for each, which takes a minute; a thousand of them take a day. So they are all woven
//! into one copy of the host and of what is below it, each behind a condition that is true when a variable names its
//! number, and what is built once runs as any of them. What cannot be woven in, as rustc says, is left out.
//!
//! A run without any says which test reaches which place. Then each runs with the tests that reach it,
//! and in the end, where these notice nothing, with all. One that no test notices has survived. It must stand
//! in `xtask/survivors.toml`, with the reason why nothing is lost by that.

mod weave;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::{cargo, install, on_all_cores, root, run};

/// Names the change to run as.
const MUTANT: &str = "TENON_MUTANT";

/// Names the file in which it is noted what a test reaches.
const REACHED: &str = "TENON_MUTANTS_REACHED";

/// How long a few tests may take with a change: one that makes them loop is noticed by that.
const TIME: Duration = Duration::from_secs(20);

/// How long all tests may.
const TIME_OF_ALL: Duration = Duration::from_secs(150);

/// How many times as long they may take as without the change, where that is longer: on a machine that is
/// busy they take long without looping.
const TIMES: u32 = 10;

/// How many of 100 changes have to compile: if fewer do, it is the weaving that is wrong.
const MIN_WOVEN: usize = 70;

/// The most data of a process, in KiB. The stacks of threads for scripts count as a whole, and each test has some: with less,
/// tests fail that begin at once.
const DATA: &str = "32000000";

/// Runs what follows within that. Where a change has it take all memory there is, it is what the system ends.
const WITHIN_DATA: &str =
    "echo 1000 2>&- >/proc/self/oom_score_adj; ulimit -d \"$1\" && shift && exec \"$@\"";

/// The folders that are copied, and what they are called in the copy. Cargo knows a package of a workspace by its
/// folder: under the same name, it would take what is built there for what is built here.
const COPIES: [(&str, &str); 2] = [("host", "woven"), ("serve", "woven-serve")];

/// The crates that are changed, by their folders, and their packages.
const CRATES: [(&str, &str); 4] = [
    ("host/types", "tenon-types"),
    ("host/config", "tenon-config"),
    ("host", "tenon-host"),
    ("serve", "tenon-serve"),
];

/// What cargo-mutants says of a change.
#[derive(Debug, Clone, Deserialize)]
struct Mutant {
    file: String,
    name: String,
    genre: String,
    replacement: String,
    span: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
struct Span {
    start: Position,
    end: Position,
}

/// Lines and columns are counted from one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
struct Position {
    line: usize,
    column: usize,
}

/// The committed list.
#[derive(Deserialize)]
struct Survivors {
    #[serde(default)]
    survivor: Vec<AllowedSurvivor>,
}

/// One that may survive.
#[derive(Deserialize)]
struct AllowedSurvivor {
    #[serde(flatten)]
    key: MutantKey,
    /// Why nothing is lost.
    reason: String,
}

/// What tells a change from all others, and stays the same when lines are added elsewhere.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
struct MutantKey {
    /// What cargo-mutants calls it, without the line and the column.
    mutant: String,
    /// The line of code that it is on.
    line: String,
    /// Which one it is of those of a file that have the same name and such a line, counted from one.
    #[serde(default = "first")]
    number: usize,
}

fn first() -> usize {
    1
}

impl fmt::Display for MutantKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mutant, line, number } = self;
        match number {
            1 => write!(f, "{mutant}\n  {line}"),
            _ => write!(f, "{mutant}, number {number} of that name\n  {line}"),
        }
    }
}

impl MutantKey {
    /// The entry of the committed list, for somebody to give a reason.
    fn entry(&self) -> String {
        let Self { mutant, line, number } = self;
        let number = if *number > 1 { format!("number = {number}\n") } else { String::new() };
        format!("[[survivor]]\nmutant = {mutant:?}\nline = {line:?}\n{number}reason = \"\"\n")
    }
}

/// The keys of all changes.
fn keys(all: &[Mutant], read: impl Fn(&str) -> Result<String>) -> Result<Vec<MutantKey>> {
    let mut in_order: Vec<usize> = (0..all.len()).collect();
    in_order.sort_by_key(|number| (&all[*number].file, all[*number].span));
    let mut keys: Vec<Option<MutantKey>> = vec![None; all.len()];
    let mut counts = BTreeMap::<(String, String), usize>::new();
    let (mut file, mut text) = ("", String::new());
    for place in in_order {
        let mutant = &all[place];
        if file != mutant.file {
            (file, text) = (&mutant.file, read(&mutant.file)?);
        }
        let (_, what) = mutant.name.split_once(": ").unwrap_or(("", &mutant.name));
        let line = text.lines().nth(mutant.span.start.line - 1).unwrap_or_default().trim();
        let (mutant, line) = (format!("{file}: {what}"), line.to_string());
        let count = counts.entry((mutant.clone(), line.clone())).or_default();
        *count += 1;
        keys[place] = Some(MutantKey { mutant, line, number: *count });
    }
    Ok(keys.into_iter().flatten().collect())
}

pub(crate) fn run_task(arguments: Vec<String>) -> Result<()> {
    let mut sample = None;
    let mut files = Vec::new();
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        match &*argument {
            "--sample" => {
                let number = arguments.next().context("`--sample` has no number")?;
                let problem = || format!("`{number}` is no number");
                sample = Some(number.parse::<usize>().with_context(problem)?);
            }
            _ => files.push(argument),
        }
    }
    let began = Instant::now();
    let all = listed(&install::mutants()?)?;
    check_globs(&all)?;
    let tree = Tree::new()?;
    let (woven, programs) = tree.build(&all)?;
    eprintln!("{} of {} changes are woven in, after {:?}", woven.len(), all.len(), began.elapsed());
    ensure!(
        woven.len() * 100 >= all.len() * MIN_WOVEN,
        "{} of {} changes do not compile",
        all.len() - woven.len(),
        all.len()
    );
    let mut reached = Vec::new();
    for program in &programs {
        reached.push(program.reached(&tree.folder.join("reached"))?);
    }
    let mut chosen: Vec<usize> = woven.iter().copied().collect();
    chosen.retain(|number| {
        files.is_empty() || files.iter().any(|file| all[*number].file.ends_with(&**file))
    });
    if let Some(sample) = sample {
        let commit =
            Command::new("git").args(["rev-parse", "HEAD"]).current_dir(root()).output()?;
        chosen.sort_by_cached_key(|number| {
            let mut hasher = DefaultHasher::new();
            (&commit.stdout, &all[*number].name).hash(&mut hasher);
            hasher.finish()
        });
        chosen.truncate(sample);
    }
    let survivors = survivors(&programs, &chosen, &reached)?;
    eprintln!("{} changes were tried, after {:?}", chosen.len(), began.elapsed());
    compare(&all, &woven, &chosen, &survivors, sample.is_none())
}

/// All changes of the files that `.cargo/mutants.toml` names.
fn listed(cargo_mutants: &Path) -> Result<Vec<Mutant>> {
    let mut command = Command::new(cargo_mutants);
    command.args(["mutants", "--list", "--json"]);
    command.args(CRATES.iter().flat_map(|(_, package)| ["--package", *package]));
    let output = command.current_dir(root()).stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "{command:?} ended with {}", output.status);
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Checks that each of the files that are to be changed is there.
fn check_globs(all: &[Mutant]) -> Result<()> {
    #[derive(Deserialize)]
    struct Configuration {
        examine_globs: Vec<String>,
    }
    let text = fs::read_to_string(root().join(".cargo/mutants.toml"))?;
    let Configuration { examine_globs } = toml::from_str(&text)?;
    for glob in examine_globs {
        // There is one `*` at most.
        let (begin, end) = glob.split_once('*').unwrap_or((&glob, ""));
        let is_of = |mutant: &Mutant| mutant.file.starts_with(begin) && mutant.file.ends_with(end);
        ensure!(all.iter().any(is_of), "`{glob}` of .cargo/mutants.toml names nothing to change");
    }
    Ok(())
}

/// Compares what has survived with what may.
fn compare(
    all: &[Mutant],
    woven: &BTreeSet<usize>,
    chosen: &[usize],
    survivors: &BTreeSet<usize>,
    is_whole: bool,
) -> Result<()> {
    let path = root().join("xtask/survivors.toml");
    let known: Survivors = toml::from_str(&fs::read_to_string(&path)?)?;
    if let Some(survivor) = known.survivor.iter().find(|known| known.reason.trim().is_empty()) {
        bail!("{} has no reason in {}", survivor.key, path.display());
    }
    let keys = keys(all, |file| Ok(fs::read_to_string(root().join(file))?))?;
    let is_known = |key: &MutantKey| known.survivor.iter().any(|known| known.key == *key);
    let mut problems = 0;
    let mut found = BTreeSet::new();
    for number in survivors {
        let key = &keys[*number];
        if !is_known(key) {
            eprintln!("no test notices: {}\n\n{}", all[*number].name, key.entry());
            problems += 1;
        }
        found.insert(key);
    }
    let tried: BTreeSet<&MutantKey> = chosen.iter().map(|number| &keys[*number]).collect();
    let all_tried = chosen.len() == woven.len();
    for AllowedSurvivor { key, .. } in known.survivor.iter().filter(|_| all_tried) {
        if !tried.contains(key) {
            eprintln!("there is no such change any more: {key}");
            problems += 1;
        }
    }
    // This is no problem: a busy machine may have taken too long for the tests.
    for AllowedSurvivor { key, .. } in &known.survivor {
        if tried.contains(key) && !found.contains(key) {
            eprintln!("a test notices it by now, or took too long: {key}");
        }
    }
    println!(
        "mutants: {} passed, {problems} failed, {} skipped; {} more do not compile",
        chosen.len() - survivors.len(),
        found.iter().filter(|key| is_known(key)).count(),
        all.len() - woven.len()
    );
    ensure!(problems == 0, "{problems} changes are not as {} says", path.display());
    if is_whole && tried.is_empty() {
        bail!("there is nothing to try");
    }
    Ok(())
}

/// The copy of the workspace: what is changed is copied, and all else is linked to.
struct Tree {
    folder: PathBuf,
}

impl Tree {
    fn new() -> Result<Self> {
        let folder = root().join("target/mutants");
        let tree = folder.join("tree");
        fs::create_dir_all(&tree)?;
        for entry in fs::read_dir(root())? {
            let entry = entry?;
            let name = entry.file_name();
            let is_copied = COPIES.iter().any(|(folder, _)| name == *folder);
            if is_copied || ["target", ".git"].iter().any(|left| name == *left) {
                continue;
            }
            let place = tree.join(&name);
            if entry.file_type()?.is_dir() {
                if !place.is_symlink() {
                    link(&entry.path(), &place)?;
                }
            } else if name != "Cargo.toml" {
                write(&place, &fs::read(entry.path())?)?;
            }
        }
        let mut manifest = fs::read_to_string(root().join("Cargo.toml"))?;
        for (folder, name) in COPIES {
            copy(&root().join(folder), &tree.join(name))?;
            for end in ["/", "\""] {
                manifest = manifest.replace(&format!("\"{folder}{end}"), &format!("\"{name}{end}"));
            }
        }
        write(&tree.join("Cargo.toml"), manifest.as_bytes())?;
        Ok(Self { folder })
    }

    /// Cargo, for the crates that are changed, with the features that the whole workspace asks for, as `tenon-tests`
    /// does: what
    /// it depends on is there from other tests.
    fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = cargo(".", arguments);
        command
            .args(CRATES.iter().flat_map(|(_, package)| ["--package", *package]))
            .args(["--package", "tenon-tests", "--lib", "--locked"])
            .arg("--message-format=json")
            .current_dir(self.folder.join("tree"))
            .env("CARGO_TARGET_DIR", root().join("target"))
            .stdin(Stdio::null());
        command
    }

    /// Builds the unit tests with as many of these changes as compile. Gives which these are.
    fn build(&self, all: &[Mutant]) -> Result<(BTreeSet<usize>, Vec<Program>)> {
        let files: BTreeSet<&str> = all.iter().map(|mutant| &*mutant.file).collect();
        let mut left: BTreeSet<usize> = (0..all.len()).collect();
        let tree = self.folder.join("tree");
        for (folder, _) in CRATES {
            let library = format!("{folder}/src/lib.rs");
            let text = fs::read_to_string(root().join(&library))?;
            let text = format!("{text}\n{}", weave::module(MUTANT, REACHED, all.len()));
            write(&tree.join(in_copy(&library)), text.as_bytes())?;
        }
        loop {
            let mut woven = BTreeMap::new();
            for file in &files {
                let source = fs::read_to_string(root().join(file))?;
                let text = weave::woven(file, &source, all, &mut left)?;
                let place = in_copy(file);
                write(&tree.join(&place), text.as_bytes())?;
                woven.insert(place, text);
            }
            let mut check = self.cargo(&["check", "--profile", "test"]);
            let messages = messages(&mut check)?;
            let mut wrong = BTreeSet::new();
            for error in messages.errors {
                let about = |(file, bytes): &(String, Range<usize>)| {
                    let text = woven.get(&**file)?;
                    Some(weave::around(text, bytes)).filter(|numbers| !numbers.is_empty())
                };
                let within = |(file, bytes): &(String, Range<usize>)| {
                    let text = woven.get(&**file)?;
                    Some(weave::returned(text, bytes)).filter(|numbers| !numbers.is_empty())
                };
                let places = &error.places;
                match places.iter().find_map(about).or_else(|| places.iter().find_map(within)) {
                    Some(numbers) => wrong.extend(numbers),
                    None => eprintln!("{}", error.text),
                }
            }
            if messages.is_done {
                break;
            }
            let before = left.len();
            left.retain(|number| !wrong.contains(number));
            ensure!(left.len() < before, "what is woven does not compile");
            eprintln!("{} changes do not compile", all.len() - left.len());
        }
        let mut messages = messages(&mut self.cargo(&["test", "--no-run"]))?;
        let program = |(folder, package): (&'static str, &str)| {
            let path = messages.programs.remove(&package.replace('-', "_"));
            let path = path.with_context(|| format!("there is no program of {package}'s tests"))?;
            Ok(Program { path, folder })
        };
        let programs: Result<Vec<Program>> = CRATES.into_iter().map(program).collect();
        Ok((left, programs?))
    }
}

/// The place in the copy of a file that is changed.
fn in_copy(file: &str) -> String {
    let copied = COPIES.iter().find_map(|(folder, name)| {
        let rest = file.strip_prefix(folder).filter(|rest| rest.starts_with('/'))?;
        Some(format!("{name}{rest}"))
    });
    copied.expect("what is changed is in a folder that is copied")
}

#[cfg(unix)]
fn link(to: &Path, place: &Path) -> Result<()> {
    Ok(std::os::unix::fs::symlink(to, place)?)
}

#[cfg(not(unix))]
fn link(to: &Path, place: &Path) -> Result<()> {
    copy(to, place)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    // What is a folder now may have been a link before: nothing is written or removed behind it.
    if to.is_symlink() {
        fs::remove_file(to)?;
    }
    fs::create_dir_all(to)?;
    let mut known = BTreeSet::new();
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let place = to.join(entry.file_name());
        known.insert(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_symlink() {
            // It leads to what is linked to here, too.
            if !place.is_symlink() {
                link(&fs::read_link(entry.path())?, &place)?;
            }
        } else if kind.is_dir() {
            copy(&entry.path(), &place)?;
        } else {
            write(&place, &fs::read(entry.path())?)?;
        }
    }
    for entry in fs::read_dir(to)? {
        let entry = entry?;
        if !known.contains(&entry.file_name()) && entry.file_type()?.is_file() {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Writes a file where it is not as it is: nothing is built again for it.
fn write(path: &Path, content: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|there| there == content) {
        return Ok(());
    }
    fs::write(path, content).with_context(|| path.display().to_string())
}

/// What cargo has said.
#[derive(Default)]
struct Messages {
    errors: Vec<BuildError>,
    /// The programs of tests, by the names of the libraries.
    programs: BTreeMap<String, PathBuf>,
    is_done: bool,
}

/// What is wrong with the code.
struct BuildError {
    /// The files and places that it is about, the first before all others.
    places: Vec<(String, Range<usize>)>,
    text: String,
}

fn messages(command: &mut Command) -> Result<Messages> {
    let output = command.stderr(Stdio::inherit()).output()?;
    let mut messages = Messages { is_done: output.status.success(), ..Messages::default() };
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Ok(message) = serde_json::from_str::<serde_json::Value>(line) else { continue };
        let target = message["target"]["name"].as_str();
        if let (Some(target), Some(program)) = (target, message["executable"].as_str()) {
            messages.programs.insert(target.into(), program.into());
        }
        let message = &message["message"];
        if message["level"] != "error" {
            continue;
        }
        let text = message["rendered"].as_str().unwrap_or_default();
        // What it is about, and then what it names besides.
        let spans = message["spans"].as_array().into_iter().flatten();
        let (first, others): (Vec<_>, Vec<_>) = spans.partition(|span| span["is_primary"] == true);
        let place = |span: &serde_json::Value| {
            let number = |key: &str| span[key].as_u64().unwrap_or_default() as usize;
            let file = span["file_name"].as_str().unwrap_or_default();
            (file.to_string(), number("byte_start")..number("byte_end"))
        };
        let places: Vec<_> = first.into_iter().chain(others).map(place).collect();
        if !places.is_empty() {
            messages.errors.push(BuildError { places, text: text.into() });
        }
    }
    Ok(messages)
}

/// The unit tests of a crate, with all changes in them and in what they are linked with.
struct Program {
    path: PathBuf,
    /// The crate's folder.
    folder: &'static str,
}

/// Which tests reach a change.
#[derive(Default)]
struct Reached {
    tests: BTreeMap<usize, BTreeSet<String>>,
    /// Those that are reached by threads of which nobody knows whose they are.
    by_others: BTreeSet<usize>,
}

impl Program {
    /// The command in which memory has an end.
    fn command(&self) -> Command {
        let mut command = Command::new("sh");
        command
            .args(["-c", WITHIN_DATA, "sh", DATA])
            .arg(&self.path)
            .env_remove(MUTANT)
            .env_remove(REACHED)
            .env_remove("RUST_BACKTRACE")
            .current_dir(root().join(self.folder))
            .stdin(Stdio::null());
        command
    }

    /// Runs all tests without any change.
    fn reached(&self, file: &Path) -> Result<Reached> {
        let _ = fs::remove_file(file);
        run(self.command().args(["--quiet", "--test-threads=3"]).env(REACHED, file))
            .context("tests fail without any change")?;
        let mut reached = Reached::default();
        let listed = self.command().args(["--list", "--format=terse"]).output()?.stdout;
        let listed = String::from_utf8(listed)?;
        let tests: BTreeSet<&str> =
            listed.lines().filter_map(|line| line.strip_suffix(": test")).collect();
        for line in fs::read_to_string(file)?.lines() {
            let (number, thread) = line.split_once(' ').context("it is no line of it")?;
            let number = number.parse()?;
            match tests.get(thread) {
                Some(test) => {
                    reached.tests.entry(number).or_default().insert(test.to_string());
                }
                None => drop(reached.by_others.insert(number)),
            }
        }
        Ok(reached)
    }

    /// Whether a test notices a change.
    fn notices(&self, number: usize, reached: &Reached) -> Result<bool> {
        if let Some(tests) = reached.tests.get(&number)
            && self.fails(number, Some(tests))?
        {
            return Ok(true);
        }
        // A test may notice it that does not reach it on its own thread.
        Ok(reached.by_others.contains(&number) && self.fails(number, None)?)
    }

    /// Whether a test fails with a change: one of these, or of all. So does one that takes too long.
    fn fails(&self, number: usize, tests: Option<&BTreeSet<String>>) -> Result<bool> {
        let most = if tests.is_some() { TIME } else { TIME_OF_ALL };
        if let Some(passes) = self.passes(Some(number), tests, most)? {
            return Ok(!passes);
        }
        // It may be the machine that takes long.
        let began = Instant::now();
        self.passes(None, tests, Duration::MAX)?;
        let time = began.elapsed() * TIMES;
        let passes = match time > most {
            true => self.passes(Some(number), tests, time)?,
            false => None,
        };
        Ok(passes != Some(true))
    }

    /// Whether tests pass, with a change or without any; nothing where they take longer than this.
    fn passes(
        &self,
        number: Option<usize>,
        tests: Option<&BTreeSet<String>>,
        time: Duration,
    ) -> Result<Option<bool>> {
        let mut command = self.command();
        command.arg("--quiet");
        if let Some(number) = number {
            command.env(MUTANT, number.to_string());
        }
        if let Some(tests) = tests {
            command.arg("--exact").args(tests);
        }
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let began = Instant::now();
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(Some(status.success()));
            }
            if began.elapsed() > time {
                child.kill()?;
                child.wait()?;
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Which of these changes no test notices.
fn survivors(
    programs: &[Program],
    chosen: &[usize],
    reached: &[Reached],
) -> Result<BTreeSet<usize>> {
    let survivors = Mutex::new(BTreeSet::new());
    on_all_cores(chosen, |&number| {
        let mut is_noticed = false;
        for (program, reached) in programs.iter().zip(reached) {
            is_noticed = is_noticed || program.notices(number, reached)?;
        }
        if !is_noticed {
            survivors.lock().expect("nobody panicked").insert(number);
        }
        Ok(())
    })?;
    Ok(survivors.into_inner().expect("nobody panicked"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_one_name_on_such_a_line_have_keys_of_their_own() {
        let text = "if a < b && b < c {\n}\nif c < d {\n}\nif c < d {\n}\n";
        let at = |line: usize, column: usize| {
            let start = Position { line, column };
            Mutant {
                file: "a.rs".into(),
                name: format!("a.rs:{line}:{column}: replace < with <="),
                genre: String::new(),
                replacement: String::new(),
                span: Span { start, end: Position { line, column: column + 1 } },
            }
        };
        let check = |all: &[Mutant], expected: &[(&str, usize)]| {
            let keys = keys(all, |_| Ok(text.into())).unwrap();
            let keys: Vec<_> = keys.iter().map(|key| (&*key.line, key.number)).collect();
            assert_eq!(keys, expected);
        };
        let (both, c_d) = ("if a < b && b < c {", "if c < d {");
        check(&[at(1, 6), at(1, 15)], &[(both, 1), (both, 2)]);
        // Nor does it matter in which order they are listed.
        check(&[at(1, 15), at(3, 6), at(1, 6)], &[(both, 2), (c_d, 1), (both, 1)]);
        check(&[at(3, 6), at(5, 6)], &[(c_d, 1), (c_d, 2)]);
    }

    #[test]
    fn an_entry_is_read_as_it_is_printed() {
        for number in [1, 2] {
            let key = MutantKey {
                mutant: "a.rs: replace < with <=".into(),
                line: "\"a\" <".into(),
                number,
            };
            let read: Survivors = toml::from_str(&key.entry()).unwrap();
            assert_eq!(read.survivor[0].key, key);
        }
    }
}
