//! Lock files of any text.

use std::path::Path;

use super::{LockError, LockFile};
use crate::manifest::is_id;

/// Any text. What is wrong with it is on one of its lines; what is right is the same when it is written and
/// read again, and looks the same each time.
pub fn lock_file(text: &str) {
    let path = Path::new("/no/such/tenon.lock");
    let lock = match LockFile::parse(text, path) {
        Ok(lock) => lock,
        Err(LockError::Invalid { line, problem, .. }) => {
            let lines = 1..=text.split('\n').count();
            assert!(lines.contains(&line), "there is no line {line}: {problem}");
            return assert!(!problem.trim().is_empty(), "line {line} is wrong for no reason");
        }
        Err(error) => panic!("nothing was to be read: {error}"),
    };
    for id in lock.plugins.keys() {
        assert!(is_id(id), "{id:?} is no id");
    }
    let written = lock.to_text().expect("what was read can be written");
    let again = LockFile::parse(&written, path).expect("what was written can be read");
    assert_eq!(again, lock, "written as:\n{written}");
    assert_eq!(again.to_text().expect("it was written"), written);
}
