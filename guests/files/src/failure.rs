//! What the file system says, as errors of the contract.

use std::io::{self, ErrorKind};

use tenon_sdk::Error;

/// Numbers of errors that the standard library has no kind for on WASI.
const NOT_EMPTY: i32 = 55;
const NOT_CAPABLE: i32 = 76;

/// Makes an error of the contract of a failure at a path.
pub(crate) fn at(path: &str) -> impl Fn(io::Error) -> Error {
    move |error| explain(path, &error)
}

fn explain(path: &str, error: &io::Error) -> Error {
    let told = |reason: &str| format!("\"{path}\": {reason}");
    let invalid = |reason: &str| Error::invalid_input(told(reason));
    let kind = match error.raw_os_error() {
        Some(NOT_EMPTY) if cfg!(target_os = "wasi") => ErrorKind::DirectoryNotEmpty,
        Some(NOT_CAPABLE) if cfg!(target_os = "wasi") => ErrorKind::PermissionDenied,
        _ => error.kind(),
    };
    match kind {
        // A folder that was not granted is not there at all.
        ErrorKind::NotFound => {
            Error::not_found(told("there is no such file or folder among those granted"))
        }
        ErrorKind::PermissionDenied => Error::denied(told("the host does not grant this")),
        ErrorKind::ReadOnlyFilesystem => Error::denied(told("it can only be read")),
        ErrorKind::AlreadyExists => invalid("it is there already"),
        ErrorKind::IsADirectory => invalid("it is a folder"),
        ErrorKind::NotADirectory => invalid("it is no folder"),
        ErrorKind::DirectoryNotEmpty => invalid("the folder is not empty"),
        ErrorKind::InvalidFilename | ErrorKind::InvalidInput => invalid("the path is not valid"),
        ErrorKind::CrossesDevices => invalid("the two are on different file systems"),
        ErrorKind::TimedOut => Error::timeout(told("the file system does not answer in time")),
        ErrorKind::WouldBlock | ErrorKind::ResourceBusy | ErrorKind::Interrupted => {
            Error::unavailable(told("it is in use"))
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            Error::failed(told("there is no space left"))
        }
        ErrorKind::FileTooLarge => Error::failed(told("the file would be too large")),
        _ => Error::failed(told(&error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_become_errors_that_name_the_path() {
        let check = |kind: ErrorKind, expected: Error| {
            assert_eq!(at("a/b")(kind.into()), expected);
        };
        check(
            ErrorKind::NotFound,
            Error::not_found("\"a/b\": there is no such file or folder among those granted"),
        );
        check(ErrorKind::PermissionDenied, Error::denied("\"a/b\": the host does not grant this"));
        check(ErrorKind::IsADirectory, Error::invalid_input("\"a/b\": it is a folder"));
        check(ErrorKind::StorageFull, Error::failed("\"a/b\": there is no space left"));
        check(ErrorKind::BrokenPipe, Error::failed("\"a/b\": broken pipe"));
    }
}
