//! Listings, page after page.

use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};

use super::{Action, Client, Error, OperationId, Outcome, Purpose};
use crate::json_array::{MAX_ITEMS, items};
use crate::message::JsonSlice;
use crate::raw_json::Members;

/// The most pages of one listing.
const MAX_PAGES: usize = 1_000;

/// A listing so far.
#[derive(Debug)]
pub(super) struct PartialList {
    method: &'static str,
    /// The member of each page that holds its items.
    member: &'static str,
    /// When it has to be whole, where that was said.
    deadline: Option<u64>,
    items: Vec<String>,
    cursors: BTreeSet<String>,
}

impl Client {
    /// Lists all tools, until `deadline`. Without one, each page may take as long as any request.
    pub fn list_tools(&mut self, now: u64, deadline: Option<u64>) -> OperationId {
        self.now = now;
        let operation = self.operation();
        if !self.require(operation, |capabilities| capabilities.tools) {
            return operation;
        }
        let listing = PartialList {
            method: "tools/list",
            member: "tools",
            deadline,
            items: Vec::new(),
            cursors: BTreeSet::new(),
        };
        self.next_page(operation, listing, None);
        operation
    }

    fn next_page(&mut self, operation: OperationId, listing: PartialList, cursor: Option<String>) {
        let params = match cursor {
            Some(cursor) => Members::new().with("cursor", cursor),
            None => Members::new(),
        };
        let soon = self.now.saturating_add(self.settings.timeout);
        let deadline = listing.deadline.unwrap_or(soon);
        let method = listing.method;
        let purpose = Purpose::List(listing);
        self.send_request(operation, method, &params, &Members::new(), false, deadline, purpose);
    }

    pub(super) fn listed(
        &mut self,
        operation: OperationId,
        mut listing: PartialList,
        result: Result<JsonSlice, Error>,
    ) {
        let page = match result {
            Ok(payload) => read_page(payload.get(), listing.member),
            // Declared and not there: as good as empty.
            Err(Error::Rpc { code: -32601, .. }) => Ok(Page { items: Vec::new(), next: None }),
            Err(error) => Err(error),
        };
        let Page { items, next } = match page {
            Ok(page) => page,
            Err(error) => return self.finish(operation, Err(error)),
        };
        listing.items.extend(items);
        let Some(cursor) = next else {
            return self.finish(operation, Ok(Outcome::Items(listing.items)));
        };
        let endless = !listing.cursors.insert(cursor.clone())
            || listing.cursors.len() >= MAX_PAGES
            || listing.items.len() >= MAX_ITEMS;
        if endless {
            let message = format!("{} does not end; what it gave so far is kept", listing.method);
            self.actions.push_back(Action::Skipped(message));
            listing.items.truncate(MAX_ITEMS);
            return self.finish(operation, Ok(Outcome::Items(listing.items)));
        }
        self.next_page(operation, listing, Some(cursor));
    }
}

/// A page of a listing.
struct Page {
    items: Vec<String>,
    /// An empty cursor is one, too.
    next: Option<String>,
}

fn read_page(result: &str, member: &str) -> Result<Page, Error> {
    let invalid =
        |problem: String| Error::Protocol(format!("the server's list is invalid: {problem}"));
    let page: BTreeMap<String, &RawValue> =
        serde_json::from_str(result).map_err(|error| invalid(error.to_string()))?;
    let read = match page.get(member) {
        // As languages write it in which an empty list is none.
        Some(none) if none.get() == "null" => Vec::new(),
        Some(all) => items(all.get()).map_err(|error| invalid(format!("{member}: {error}")))?,
        None => return Err(invalid(format!("it has no \"{member}\""))),
    };
    let next = page.get("nextCursor").and_then(|next| serde_json::from_str(next.get()).ok());
    Ok(Page { items: read.into_iter().map(|item| item.get().to_string()).collect(), next })
}
