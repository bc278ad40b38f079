//! The revisions of the protocol.

/// The revision in which each request stands for itself.
pub(crate) const MODERN: &str = "2026-07-28";

/// The revisions that begin with `initialize`, the newest first.
pub(crate) const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// What clients speak that send no `MCP-Protocol-Version`.
pub(crate) const WITHOUT_HEADER: &str = "2025-03-26";

/// All revisions, the newest first.
pub(crate) fn all() -> impl Iterator<Item = &'static str> {
    [MODERN].into_iter().chain(LEGACY)
}

/// How a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    /// In sessions that begin with `initialize`.
    Legacy,
    /// In requests that stand for themselves.
    Modern,
}

/// The legacy revision that a session gets whose client asks for this one.
pub(crate) fn negotiate(requested: &str) -> &'static str {
    LEGACY.into_iter().find(|known| *known == requested).unwrap_or(LEGACY[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_gets_its_revision_or_the_newest_of_its_era() {
        assert_eq!(negotiate("2024-11-05"), "2024-11-05");
        assert_eq!(negotiate("2025-11-25"), "2025-11-25");
        for unknown in ["", "2023-01-01", MODERN, "x"] {
            assert_eq!(negotiate(unknown), "2025-11-25", "{unknown}");
        }
    }
}
