//! Files of approvals of any text.

use super::Content;

/// Any text. What is read is the same when it is written and read again.
pub(crate) fn approval_file(text: &str) {
    let Ok(content) = serde_json::from_str::<Content>(text) else { return };
    let written = serde_json::to_string_pretty(&content).expect("what was read can be written");
    let again: Content = serde_json::from_str(&written).expect("what was written can be read");
    assert_eq!(again, content, "written as:\n{written}");
}
