//! Finding secrets in a text that comes in pieces, in whatever way JSON spells them. A text that is there
//! as a whole is one that comes in one piece: there is no other way to look for them.

use aho_corasick::{AhoCorasick, Input, MatchKind};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::{Bound, Range};
use tenon_types::text::json_escape::Escape;

/// What is looked for.
pub(super) struct Patterns {
    automaton: AhoCorasick,
    /// In order, to tell whether a text may be the beginning of one.
    ordered: BTreeSet<String>,
    /// Whether one of them begins with a byte.
    begin: [bool; 256],
    longest: usize,
}

impl Patterns {
    /// Nothing where there is nothing to look for.
    pub(super) fn new(ordered: BTreeSet<String>) -> Option<Self> {
        if ordered.is_empty() {
            return None;
        }
        // The longest first: a secret may begin with another.
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(&ordered)
            .inspect_err(|error| tracing::error!("secrets cannot be masked: {error}"))
            .ok()?;
        let mut begin = [false; 256];
        let first = ordered.iter().filter_map(|pattern| pattern.bytes().next());
        first.for_each(|byte| begin[usize::from(byte)] = true);
        Some(Self { longest: automaton.max_pattern_len(), automaton, ordered, begin })
    }

    /// Whether something of this may be in a text: as it is, or in escapes.
    pub(super) fn may_be_in(&self, text: &[u8]) -> bool {
        text.contains(&b'\\') || self.automaton.is_match(text)
    }

    /// Where in a text, from a place on, that may begin which more text would make a secret, or a longer
    /// one; the end, where nothing of it may.
    pub(super) fn possible_beginning(&self, text: &str, from: usize) -> usize {
        let start = from.max(text.len().saturating_sub(self.longest.saturating_sub(1)));
        let may_begin = |place: &usize| {
            let begins = self.begin[usize::from(text.as_bytes()[*place])];
            begins && text.is_char_boundary(*place) && self.is_beginning(&text[*place..])
        };
        (start..text.len()).find(may_begin).unwrap_or(text.len())
    }

    /// Whether a text is the beginning of a secret, and not all of it.
    fn is_beginning(&self, text: &str) -> bool {
        let longer = (Bound::Excluded(text), Bound::Unbounded);
        // What begins with the text follows it in order.
        self.ordered.range::<str, _>(longer).next().is_some_and(|next| next.starts_with(text))
    }
}

/// A text on its way, and where secrets are in it. Places in it are counted from its beginning, of which
/// most may be gone.
pub(super) struct TextScanner<'a> {
    /// The text as it came, and what each further reading of its escapes makes of the one before. A
    /// reading is there once there is a `\` in the one before.
    readings: Vec<UnescapedText<'a>>,
    /// How many readings there may be.
    most: usize,
    /// Whether the text is JSON, whose texts end where they end, whatever is in them.
    in_json: bool,
    /// Where secrets are in the text, of which nothing was passed on.
    found: Vec<Range<usize>>,
    /// The end of what was masked last.
    masked: usize,
}

/// A text, as a number of readings of its escapes have left it.
struct UnescapedText<'a> {
    /// What is kept of it.
    text: Cow<'a, str>,
    /// Where that begins.
    start: usize,
    /// What begins before is decided: it is a secret or none.
    open: usize,
    /// What nobody needs before is not kept.
    needed: usize,
    /// How far the next reading has come.
    read: usize,
    /// Where its parts begin, and where they began in the reading before. Within a part both go on alike,
    /// or it is one escape.
    parts: Vec<(usize, usize)>,
}

