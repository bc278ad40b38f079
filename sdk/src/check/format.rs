//! The formats of texts that are checked.

/// Whether a text is of a format. One that is not known is never wrong.
pub(super) fn fits(format: &str, text: &str) -> bool {
    match format {
        "date" => is_date(text),
        "time" => is_time(text, true) || is_time(text, false),
        "date-time" => is_date_time(text, true),
        "partial-time" => is_time(text, false),
        "partial-date-time" => is_date_time(text, false),
        "uuid" => is_uuid(text),
        "uri" => is_uri(text),
        "email" => is_email(text),
        _ => true,
    }
}

/// A number of so many digits.
fn number(text: &str, digits: usize) -> Option<u32> {
    let is_number = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

fn is_date(text: &str) -> bool {
    let mut parts = text.splitn(3, '-');
    let mut next = |digits| parts.next().and_then(|part| number(part, digits));
    let (Some(year), Some(month), Some(day)) = (next(4), next(2), next(2)) else { return false };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        _ => 31,
    };
    (1..=12).contains(&month) && (1..=days).contains(&day)
}

/// `hh:mm:ss`, with a fraction, and with an offset where that is wanted.
fn is_time(text: &str, has_offset: bool) -> bool {
    let time = match has_offset {
        false => Some(text),
        true => text.strip_suffix(['Z', 'z']).or_else(|| {
            let (time, offset) = text.split_at_checked(text.len().checked_sub(6)?)?;
            let (hours, minutes) = offset.strip_prefix(['+', '-'])?.split_once(':')?;
            (number(hours, 2)? < 24 && number(minutes, 2)? < 60).then_some(time)
        }),
    };
    let Some(time) = time else { return false };
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut parts = time.splitn(3, ':');
    let mut next = |most| {
        let part = parts.next().and_then(|part| number(part, 2));
        part.is_some_and(|number| number <= most)
    };
    let is_fraction = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    next(23) && next(59) && next(60) && is_fraction
}

fn is_date_time(text: &str, has_offset: bool) -> bool {
    let parts = text.split_once(['T', 't', ' ']);
    parts.is_some_and(|(date, time)| is_date(date) && is_time(time, has_offset))
}

fn is_uuid(text: &str) -> bool {
    let is_part = |(part, digits): (&str, usize)| {
        part.len() == digits && part.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    text.split('-').count() == 5 && text.split('-').zip([8, 4, 4, 4, 12]).all(is_part)
}

fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let is_of_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(is_of_scheme)
        && !rest.contains(char::is_whitespace)
}

fn is_email(text: &str) -> bool {
    let Some((name, domain)) = text.split_once('@') else { return false };
    let is_dotted = domain.split('.').count() > 1 && domain.split('.').all(|part| !part.is_empty());
    !name.is_empty() && is_dotted && !domain.contains('@') && !text.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats() {
        let check = |format, good: &[&str], bad: &[&str]| {
            good.iter().for_each(|text| assert!(fits(format, text), "{format}: {text}"));
            bad.iter().for_each(|text| assert!(!fits(format, text), "{format}: {text}"));
        };
        check(
            "date",
            &["2024-02-29", "1999-12-31"],
            &[
                "2023-02-29",
                "2024-13-01",
                "2024-1-1",
                "24-01-01",
                "2024-01-00",
                "2024-01-01-01",
                "",
                "é",
            ],
        );
        check(
            "time",
            &["23:59:59", "00:00:00.5Z", "12:00:00+01:00"],
            &["24:00:00", "12:00", "12:00:00.", "12:00:00+1"],
        );
        check(
            "date-time",
            &["2024-01-01T00:00:00Z", "2024-01-01 00:00:00.123-05:30", "2024-01-01t00:00:00z"],
            &["2024-01-01", "2024-01-01T00:00:00", "2024-01-01T00:00:00+24:00", "tomorrow"],
        );
        check("partial-date-time", &["2024-01-01T00:00:00"], &["2024-01-01T00:00:00Z"]);
        check(
            "uuid",
            &["67e55044-10b1-426f-9247-bb680e5fe0c8", "67E55044-10B1-426F-9247-BB680E5FE0C8"],
            &["67e5504410b1426f9247bb680e5fe0c8", "67e55044-10b1-426f-9247-bb680e5fe0c", "x"],
        );
        check(
            "uri",
            &["https://a.test/x?y", "mailto:a@b"],
            &["a.test", "1a:b", ":x", "https://a b"],
        );
        check(
            "email",
            &["ada@example.com"],
            &["ada", "@example.com", "ada@example", "a@b@c.d", "a b@c.d", "a@.d"],
        );
        check("anything", &["", "x"], &[]);
    }
}
