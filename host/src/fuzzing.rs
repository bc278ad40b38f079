//! What is fuzzed: functions that take any bytes, and panic where the host and a model of it
//! disagree. Each stands beside what it is about.
//!
//! They are run in two ways. `fuzz/` has them as targets of cargo-fuzz, which finds its way through
//! the code by what an input reaches. The tests here run them with the inputs in `fuzz/seeds`, and
//! with what a generator makes of these; they need no other build than all tests do.

use crate::{capability, manifest, schema};

/// Something to run with any bytes.
pub type Target = fn(&[u8]);

/// What there is, by its name.
pub const TARGETS: [(&str, Target); 5] = [
    ("json_schema", |data| with_text(data, schema::fuzz::json_schema)),
    ("manifest", |data| with_text(data, manifest::fuzz::manifest)),
    ("path_glob", |data| with_text(data, capability::filesystem::path_glob)),
    ("path_walk", |data| with_text(data, capability::filesystem::path_walk)),
    ("url_pattern", |data| with_text(data, capability::network::url_pattern)),
];

/// Runs a target.
pub fn run(name: &str, data: &[u8]) {
    let (_, target) = TARGETS.iter().find(|(known, _)| *known == name).expect("it is a target");
    target(data);
}

/// All inputs are text, which people can read and write.
fn with_text(data: &[u8], target: fn(&str)) {
    if let Ok(text) = std::str::from_utf8(data) {
        target(text);
    }
}

// What was tried, and what went wrong, is for who runs the tests.
#[cfg(test)]
#[allow(clippy::print_stdout)]
mod tests {
    use super::*;
    use std::fs;
    use std::hash::{BuildHasher, RandomState};
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    use std::path::{Path, PathBuf};
    use std::time::{Duration, Instant};

    /// For how many seconds each target is run with inputs that nobody has seen. Without it, the
    /// inputs are the same each time.
    const SECONDS: &str = "TENON_FUZZ_SECONDS";

    /// How many inputs are made for a target without it.
    const INPUTS: usize = 300;

    #[test]
    fn json_schemas() {
        fuzz("json_schema");
    }

    #[test]
    fn manifests() {
        fuzz("manifest");
    }

    #[test]
    fn path_globs() {
        fuzz("path_glob");
    }

    #[test]
    fn path_walks() {
        fuzz("path_walk");
    }

    #[test]
    fn url_patterns() {
        fuzz("url_pattern");
    }

    #[test]
    fn every_target_is_one_of_cargo_fuzz() {
        let targets = fs::read_dir(folder().join("fuzz_targets")).unwrap();
        let name = |path: PathBuf| path.file_stem().unwrap().to_str().unwrap().to_string();
        let mut targets: Vec<String> = targets.map(|entry| name(entry.unwrap().path())).collect();
        targets.sort();
        // It stands beside the client, and is run there.
        targets.retain(|name| name != "mcp_client");
        assert_eq!(targets, TARGETS.map(|(name, _)| name));
    }

    fn folder() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz")
    }

    fn fuzz(name: &str) {
        let seeds = fs::read_dir(folder().join("seeds").join(name)).unwrap();
        let mut seeds: Vec<PathBuf> = seeds.map(|seed| seed.unwrap().path()).collect();
        seeds.sort();
        let seeds: Vec<Vec<u8>> = seeds.iter().map(|seed| fs::read(seed).unwrap()).collect();
        seeds.iter().for_each(|seed| check(name, seed));

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
            check(name, &generator.input());
            inputs += 1;
        }
        println!("{name}: {inputs} inputs in {:?}", begin.elapsed());
    }

    /// Runs a target, and keeps an input that it panics with where cargo-fuzz does.
    fn check(name: &str, input: &[u8]) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(name, input))) {
            let kept = folder().join("artifacts").join(name);
            fs::create_dir_all(&kept).unwrap();
            let kept = kept.join(format!("{:08x}", crc32fast::hash(input)));
            fs::write(&kept, input).unwrap();
            println!("input: {}\n{}", kept.display(), String::from_utf8_lossy(input));
            resume_unwind(panic);
        }
    }

    /// The words of a dictionary in libFuzzer's format: one in quotes on a line, `\xAB` for a byte.
    fn words(path: &Path) -> Vec<Vec<u8>> {
        let text = fs::read_to_string(path).unwrap();
        let quoted = |line: &str| Some(line.strip_prefix('"')?.strip_suffix('"')?.to_string());
        text.lines().filter_map(quoted).map(|word| unescaped(&word)).collect()
    }

    fn unescaped(word: &str) -> Vec<u8> {
        let (mut bytes, mut rest) = (Vec::new(), word.bytes());
        while let Some(byte) = rest.next() {
            bytes.push(match (byte, byte == b'\\') {
                (byte, false) => byte,
                (_, true) => match rest.next().unwrap() {
                    b'x' => {
                        let digits = [rest.next().unwrap(), rest.next().unwrap()];
                        u8::from_str_radix(str::from_utf8(&digits).unwrap(), 16).unwrap()
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
            String::from_utf8_lossy(&input).into_owned().into_bytes()
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
}
