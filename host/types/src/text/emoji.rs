//! Which characters make one emoji together (Unicode Technical Standard 51): a selector of how it is
//! shown, the joiners between its parts, a keycap, the tags of a flag.

/// How an emoji is to be shown: as text, or as a picture.
const SELECTORS: [char; 2] = ['\u{fe0e}', '\u{fe0f}'];

const JOINER: char = '\u{200d}';

const KEYCAP: char = '\u{20e3}';

/// The flags that are written with tags: those of England, Scotland and Wales. No others are in use, and
/// with others a text could be written that nobody sees.
const FLAGS: [&str; 3] = [
    "\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
    "\u{1f3f4}\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
    "\u{1f3f4}\u{e0067}\u{e0062}\u{e0077}\u{e006c}\u{e0073}\u{e007f}",
];

/// How long the emoji is that a text begins with, in bytes; nothing where it begins with none.
pub(super) fn length(text: &str) -> usize {
    let mut chars = text.chars();
    match chars.next() {
        Some('0'..='9' | '#' | '*') => {
            let keycap = (chars.next(), chars.next()) == (Some(SELECTORS[1]), Some(KEYCAP));
            if keycap { text.len() - chars.as_str().len() } else { 0 }
        }
        Some(c) if is_pictograph(c) => {
            let flag = FLAGS.iter().find(|flag| text.starts_with(**flag));
            flag.map_or_else(|| joined(text), |flag| flag.len())
        }
        _ => 0,
    }
}

/// How long the emoji is whose parts are joined.
fn joined(text: &str) -> usize {
    let mut length = part(text);
    while let Some(rest) = text[length..].strip_prefix(JOINER) {
        match part(rest) {
            0 => break,
            more => length += JOINER.len_utf8() + more,
        }
    }
    length
}

/// How long one part of an emoji is: a picture, and how it is shown or which skin it has.
fn part(text: &str) -> usize {
    let mut chars = text.chars();
    if !chars.next().is_some_and(is_pictograph) {
        return 0;
    }
    let rest = chars.as_str();
    let is_modifier = |c: char| SELECTORS.contains(&c) || matches!(c, '\u{1f3fb}'..='\u{1f3ff}');
    text.len() - rest.strip_prefix(is_modifier).unwrap_or(rest).len()
}

/// Whether a character is a picture: those with the property `Extended_Pictographic`.
fn is_pictograph(c: char) -> bool {
    matches!(c,
        '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}'
        | '\u{2194}'..='\u{2199}' | '\u{21a9}' | '\u{21aa}' | '\u{231a}' | '\u{231b}' | '\u{2328}'
        | '\u{2388}' | '\u{23cf}' | '\u{23e9}'..='\u{23f3}' | '\u{23f8}'..='\u{23fa}' | '\u{24c2}'
        | '\u{25aa}' | '\u{25ab}' | '\u{25b6}' | '\u{25c0}' | '\u{25fb}'..='\u{25fe}'
        | '\u{2600}'..='\u{2605}' | '\u{2607}'..='\u{2612}' | '\u{2614}'..='\u{2685}'
        | '\u{2690}'..='\u{2705}' | '\u{2708}'..='\u{2712}' | '\u{2714}' | '\u{2716}' | '\u{271d}'
        | '\u{2721}' | '\u{2728}' | '\u{2733}' | '\u{2734}' | '\u{2744}' | '\u{2747}' | '\u{274c}'
        | '\u{274e}' | '\u{2753}'..='\u{2755}' | '\u{2757}' | '\u{2763}'..='\u{2767}'
        | '\u{2795}'..='\u{2797}' | '\u{27a1}' | '\u{27b0}' | '\u{27bf}' | '\u{2934}' | '\u{2935}'
        | '\u{2b05}'..='\u{2b07}' | '\u{2b1b}' | '\u{2b1c}' | '\u{2b50}' | '\u{2b55}' | '\u{3030}'
        | '\u{303d}' | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1f0ff}'
        | '\u{1f10d}'..='\u{1f10f}' | '\u{1f12f}' | '\u{1f16c}'..='\u{1f171}'
        | '\u{1f17e}' | '\u{1f17f}' | '\u{1f18e}' | '\u{1f191}'..='\u{1f19a}'
        | '\u{1f1ad}'..='\u{1f1e5}' | '\u{1f201}'..='\u{1f20f}' | '\u{1f21a}' | '\u{1f22f}'
        | '\u{1f232}'..='\u{1f23a}' | '\u{1f23c}'..='\u{1f23f}' | '\u{1f249}'..='\u{1f3fa}'
        | '\u{1f400}'..='\u{1f53d}' | '\u{1f546}'..='\u{1f64f}' | '\u{1f680}'..='\u{1f6ff}'
        | '\u{1f774}'..='\u{1f77f}' | '\u{1f7d5}'..='\u{1f7ff}' | '\u{1f80c}'..='\u{1f80f}'
        | '\u{1f848}'..='\u{1f84f}' | '\u{1f85a}'..='\u{1f85f}' | '\u{1f888}'..='\u{1f88f}'
        | '\u{1f8ae}'..='\u{1f8ff}' | '\u{1f90c}'..='\u{1f93a}' | '\u{1f93c}'..='\u{1f945}'
        | '\u{1f947}'..='\u{1faff}' | '\u{1fc00}'..='\u{1fffd}')
}
