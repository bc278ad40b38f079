//! The name that was probably meant.

/// How many letters have to change to make one text of another, where two in exchanged places are one change.
fn distance(one: &[u8], other: &[u8]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for i in 1..=one.len() {
        let mut next = vec![i];
        for j in 1..=other.len() {
            let change = usize::from(one[i - 1] != other[j - 1]);
            let mut least = (row[j] + 1).min(next[j - 1] + 1).min(row[j - 1] + change);
            if i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[other.len()]
}

/// The letters that are compared: neither case nor separators count. They are bytes, as characters take more code.
fn letters(text: &str) -> Vec<u8> {
    let is_letter = |byte: &u8| !matches!(byte, b'-' | b'_' | b' ');
    text.bytes().filter(is_letter).map(|byte| byte.to_ascii_lowercase()).collect()
}

/// The nearest of some names, if one is near: a third of its letters may differ.
pub(crate) fn nearest<'a>(name: &str, names: &[&'a str]) -> Option<&'a str> {
    let name = letters(name);
    let mut best = None;
    for candidate in names {
        let away = distance(&name, &letters(candidate));
        let is_near = away <= (candidate.len() / 3).max(1);
        if is_near && best.is_none_or(|(least, _)| away < least) {
            best = Some((away, *candidate));
        }
    }
    best.map(|(_, name)| name)
}

/// A part of a sentence that names the nearest, or else all.
pub(crate) fn suggestion(name: &str, names: &[&str]) -> String {
    match nearest(name, names) {
        Some(near) => format!("did you mean `{near}`?"),
        None if names.is_empty() => "there are none".to_string(),
        None => format!("there are `{}`", names.join("`, `")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_nearly_right() {
        let check = |name, names: &[&str], expected: &str| {
            assert_eq!(suggestion(name, names), expected, "{name}");
        };
        check("day", &["city", "days"], "did you mean `days`?");
        check("nmae", &["name"], "did you mean `name`?");
        check("zipCode", &["zip_code"], "did you mean `zip_code`?");
        check("colour", &["size", "shape"], "there are `size`, `shape`");
        check("größe", &["grösse"], "did you mean `grösse`?");
        check("x", &[], "there are none");
    }
}
