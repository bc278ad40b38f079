//! Patterns for names: `*` stands for any characters, `?` for one.

/// Whether a name has the form of a pattern.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let (mut p, mut n) = (0, 0);
    // Where the last star stands and what it has taken so far. Only it is ever given more: an
    // earlier one cannot do better, so that the work stays within the product of the lengths.
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(&c) if c == '?' || c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => {
                let Some((at, taken)) = star else { return false };
                star = Some((at, taken + 1));
                p = at + 1;
                n = taken + 1;
            }
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let check = |pattern: &str, name: &str, expected: bool| {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        };
        check("a.txt", "a.txt", true);
        check("a.txt", "a.txt2", false);
        check("*.txt", "a.txt", true);
        check("*.txt", ".txt", true);
        check("*.txt", "a.txt.gz", false);
        check("*", "", true);
        check("?", "", false);
        check("?", "ß", true);
        check("a*b*c", "aXbXbc", true);
        check("a*b*c", "acb", false);
        check("**x", "x", true);
        check("*a*a*a*a*a*a*a*b", &"a".repeat(200), false);
    }
}
