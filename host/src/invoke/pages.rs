//! Listings that come in pages.

use serde_json::Value;
use std::collections::HashSet;
use tenon_config::limits::MAX_PAGES;

use crate::call::Failure;

/// The most items of a listing.
const MAX_ITEMS: usize = 10_000;

/// The most that the items of a listing have to say, in bytes of JSON.
const MAX_LIST_BYTES: usize = 16 << 20;

/// A page of a listing.
pub(super) struct Page<T> {
    pub(super) items: Vec<T>,
    /// Where the next one begins.
    pub(super) next: Option<String>,
}

/// All items of a listing, whose pages are asked for by their cursors; `form` gives the JSON of one.
/// Of a listing that goes round in a circle, on for ever or beyond its bounds, what was there until
/// then is kept, each item once.
pub(super) async fn all_pages<T, F>(
    what: &str,
    form: impl Fn(&T) -> Value,
    mut page: impl FnMut(Option<String>) -> F,
) -> Result<Vec<T>, Failure>
where
    F: Future<Output = Result<Page<T>, Failure>>,
{
    let mut listed = Vec::new();
    let mut known = HashSet::new();
    let mut cursors = HashSet::new();
    let mut cursor = None;
    let mut left = MAX_LIST_BYTES;
    'pages: for _ in 0..MAX_PAGES {
        let Page { items, next } = page(cursor).await?;
        for item in items {
            let form = form(&item).to_string();
            if listed.len() == MAX_ITEMS || form.len() > left {
                break 'pages;
            }
            // What is there again counts: of that, too, there could be no end.
            left -= form.len();
            if known.insert(form) {
                listed.push(item);
            }
        }
        match next {
            None => return Ok(listed),
            Some(next) if cursors.insert(next.clone()) => cursor = Some(next),
            Some(_) => break,
        }
    }
    let kept = listed.len();
    tracing::warn!("its list of {what} is too long or has no end; the first {kept} are kept");
    Ok(listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lists pages, of which each begins where the one before says; beyond the last it begins anew.
    async fn check(pages: &[(&[&str], Option<&str>)], expected: &[&str]) {
        let mut pages = pages.iter().cycle();
        let form = |item: &String| Value::from(item.as_str());
        let listed = all_pages("things", form, move |_| {
            let (items, next) = pages.next().expect("it goes on for ever");
            let items = items.iter().map(ToString::to_string).collect();
            let next = next.map(ToString::to_string);
            async { Ok(Page { items, next }) }
        });
        assert_eq!(listed.await.expect("it is listed"), expected);
    }

    #[tokio::test]
    async fn a_listing_ends_and_what_was_there_is_kept() {
        check(&[(&["a", "b"], None)], &["a", "b"]).await;
        check(&[(&["a"], Some("1")), (&["b"], None)], &["a", "b"]).await;
        check(&[(&["a"], Some(""))], &["a"]).await;
        check(&[(&["a"], Some("")), (&["b"], None)], &["a", "b"]).await;
        check(&[(&["a"], Some("1")), (&["b"], Some("1"))], &["a", "b"]).await;
        check(&[(&["a"], Some("1")), (&["b"], Some("2"))], &["a", "b"]).await;
    }

    #[tokio::test]
    async fn a_listing_is_bounded_in_items_and_in_bytes() {
        let long = "x".repeat(MAX_LIST_BYTES / 2);
        let pages: &[(&[&str], _)] = &[(&["a", &long], Some("1")), (&["b", &long[1..], "c"], None)];
        check(pages, &["a", &long, "b"]).await;
        check(&[(&[&long], Some("1")), (&[&long, "b"], None)], &[&long]).await;
        let many: Vec<String> = (0..=MAX_ITEMS).map(|number| number.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        check(&[(&many, None)], &many[..MAX_ITEMS]).await;
    }
}
