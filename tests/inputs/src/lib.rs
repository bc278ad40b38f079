//! Runs what is fuzzed as tests: with the inputs in `fuzz/seeds`, and with what a generator makes of these and
//! of the words in `fuzz/dictionaries`. It depends on nothing, so that every crate can have such tests.

#![allow(clippy::print_stdout)]

use std::fs;
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// For how many seconds each target is run with inputs that nobody has seen. Without it, the inputs
/// are the same each time.
pub const SECONDS: &str = "TENON_FUZZ_SECONDS";

/// How many inputs are made for a target without it.
const INPUTS: usize = 300;

/// What inputs may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputKind {
    /// UTF-8.
    Text,
    /// Any bytes.
    Bytes,
}

/// The folder of the targets.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// Runs a target.
///
/// # Panics
///
/// Where the target does. The input is kept where cargo-fuzz keeps such a one.
pub fn fuzz(name: &str, kind: InputKind, target: impl Fn(&[u8])) {
    let seeds = fs::read_dir(folder().join("seeds").join(name)).expect("there are seeds");
    let mut seeds: Vec<PathBuf> = seeds.map(|seed| seed.expect("it is a seed").path()).collect();
    seeds.sort();
    let seeds: Vec<Vec<u8>> =
        seeds.iter().map(|seed| fs::read(seed).expect("it is a file")).collect();
    seeds.iter().for_each(|seed| check(name, seed, &target));

    let seconds = std::env::var(SECONDS).ok();
    let seconds: Option<u64> = seconds.map(|seconds| seconds.parse().expect("a number"));
    let number = seconds.map_or(0, |_| RandomState::new().hash_one(name));
    let words = words(&folder().join("dictionaries").join(format!("{name}.dict")));
    let mut generator = Generator { number, seeds, words };
    let (begin, mut inputs) = (Instant::now(), 0);
    let goes_on = |inputs| match seconds {
        Some(seconds) => begin.elapsed() < Duration::from_secs(seconds),
        None => inputs < INPUTS,
    };
    while goes_on(inputs) {
        let input = generator.input();
        match kind {
            InputKind::Text => check(name, String::from_utf8_lossy(&input).as_bytes(), &target),
            InputKind::Bytes => check(name, &input, &target),
        }
        inputs += 1;
    }
    println!("{name}: {inputs} inputs in {:?}", begin.elapsed());
}

fn check(name: &str, input: &[u8], target: impl Fn(&[u8])) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| target(input))) {
        let kept = folder().join("artifacts").join(name);
        fs::create_dir_all(&kept).expect("a folder can be made");
        let mut hasher = DefaultHasher::new();
        input.hash(&mut hasher);
        let kept = kept.join(format!("{:016x}", hasher.finish()));
        fs::write(&kept, input).expect("a file can be written");
        println!("input: {}\n{}", kept.display(), String::from_utf8_lossy(input));
        resume_unwind(panic);
    }
}

/// The words of a dictionary in libFuzzer's format: one in quotes on a line, `\xAB` for a byte, or a comment.
/// cargo-fuzz does not start with any other line, so none is passed over here.
fn words(path: &Path) -> Vec<Vec<u8>> {
    let text = fs::read_to_string(path).expect("there is a dictionary");
    let word = |(number, line): (usize, &str)| {
        let place = format!("{}:{}", path.display(), number + 1);
        let is_visible = line.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
        let quoted = line.strip_prefix('"').and_then(|word| word.strip_suffix('"'));
        let quoted = quoted.filter(|word| is_visible && !word.is_empty());
        unescaped(quoted.unwrap_or_else(|| panic!("{place} is no word in quotes: {line:?}")))
    };
    let lines = text.split_terminator('\n').enumerate();
    lines.filter(|(_, line)| !line.starts_with('#')).map(word).collect()
}

fn unescaped(word: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), word.bytes());
    while let Some(byte) = rest.next() {
        bytes.push(match (byte, byte == b'\\') {
            (byte, false) => byte,
            (_, true) => match rest.next().expect("a backslash is before something") {
                b'x' => {
                    let mut digit = || rest.next().expect("there are two digits");
                    let digits = [digit(), digit()];
                    let digits = str::from_utf8(&digits).expect("they are digits");
                    u8::from_str_radix(digits, 16).expect("they are digits")
                }
                escaped => escaped,
            },
        });
    }
    bytes
}

/// Makes inputs of seeds and words.
struct Generator {
    number: u64,
    seeds: Vec<Vec<u8>>,
    words: Vec<Vec<u8>>,
}

impl Generator {
    /// A number below another. This is SplitMix64.
    fn below(&mut self, end: usize) -> usize {
        self.number = self.number.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.number;
        number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((number ^ (number >> 31)) % end.max(1) as u64) as usize
    }

    fn word(&mut self) -> Vec<u8> {
        let word = self.below(self.words.len());
        self.words[word].clone()
    }

    fn seed(&mut self) -> Vec<u8> {
        let seed = self.below(self.seeds.len());
        self.seeds[seed].clone()
    }

    fn input(&mut self) -> Vec<u8> {
        let mut input = match self.below(4) {
            0 => (0..self.below(60)).flat_map(|_| self.word()).collect(),
            _ => self.seed(),
        };
        for _ in 0..=self.below(8) {
            self.change(&mut input);
        }
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.below(input.len() + 1);
        let end = input.len().min(at + self.below(20));
        match self.below(6) {
            0 => drop(input.drain(at..end)),
            1 => drop(input.splice(at..at, self.word())),
            2 => drop(input.splice(at..end, self.word())),
            3 => drop(input.splice(at..at, input[at..end].to_vec())),
            4 => {
                let other = self.seed();
                let from = self.below(other.len() + 1);
                drop(input.splice(at.., other[from..].iter().copied()));
            }
            _ => {
                let byte = self.below(128) as u8;
                drop(input.splice(at..at, [byte]));
            }
        }
    }
}