/// A piece of a text that is passed on.
#[derive(Clone, Copy)]
pub(super) enum OutputPiece<'a> {
    /// It has no secret in it.
    Clear(&'a str),
    /// It is a secret, or several that overlap.
    Secret(&'a str),
    /// It belongs to the secret that was passed on before.
    More(&'a str),
}

impl<'a> TextScanner<'a> {
    /// Looks for secrets in a text, and in what so many readings of its escapes make of it.
    pub(super) fn new(text: Cow<'a, str>, nested: usize) -> Self {
        let (most, found) = (nested + 1, Vec::new());
        Self { readings: vec![UnescapedText::new(text, 0)], most, in_json: false, found, masked: 0 }
    }

    /// The same of the text of JSON that comes in pieces: one reading more makes texts of that.
    pub(super) fn of_json(nested: usize) -> Self {
        Self { in_json: true, ..Self::new(Cow::Borrowed(""), nested + 1) }
    }

    /// Adds a piece to the text.
    pub(super) fn push(&mut self, piece: &str) {
        self.readings[0].text.to_mut().push_str(piece);
    }

    /// Whether a secret was found that was not passed on.
    pub(super) fn has_found(&self) -> bool {
        !self.found.is_empty()
    }

    /// Decides what can be decided; all, where no more comes. Gives up to where the text can be passed
    /// on.
    pub(super) fn decide(&mut self, patterns: Option<&Patterns>, is_end: bool) -> usize {
        let Some(patterns) = patterns else {
            let all = &mut self.readings[0];
            all.needed = all.start + all.text.len();
            return all.needed;
        };
        self.read(is_end);
        for number in 0..self.readings.len() {
            self.search(patterns, number, is_end);
        }
        let mut needed = None;
        for number in (0..self.readings.len()).rev() {
            let (own, next) = (&self.readings[number], self.readings.get(number + 1));
            let begin = next.and_then(|next| next.escape_around(own.open));
            let begin = begin.map_or(own.open, |escape| escape.start);
            let of_next = next.zip(needed).map(|(next, needed)| next.origin(needed));
            let place = of_next.map_or(begin, |of_next| begin.min(of_next));
            self.readings[number].needed = place;
            needed = Some(place);
        }
        self.readings[0].needed
    }

    /// Passes the text on up to a place that was decided.
    pub(super) fn pass(&mut self, until: usize, mut each: impl FnMut(OutputPiece<'_>)) {
        self.found.sort_unstable_by_key(|found| (found.start, found.end));
        let ready = self.found.partition_point(|found| found.start < until);
        let text = &self.readings[0];
        let mut at = text.start.max(self.masked);
        for found in self.found.drain(..ready) {
            if found.start < self.masked {
                if found.end <= self.masked {
                    continue;
                }
                each(OutputPiece::More(text.part(self.masked..found.end)));
            } else {
                each(OutputPiece::Clear(text.part(at..found.start)));
                each(OutputPiece::Secret(text.part(found.clone())));
            }
            (self.masked, at) = (found.end, found.end);
        }
        if at < until {
            each(OutputPiece::Clear(text.part(at..until)));
        }
    }

    /// Keeps no more than is needed.
    pub(super) fn forget(&mut self) {
        let mut before = 0;
        for reading in &mut self.readings {
            reading.text.to_mut().drain(..reading.needed - reading.start);
            reading.start = reading.needed;
            let first = reading.parts.partition_point(|(_, from)| *from <= before);
            reading.parts.drain(..first.saturating_sub(1));
            before = reading.needed;
        }
    }

    /// How much is kept.
    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        let lengths = self.readings.iter().map(|reading| reading.text.len() + reading.parts.len());
        lengths.sum::<usize>() + self.found.len()
    }

    /// Reads what has come, but for escapes that are not all there.
    fn read(&mut self, is_end: bool) {
        for number in 1..self.most {
            if self.readings.len() == number {
                let Some(next) = self.readings[number - 1].further() else { return };
                self.readings.push(next);
            }
            let (before, after) = self.readings.split_at_mut(number);
            before[number - 1].read = after[0].read_on(before, is_end, self.in_json);
        }
    }

    /// Looks for secrets in a reading.
    fn search(&mut self, patterns: &Patterns, number: usize, is_end: bool) {
        let (reading, next) = (&self.readings[number], self.readings.get(number + 1));
        let (text, start) = (&*reading.text, reading.start);
        let begins = |from| match is_end {
            true => text.len(),
            false => patterns.possible_beginning(text, from),
        };
        let from = reading.open - start;
        let mut until = begins(from);
        for found in patterns.automaton.find_iter(Input::new(text).range(from..)) {
            // What begins later is not known yet to be all of it.
            if found.start() >= until {
                break;
            }
            let mut place = start + found.start()..start + found.end();
            if let Some(next) = next {
                // It is not known yet where the escape ends that its end is in.
                if place.end > reading.read {
                    until = found.start();
                    break;
                }
                // Half of an escape would spoil what is left of JSON.
                let around = |place| next.escape_around(place).unwrap_or(place..place);
                place = around(place.start).start..around(place.end).end;
            }
            let origin = |place| {
                let readings = self.readings[1..=number].iter().rev();
                readings.fold(place, |place, reading| reading.origin(place))
            };
            self.found.push(origin(place.start)..origin(place.end));
            if until < found.end() {
                until = begins(found.end());
            }
        }
        self.readings[number].open = start + until;
    }
}

impl<'a> UnescapedText<'a> {
    fn new(text: Cow<'a, str>, start: usize) -> Self {
        Self { text, start, open: start, needed: start, read: start, parts: Vec::new() }
    }

    /// The next reading, if there is a `\` in what it has not read: up to there both are alike.
    fn further(&mut self) -> Option<UnescapedText<'static>> {
        let rest = &self.text[self.read - self.start..];
        let Some(found) = rest.find('\\') else {
            self.read += rest.len();
            return None;
        };
        self.read += found;
        let mut text = String::with_capacity(self.text.len());
        text.push_str(&self.text[..self.read - self.start]);
        let parts = vec![(self.start, self.start)];
        Some(UnescapedText {
            open: self.open,
            parts,
            ..UnescapedText::new(Cow::Owned(text), self.start)
        })
    }

    /// Reads on in the last of those before. Gives how far it has come.
    fn read_on(&mut self, before: &[UnescapedText<'_>], is_end: bool, in_json: bool) -> usize {
        let Some((last, others)) = before.split_last() else { return 0 };
        let text = self.text.to_mut();
        let mut read = last.read;
        loop {
            let rest = &last.text[read - last.start..];
            let plain = rest.find('\\').unwrap_or(rest.len());
            text.push_str(&rest[..plain]);
            read += plain;
            if plain == rest.len() {
                return read;
            }
            match Escape::of(&rest[plain..]) {
                Escape::Unfinished if !is_end => return read,
                Escape::Meant('"', _) if in_json && last.is_as_it_came(others, read + 1) => {
                    text.push('\\');
                    read += 1;
                }
                Escape::Meant(meant, length) => {
                    let begin = (self.start + text.len(), read);
                    if self.parts.last() != Some(&begin) {
                        self.parts.push(begin);
                    }
                    text.push(meant);
                    read += length;
                    self.parts.push((self.start + text.len(), read));
                }
                Escape::Unfinished | Escape::None => {
                    text.push('\\');
                    read += 1;
                }
            }
        }
    }

    /// Whether a character of this reading, which is none of the text itself, is in no escape in any of
    /// those before.
    fn is_as_it_came(&self, before: &[UnescapedText<'_>], place: usize) -> bool {
        let Some((last, others)) = before.split_last() else { return false };
        let after = self.parts.partition_point(|(begin, _)| *begin <= place);
        let (begin, from) = self.parts[after.saturating_sub(1)];
        let next = self.parts.get(after);
        let is_escape = next.is_some_and(|next| next.1 - from != next.0 - begin);
        !is_escape && (others.is_empty() || last.is_as_it_came(others, from + (place - begin)))
    }

    /// Where a place of it came from in the reading before.
    fn origin(&self, place: usize) -> usize {
        let after = self.parts.partition_point(|(begin, _)| *begin <= place);
        let (begin, from) = self.parts[after.saturating_sub(1)];
        from + (place - begin)
    }

    /// The escape in the reading before which a place there is in the middle of.
    fn escape_around(&self, place: usize) -> Option<Range<usize>> {
        let after = self.parts.partition_point(|(_, from)| *from <= place);
        let (begin, from) = *self.parts.get(after.checked_sub(1)?)?;
        let (next_begin, next_from) = *self.parts.get(after)?;
        // What is no escape is as long as it was.
        (from < place && next_from - from != next_begin - begin).then_some(from..next_from)
    }

    /// A part of what is kept.
    fn part(&self, place: Range<usize>) -> &str {
        &self.text[place.start - self.start..place.end - self.start]
    }
}
