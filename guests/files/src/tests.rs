use super::*;
use std::env;
use std::path::PathBuf;

use tenon_sdk::testing::Host;
use tenon_sdk::{ErrorCode, Failure};

fn now<T>(future: impl Future<Output = T>) -> T {
    Host::new().run(future)
}

/// A folder that is gone after the test.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = env::temp_dir().join(format!("tenon-files-{}-{test}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

#[test]
fn what_was_written_is_read_piece_by_piece() {
    let folder = Folder::new("pieces");
    let path = folder.path("a.txt");
    let wrote = now(write_file(path.clone(), "größe".into(), None)).unwrap();
    assert_eq!(wrote, format!("wrote 7 bytes to \"{path}\""));
    now(write_file(path.clone(), "!".into(), Some(true))).unwrap();
    let check = |offset, limit, text: &str, next_offset| {
        let piece = now(read_file(path.clone(), offset, limit)).unwrap();
        assert_eq!(piece, Json(Piece { text: text.into(), next_offset }));
    };
    check(None, None, "größe!", None);
    check(None, Some(5), "grö", Some(4));
    check(Some(4), Some(4), "ße!", None);
    check(Some(99), None, "", None);
    now(write_file(path.clone(), "x".into(), None)).unwrap();
    check(None, None, "x", None);
}

#[test]
fn what_is_no_text_is_said_so() {
    let folder = Folder::new("binary");
    let path = folder.path("a");
    fs::write(&path, b"\xff\xfe").unwrap();
    let expected = format!("\"{path}\" is no text in UTF-8 at offset 0");
    assert_eq!(
        now(read_file(path, None, None)),
        Err(Failure::Error(Error::invalid_input(expected)))
    );
    let error = Error::invalid_input("limit is 3: between 4 and 8388608 bytes are read");
    assert_eq!(now(read_file("a".into(), None, Some(3))), Err(Failure::Error(error)));
}

#[test]
fn folders_are_made_listed_searched_and_removed() {
    let folder = Folder::new("folders");
    now(make_dir(folder.path("b/c"))).unwrap();
    now(make_dir(folder.path("b"))).unwrap();
    now(write_file(folder.path("a.txt"), "1".into(), None)).unwrap();
    now(write_file(folder.path("b/c/d.txt"), "1".into(), None)).unwrap();

    let Json(listing) = now(list_dir(folder.path(""))).unwrap();
    let entry = |name: &str, kind| Entry { name: name.into(), kind };
    assert_eq!(listing.entries, [entry("a.txt", Kind::File), entry("b", Kind::Folder)]);

    let root = folder.0.to_str().unwrap();
    let Json(found) = now(find(root.into(), "*.txt".into())).unwrap();
    assert_eq!(found.paths, [folder.path("a.txt"), folder.path("b/c/d.txt")]);

    let full = now(remove(folder.path("b"))).unwrap_err();
    let expected = format!("\"{}\": the folder is not empty", folder.path("b"));
    assert_eq!(full, Failure::Error(Error::invalid_input(expected)));

    now(rename(folder.path("b/c/d.txt"), folder.path("e.txt"))).unwrap();
    now(remove(folder.path("b/c"))).unwrap();
    now(remove(folder.path("e.txt"))).unwrap();
    let Json(status) = now(stat(folder.path("a.txt"))).unwrap();
    assert_eq!((status.kind, status.size), (Kind::File, 1));
    let gone = now(stat(folder.path("e.txt"))).unwrap_err();
    assert!(matches!(gone, Failure::Error(Error { code: ErrorCode::NotFound, .. })));
}

#[test]
fn a_pattern_is_a_name() {
    let check = |pattern: &str| {
        let error = now(find(".".into(), pattern.into())).unwrap_err();
        assert!(matches!(error, Failure::Error(Error { code: ErrorCode::InvalidInput, .. })));
    };
    check("");
    check("a/b");
}
