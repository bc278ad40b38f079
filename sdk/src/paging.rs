//! Pages of lists that are known whole.

use std::ops::Range;

use crate::Error;

/// How many entries a page has at most.
pub(crate) const PAGE_SIZE: usize = 100;

/// Which entries of a list are on the page that a cursor points at, and the cursor of the next page.
///
/// A cursor is of one list alone, and says how many entries come before. A list that has become shorter
/// meanwhile may have an empty page.
///
/// # Errors
///
/// `invalid-input` for a cursor that no page of this list had.
pub(crate) fn page(
    list: &str,
    length: usize,
    cursor: Option<&str>,
) -> Result<(Range<usize>, Option<String>), Error> {
    let begin = match cursor {
        None => Some(0),
        Some(cursor) => begin(list, cursor),
    };
    let begin = begin.ok_or_else(|| Error::invalid_input("no page had this cursor"))?;
    let end = begin + PAGE_SIZE;
    let next = (length > end).then(|| cursor_of(list, end));
    Ok((begin.min(length)..end.min(length), next))
}

/// A text of an entry, where it has one. It stands in one place, as entries have many.
#[inline(never)]
pub(crate) fn owned(text: Option<&str>) -> Option<String> {
    text.map(str::to_string)
}

fn cursor_of(list: &str, begin: usize) -> String {
    format!("{list}-{begin}")
}

fn begin(list: &str, cursor: &str) -> Option<usize> {
    let begin: usize = cursor.strip_prefix(list)?.strip_prefix('-')?.parse().ok()?;
    let is_of_page = begin > 0 && begin.is_multiple_of(PAGE_SIZE);
    // An offset at the end of all numbers is none that a list has.
    let is_known = is_of_page && begin < usize::MAX - PAGE_SIZE;
    (is_known && cursor_of(list, begin) == cursor).then_some(begin)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorCode;

    #[test]
    fn pages_follow_each_other_to_the_end() {
        let check = |length: usize, expected: &[usize]| {
            let (mut pages, mut seen, mut cursor) = (Vec::new(), Vec::new(), None);
            loop {
                let (page, next) = page("list", length, cursor.as_deref()).unwrap();
                pages.push(page.len());
                seen.extend(page);
                match next {
                    Some(next) => cursor = Some(next),
                    None => break,
                }
            }
            assert_eq!(pages, expected);
            assert_eq!(seen, (0..length).collect::<Vec<_>>());
        };
        check(0, &[0]);
        check(99, &[99]);
        check(100, &[100]);
        check(101, &[100, 1]);
        check(250, &[100, 100, 50]);
    }

    #[test]
    fn a_cursor_of_another_maker_is_refused() {
        let check = |cursor: &str| {
            let error = page("list", 500, Some(cursor)).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidInput, "{cursor}");
        };
        check("");
        check("100");
        check("list");
        check("list-");
        check("list-0");
        check("list-99");
        check("list-+100");
        check("list-0100");
        check("list--100");
        check("other-100");
        check("list-18446744073709551600");
        check("list-99999999999999999999999");
    }

    #[test]
    fn a_list_that_has_become_shorter_ends() {
        assert_eq!(page("list", 10, Some("list-100")), Ok((10..10, None)));
    }
}
