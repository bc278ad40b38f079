//! Pages of lists.

use crate::protocol::error::RpcError;
use crate::protocol::request::ListKind;

/// The most items of a page.
const PAGE_ITEMS: usize = 1000;

/// The most bytes of a page, unless one item is longer.
const PAGE_BYTES: usize = 4 << 20;

/// A page of a list, whose items are JSON. A cursor is the number of items before the page.
pub(crate) fn page(
    kind: ListKind,
    items: &[String],
    cursor: Option<&str>,
) -> Result<String, RpcError> {
    let start = match cursor {
        None => 0,
        Some(cursor) => {
            cursor.parse().ok().filter(|start| *start > 0 && *start < items.len()).ok_or_else(
                || {
                    RpcError::invalid_params(format!(
                        "the cursor {cursor:?} is of no page of this list"
                    ))
                },
            )?
        }
    };
    let rest = items.get(start..).unwrap_or_default();
    let mut bytes = 0;
    let fits = |item: &&String| {
        bytes += item.len();
        bytes <= PAGE_BYTES
    };
    let count = rest.iter().take(PAGE_ITEMS).take_while(fits).count().max(1).min(rest.len());
    let mut page = format!(r#"{{"{}":["#, kind.member());
    page.reserve(bytes + 64);
    for (i, item) in rest[..count].iter().enumerate() {
        if i > 0 {
            page.push(',');
        }
        page.push_str(item);
    }
    page.push(']');
    if start + count < items.len() {
        page.push_str(&format!(r#","nextCursor":"{}""#, start + count));
    }
    page.push('}');
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn read(items: &[String], cursor: Option<&str>) -> (usize, Option<String>) {
        let page = page(ListKind::Tools, items, cursor).unwrap();
        let page: Value = serde_json::from_str(&page).unwrap();
        let next = page.get("nextCursor").map(|next| next.as_str().unwrap().to_string());
        (page["tools"].as_array().unwrap().len(), next)
    }

    #[test]
    fn pages_follow_each_other_to_the_end() {
        let items = vec!["{}".to_string(); 2500];
        let (count, next) = read(&items, None);
        assert_eq!((count, next.as_deref()), (1000, Some("1000")));
        assert_eq!(read(&items, Some("1000")), (1000, Some("2000".into())));
        assert_eq!(read(&items, Some("2000")), (500, None));
        assert_eq!(read(&[], None), (0, None));
        let long = vec![format!("{:?}", "x".repeat(PAGE_BYTES)); 2];
        assert_eq!(read(&long, None), (1, Some("1".into())));
    }

    #[test]
    fn a_cursor_of_no_page_is_refused() {
        let items = vec!["{}".to_string(); 3];
        for cursor in ["", "x", "-1", "0", "3", "99999999999999999999"] {
            let error = page(ListKind::Prompts, &items, Some(cursor)).unwrap_err();
            assert_eq!(error.code, -32602, "{cursor}");
        }
    }
}
