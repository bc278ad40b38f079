//! Where requests go.

use crate::Error;
use url::{Position, Url};

/// Reads a URL that a request can go to: `http` or `https`, and without a name and password.
///
/// # Errors
///
/// [`ErrorCode::InvalidInput`](crate::ErrorCode::InvalidInput) with the reason. It does not repeat a password.
pub fn parse(text: &str) -> Result<Url, Error> {
    let invalid = |reason: String| Err(Error::invalid_input(reason));
    match Url::parse(text) {
        Err(error) => invalid(format!("the URL is not valid: {error}")),
        Ok(url) if !matches!(url.scheme(), "http" | "https") => {
            invalid(format!("the scheme \"{}\" is not supported: use http or https", url.scheme()))
        }
        Ok(url) if !url.username().is_empty() || url.password().is_some() => {
            invalid("the URL holds credentials: pass them in a header".into())
        }
        Ok(url) => Ok(url),
    }
}

/// A URL as errors show it: without query and fragment.
pub fn shown(url: &Url) -> String {
    url[..Position::AfterPath].to_string()
}

/// The name or address of the host, with the port where it is not the scheme's own.
#[cfg(any(target_arch = "wasm32", test, fuzzing))]
pub(super) fn authority(url: &Url) -> String {
    url[Position::BeforeHost..Position::AfterPort].to_string()
}

#[cfg(any(target_arch = "wasm32", test, fuzzing))]
pub(super) fn path_with_query(url: &Url) -> String {
    url[Position::BeforePath..Position::AfterQuery].to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_come_apart() {
        let check = |text: &str, expected: [&str; 3]| {
            let url = parse(text).unwrap();
            assert_eq!([authority(&url), path_with_query(&url), shown(&url)], expected, "{text}");
        };
        check("https://a.test", ["a.test", "/", "https://a.test/"]);
        check("https://A.test:443/x?y=z#w", ["a.test", "/x?y=z", "https://a.test/x"]);
        check(
            "http://127.0.0.1:8080/a b",
            ["127.0.0.1:8080", "/a%20b", "http://127.0.0.1:8080/a%20b"],
        );
        check("http://[::1]:80/", ["[::1]", "/", "http://[::1]/"]);
        check("http://a.test/../..?q", ["a.test", "/?q", "http://a.test/"]);
    }

    #[test]
    fn what_is_no_target_is_refused() {
        let check = |text: &str, expected: &str| {
            assert_eq!(parse(text), Err(Error::invalid_input(expected)), "{text}");
        };
        check("nothing", "the URL is not valid: relative URL without a base");
        check("https://", "the URL is not valid: empty host");
        check("file:///etc/passwd", "the scheme \"file\" is not supported: use http or https");
        check("https://me:word@a.test", "the URL holds credentials: pass them in a header");
    }
}
