//! Headers of modern requests: they repeat what the body says, so that what stands between client and server can see
//! it. Where they say something else, the request is refused.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper::header::{HeaderMap, HeaderName};
use serde_json::Value;
use std::borrow::Cow;

use crate::offer::HeaderArgument;
use crate::protocol::error::RpcError;

pub(super) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The value of a header; an error where there are several, or it is no visible text.
fn value<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, RpcError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(RpcError::header_mismatch(format!("the header {name} is there twice")));
    }
    let text = value.to_str().map(str::trim);
    text.map(Some).map_err(|_| {
        RpcError::header_mismatch(format!("the header {name} has characters that no header has"))
    })
}

/// The same, decoded: `=?base64?…?=` stands for text that no header can have.
fn decoded<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<Cow<'a, str>>, RpcError> {
    let Some(text) = value(headers, name)? else { return Ok(None) };
    let encoded = text.strip_prefix("=?base64?").and_then(|text| text.strip_suffix("?="));
    let Some(encoded) = encoded else { return Ok(Some(text.into())) };
    let bytes = BASE64_STANDARD.decode(encoded).ok();
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    text.map(|text| Some(text.into())).ok_or_else(|| {
        RpcError::header_mismatch(format!("the header {name} is not base64 of text"))
    })
}

/// The revision that the header names.
pub(super) fn version(headers: &HeaderMap) -> Result<Option<&str>, RpcError> {
    value(headers, VERSION.as_str())
}

/// Checks that the header names the revision that the body names.
pub(super) fn check_version(headers: &HeaderMap, of_body: &str) -> Result<(), RpcError> {
    match version(headers)? {
        Some(of_header) if of_header == of_body => Ok(()),
        Some(of_header) => Err(RpcError::header_mismatch(format!(
            "the header {VERSION} says {of_header:?}, and the body {of_body:?}"
        ))),
        None => Err(RpcError::header_mismatch(format!("the header {VERSION} is missing"))),
    }
}

/// Checks that the header names the method of the body.
pub(super) fn check_method(headers: &HeaderMap, of_body: &str) -> Result<(), RpcError> {
    check(&METHOD, value(headers, METHOD.as_str())?, of_body, "method")
}

/// Checks that the header names what the body does: a tool, a prompt, a resource.
pub(super) fn check_name(headers: &HeaderMap, of_body: &str) -> Result<(), RpcError> {
    check(&NAME, decoded(headers, NAME.as_str())?.as_deref(), of_body, "name")
}

fn check(
    header: &HeaderName,
    found: Option<&str>,
    of_body: &str,
    what: &str,
) -> Result<(), RpcError> {
    match found {
        Some(found) if found == of_body => Ok(()),
        Some(_) => Err(RpcError::header_mismatch(format!(
            "the header {header} is not the {what} of the body"
        ))),
        None => Err(RpcError::header_mismatch(format!("the header {header} is missing"))),
    }
}

/// Checks that the headers say what these arguments do.
pub(super) fn check_arguments(
    headers: &HeaderMap,
    marked: &[HeaderArgument],
    arguments: &Value,
) -> Result<(), RpcError> {
    for argument in marked {
        let header = decoded(headers, &argument.header)?;
        argument.check(arguments, header.as_deref()).map_err(RpcError::header_mismatch)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &HeaderName, values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name, hyper::header::HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn a_marked_argument_is_what_its_header_says() {
        let schema = r#"{"properties":{"region":{"type":"string","x-mcp-header":"Region"}}}"#;
        let (marked, _) = HeaderArgument::take(schema);
        let region = HeaderName::from_static("mcp-param-region");
        let check = |values: &[&str], is_good: bool| {
            let arguments = serde_json::json!({ "region": "eu" });
            let checked = check_arguments(&headers(&region, values), &marked, &arguments);
            assert_eq!(checked.is_ok(), is_good, "{values:?}");
        };
        check(&["eu"], true);
        check(&["=?base64?ZXU=?="], true);
        check(&["us"], false);
        check(&[], false);
        check(&["eu", "eu"], false);
    }

    #[test]
    fn a_name_is_what_the_body_says_written_in_either_way() {
        let check = |values: &[&str], name: &str, is_good: bool| {
            let checked = check_name(&headers(&NAME, values), name);
            assert_eq!(checked.is_ok(), is_good, "{values:?} {name}");
            assert!(checked.is_ok() || checked.unwrap_err().code == -32020);
        };
        check(&["tool"], "tool", true);
        check(&["  tool  "], "tool", true);
        check(&["=?base64?SGVsbG8=?="], "Hello", true);
        check(&["SGVsbG8="], "SGVsbG8=", true);
        check(&["=?base64?SGVsbG8="], "=?base64?SGVsbG8=", true);
        check(&["=?base64?w7Y=?="], "\u{f6}", true);
        check(&["Tool"], "tool", false);
        check(&["=?base64?SGVsbG8?="], "Hello", false);
        check(&["=?base64?SGVs!!!bG8=?="], "Hello", false);
        check(&["=?base64?/w==?="], "x", false);
        check(&["tool", "tool"], "tool", false);
        check(&[], "tool", false);
    }

    #[test]
    fn a_method_and_a_revision_are_those_of_the_body() {
        assert!(check_method(&headers(&METHOD, &["tools/list"]), "tools/list").is_ok());
        assert!(check_method(&headers(&METHOD, &["TOOLS/LIST"]), "tools/list").is_err());
        assert!(check_method(&HeaderMap::new(), "tools/list").is_err());
        assert!(check_version(&headers(&VERSION, &["x"]), "x").is_ok());
        assert!(check_version(&headers(&VERSION, &["x"]), "y").is_err());
        assert!(check_version(&HeaderMap::new(), "x").is_err());
    }
}
