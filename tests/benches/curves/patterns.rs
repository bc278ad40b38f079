//! By the number of patterns: what one decision costs about a file, a request and a tool. The pattern that fits is the last
//! one, so that all are looked at where they are looked at one by one. A manifest has at most a hundred values for each
//! capability; lists of tools are as long as an operator makes them.

use tenon_config::ToolFilter;
use tenon_config::grant::{FileRules, PathGrant, ProtectedPaths, UrlGrant};
use tenon_host::testing::UrlGrants;

use crate::curve::{Curve, CurveReport};
use crate::support::time;

const SIZES: &[usize] = &[1, 10, 100, 1_000, 10_000];

pub(crate) async fn all(report: &mut CurveReport) {
    let curve = |what| Curve::new(what, "patterns", 1.0, "they are tried one after the other");
    let mut file = curve("whether a file may be read");
    let mut url = curve("whether a request may be sent");
    let mut tool = curve("whether a tool is wanted");
    for &size in SIZES {
        let last = size - 1;
        let grants = (0..size).map(|i| {
            let grant = PathGrant::parse_approved(&format!("read:/data/folder{i}/**/*.txt"));
            grant.expect("it is a grant")
        });
        let rules = FileRules::new(vec![grants.collect()], Vec::new(), ProtectedPaths::default());
        let granted = format!("/data/folder{last}/a/b/notes.txt");
        let other = format!("/data/folder{last}/a/b/notes.md");
        file.time(
            size,
            time(async || {
                assert!(rules.rights(&granted).read.here);
                assert!(!rules.rights(&other).read.here);
            })
            .await
                / 2,
        );

        let grants = (0..size).map(|i| {
            let grant = UrlGrant::parse(&format!("GET https://host{i}.example.com/v1/*"));
            grant.expect("it is a grant")
        });
        let rules = UrlGrants::new(grants);
        let granted = format!("https://host{last}.example.com/v1/notes");
        let other = format!("https://host{last}.example.com/v2/notes");
        url.time(
            size,
            time(async || {
                assert!(rules.allows_get(&granted));
                assert!(!rules.allows_get(&other));
            })
            .await
                / 2,
        );

        let patterns = (0..size).map(|i| format!("folder{i}_*"));
        let filter = ToolFilter { enabled: Some(patterns.collect()), ..ToolFilter::default() };
        let granted = format!("folder{last}_read");
        tool.time(
            size,
            time(async || {
                assert!(filter.leaves_out(&granted).is_none());
                assert!(filter.leaves_out("read").is_some());
            })
            .await
                / 2,
        );
    }
    for curve in [file, url, tool] {
        report.add(curve);
    }
}
