//! Listings that come in pages.

use std::collections::HashSet;

use crate::runtime::Failure;

/// The most pages of a listing.
const PAGES: usize = 1_000;

/// The most items of a listing.
const MOST: usize = 10_000;

/// A page of a listing.
pub(super) struct Page<T> {
    pub(super) items: Vec<T>,
    /// Where the next one begins.
    pub(super) next: Option<String>,
}

/// All items of a listing, whose pages are asked for by their cursors. One that goes round in a
/// circle, or on for ever, is an error.
pub(super) async fn all_pages<T, F>(
    what: &str,
    mut page: impl FnMut(Option<String>) -> F,
) -> Result<Vec<T>, Failure>
where
    F: Future<Output = Result<Page<T>, Failure>>,
{
    let mut listed = Vec::new();
    let mut seen = HashSet::new();
    let mut cursor = None;
    for _ in 0..PAGES {
        let Page { items, next } = page(cursor).await?;
        listed.extend(items);
        match next {
            None => return Ok(listed),
            Some(next) if seen.insert(next.clone()) && listed.len() < MOST => cursor = Some(next),
            Some(_) => break,
        }
    }
    Err(Failure::Contract(format!("its list of {what} has no end")))
}
