//! How large a pattern becomes when it is compiled, estimated from its text.
//!
//! Only plain patterns are read: those that a finite automaton matches in time linear in the text. What
//! looks around or back, sets flags, or is written in another way than is known here, is not estimated.

use std::iter::Peekable;
use std::str::Chars;

/// The most states of all patterns of a schema.
pub(super) const MAX_STATES: usize = 10_000;

/// The longest pattern, in bytes: translating one takes time quadratic in its length.
const MAX_PATTERN_LENGTH: usize = 1_000;

/// The most groups within each other.
const MAX_NESTING: usize = 30;

/// The states of a class with characters beyond ASCII, of which each has several bytes.
const NON_ASCII_CLASS_STATES: usize = 40;

/// The states of a class that Unicode defines.
const UNICODE_CLASS_STATES: usize = 1_000;

/// About how many states a pattern has, if it is plain and has no more than [`MAX_STATES`].
pub(super) fn states(pattern: &str) -> Option<usize> {
    if pattern.len() > MAX_PATTERN_LENGTH {
        return None;
    }
    let mut reader = PatternParser { rest: pattern.chars().peekable() };
    let states = reader.alternatives(0)?;
    // A group was closed that was not open.
    let is_whole = reader.rest.next().is_none();
    (is_whole && states <= MAX_STATES).then_some(states)
}

struct PatternParser<'a> {
    rest: Peekable<Chars<'a>>,
}

impl PatternParser<'_> {
    fn alternatives(&mut self, nested: usize) -> Option<usize> {
        if nested > MAX_NESTING {
            return None;
        }
        let mut states: usize = 1;
        while let Some(next) = self.rest.peek().copied() {
            if next == ')' {
                break;
            }
            self.rest.next();
            let atom = match next {
                '(' => {
                    self.begin_group()?;
                    let group = self.alternatives(nested + 1)?;
                    if self.rest.next() != Some(')') {
                        return None;
                    }
                    group + 2
                }
                '[' => self.class()?,
                '\\' => self.escape()?,
                '.' => NON_ASCII_CLASS_STATES,
                '|' | '^' | '$' => 2,
                '*' | '+' | '?' | '{' | '}' => return None,
                c if c.is_ascii() => 1,
                _ => 4,
            };
            states = states.saturating_add(atom.saturating_mul(self.times()?));
        }
        Some(states)
    }

    /// The beginning of a group that does nothing but group.
    fn begin_group(&mut self) -> Option<()> {
        if self.rest.next_if_eq(&'?').is_some() {
            return (self.rest.next()? == ':').then_some(());
        }
        Some(())
    }

    /// How often the atom before is there.
    fn times(&mut self) -> Option<usize> {
        let times = match self.rest.peek() {
            Some('*' | '+' | '?') => {
                self.rest.next();
                2
            }
            Some('{') => {
                self.rest.next();
                let least = self.number()?;
                let most = match self.rest.next()? {
                    '}' => Some(least),
                    ',' => {
                        let most = self.number();
                        (self.rest.next()? == '}').then_some(())?;
                        most
                    }
                    _ => return None,
                };
                most.unwrap_or(0).max(least).saturating_add(1)
            }
            _ => return Some(1),
        };
        // As few as possible; another one would be something else.
        self.rest.next_if_eq(&'?');
        match self.rest.peek() {
            Some('*' | '+' | '?' | '{') => None,
            _ => Some(times),
        }
    }

    fn number(&mut self) -> Option<usize> {
        let mut number: Option<usize> = None;
        while let Some(digit) = self.rest.peek().and_then(|c| c.to_digit(10)) {
            self.rest.next();
            number = Some(number.unwrap_or(0).saturating_mul(10).saturating_add(digit as usize));
        }
        number
    }

    fn escape(&mut self) -> Option<usize> {
        Some(match self.rest.next()? {
            'd' | 'w' => 2,
            's' | 'b' | 'B' => 10,
            'D' | 'W' | 'S' => NON_ASCII_CLASS_STATES,
            'n' | 'r' | 't' | 'f' | 'v' => 1,
            'p' | 'P' => {
                (self.rest.next()? == '{').then_some(())?;
                let is_name = |c: &char| c.is_ascii_alphanumeric() || "_=".contains(*c);
                while self.rest.next_if(is_name).is_some() {}
                (self.rest.next()? == '}').then_some(UNICODE_CLASS_STATES)?
            }
            c if c.is_ascii_punctuation() => 1,
            _ => return None,
        })
    }

    fn class(&mut self) -> Option<usize> {
        let (mut states, mut ranges): (usize, usize) = (1, 0);
        if self.rest.next_if_eq(&'^').is_some() {
            states += NON_ASCII_CLASS_STATES;
        }
        let mut is_first = true;
        loop {
            states = states.saturating_add(match self.rest.next()? {
                // At the beginning it means one thing in ECMAScript and another elsewhere.
                ']' if is_first => return None,
                // One state, which is the larger the more ranges it has.
                ']' => return Some(states + ranges / 8),
                // So do a class within a class, and what is done with two of them.
                '[' | '&' | '~' => return None,
                '\\' => self.escape()?,
                c if c.is_ascii() => {
                    ranges += 1;
                    0
                }
                _ => 8,
            });
            is_first = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_patterns_are_estimated() {
        let check = |pattern: &str, most: usize| {
            let states = states(pattern).unwrap_or_else(|| panic!("{pattern} is plain"));
            assert!((most / 4..=most).contains(&states), "{pattern}: {states}");
        };
        check("", 3);
        check("^[a-z]+$", 20);
        check(r"^\d{4}-\d{2}-\d{2}$", 40);
        check("^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", 250);
        check("^(?:a|b)*?$", 30);
        check("^.{1,200}$", 9_000);
        check(r"^\p{L}+$", 2_100);
        check("((a{10}){10}){10}", 4_000);
    }

    #[test]
    fn what_backtracks_or_is_large_is_not() {
        for pattern in [
            "((a{100}){100}){100}",
            "a{99999999999999999999}",
            "^(?=a)",
            "(?i)a",
            "(?<name>a)",
            r"(a)\1",
            r"\k",
            "a++",
            "a*+",
            "a{2}{3}",
            "a**",
            "(a",
            "a)",
            "[a",
            "[a&&b]",
            "[]a]",
            r"\",
            &"a".repeat(MAX_PATTERN_LENGTH + 1),
            &"(".repeat(100),
            &r"\p{L}".repeat(20),
        ] {
            assert_eq!(states(pattern), None, "{pattern}");
        }
    }
}
