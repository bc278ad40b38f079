//! What the host says of a request that failed, as errors of the contract.

use wasip3::http::types::ErrorCode as Code;

use super::{Url, shown};
use crate::Error;

/// The most characters of the host's own words to repeat.
const MOST_WORDS: usize = 300;

/// A failure on the way to a URL.
pub(super) fn explain(code: &Code, url: &Url) -> Error {
    let target = shown(url);
    let told = |reason: &str| format!("{target}: {reason}");
    let timeout = |reason: &str| Error::timeout(told(reason));
    let invalid = |reason: &str| Error::invalid_input(told(reason));
    let failed = |reason: &str| Error::failed(told(reason));
    let unavailable = |reason: &str| Error::unavailable(told(reason));
    match code {
        // `wasi:http` has no words for the reason. The host adds its own to the failure of the call.
        Code::HttpRequestDenied => Error::denied(format!(
            "the host refused the request to {target}; plugin.toml requests it with `network = [\"{}/*\"]` under \
             [capabilities]",
            url.origin().ascii_serialization()
        )),
        Code::DestinationIpProhibited => Error::denied(format!(
            "the host refused the request to {target}: plugins may not reach that address"
        )),

        Code::DnsTimeout => timeout("the name was not resolved in time"),
        Code::ConnectionTimeout => timeout("no connection in time"),
        Code::ConnectionReadTimeout | Code::HttpResponseTimeout => timeout("no answer in time"),
        Code::ConnectionWriteTimeout => timeout("the request was not taken in time"),

        Code::HttpRequestMethodInvalid => invalid("the method is not valid"),
        Code::HttpRequestUriInvalid => invalid("the URL is not valid"),
        Code::HttpRequestUriTooLong => invalid("the URL is too long"),
        Code::HttpRequestLengthRequired => invalid("the request needs a length"),
        Code::HttpRequestBodySize(_) => invalid("the body of the request is too long"),
        Code::HttpRequestHeaderSectionSize(_)
        | Code::HttpRequestHeaderSize(_)
        | Code::HttpRequestTrailerSectionSize(_)
        | Code::HttpRequestTrailerSize(_) => invalid("the headers of the request are too long"),

        Code::HttpResponseHeaderSectionSize(_)
        | Code::HttpResponseHeaderSize(_)
        | Code::HttpResponseTrailerSectionSize(_)
        | Code::HttpResponseTrailerSize(_) => failed("the headers of the answer are too long"),
        Code::HttpResponseBodySize(_) => failed("the answer is too long"),
        Code::ConfigurationError => failed("the host is not set up for this request"),
        Code::LoopDetected => failed("the request came back to where it started"),

        Code::DnsError(_) => unavailable("the name does not resolve"),
        Code::DestinationNotFound => unavailable("there is no such destination"),
        Code::DestinationUnavailable => unavailable("the destination is not available"),
        Code::DestinationIpUnroutable => unavailable("there is no way to the destination"),
        Code::ConnectionRefused => unavailable("the connection was refused"),
        Code::ConnectionTerminated => unavailable("the connection broke off"),
        Code::ConnectionLimitReached => unavailable("too many connections"),
        Code::TlsProtocolError => unavailable("TLS failed"),
        Code::TlsCertificateError => unavailable("the certificate is not valid"),
        Code::TlsAlertReceived(alert) => match &alert.alert_message {
            Some(message) => unavailable(&format!("TLS failed: {}", words(message))),
            None => unavailable("TLS failed"),
        },
        Code::HttpResponseIncomplete => unavailable("the answer broke off"),
        Code::HttpResponseTransferCoding(_) | Code::HttpResponseContentCoding(_) => {
            unavailable("the coding of the answer is not known")
        }
        Code::HttpUpgradeFailed | Code::HttpProtocolError => {
            unavailable("the answer broke off, or is no valid HTTP")
        }
        Code::InternalError(Some(message)) => unavailable(&words(message)),
        Code::InternalError(None) => unavailable("the request failed"),
    }
}

fn words(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MOST_WORDS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wasip3::http::types::DnsErrorPayload;

    #[test]
    fn every_kind_of_failure_is_its_own_error() {
        let url = Url::parse("https://api.test/v1?key=secret").unwrap();
        let check = |code: Code, expected: Error| assert_eq!(explain(&code, &url), expected);
        let unavailable = |message: &str| Error::unavailable(message);
        check(
            Code::HttpRequestDenied,
            Error::denied(
                "the host refused the request to https://api.test/v1; plugin.toml requests it with `network = \
                 [\"https://api.test/*\"]` under [capabilities]",
            ),
        );
        check(
            Code::ConnectionReadTimeout,
            Error::timeout("https://api.test/v1: no answer in time"),
        );
        check(
            Code::HttpRequestUriTooLong,
            Error::invalid_input("https://api.test/v1: the URL is too long"),
        );
        check(
            Code::HttpResponseBodySize(Some(1)),
            Error::failed("https://api.test/v1: the answer is too long"),
        );
        check(
            Code::ConnectionRefused,
            unavailable("https://api.test/v1: the connection was refused"),
        );
        check(
            Code::DnsError(DnsErrorPayload { rcode: Some("NXDOMAIN".into()), info_code: None }),
            unavailable("https://api.test/v1: the name does not resolve"),
        );
        check(
            Code::InternalError(Some("out of\nsockets".into())),
            unavailable("https://api.test/v1: out of sockets"),
        );
    }

    #[test]
    fn the_words_of_the_host_are_cut() {
        let url = Url::parse("https://t").unwrap();
        let told = explain(&Code::InternalError(Some("x".repeat(9999))), &url);
        assert_eq!(told.message.len(), "https://t/: ".len() + MOST_WORDS);
    }
}
