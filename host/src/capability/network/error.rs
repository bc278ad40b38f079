//! What goes wrong on the wire, in the words of `wasi:http`. They say what a plugin can make
//! something of, and nothing of the machine it runs on.

use std::error::Error as _;
use std::io;

use tokio_rustls::rustls;
use wasmtime_wasi_http::Error;

pub(super) fn of_connect(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => Error::ConnectionRefused,
        io::ErrorKind::TimedOut => Error::ConnectionTimeout,
        _ => Error::DestinationUnavailable,
    }
}

pub(super) fn of_tls(error: io::Error) -> Error {
    match error.get_ref().and_then(|error| error.downcast_ref()) {
        Some(rustls::Error::InvalidCertificate(_)) => Error::TlsCertificateError,
        Some(rustls::Error::AlertReceived(alert)) => Error::TlsAlertReceived {
            alert_id: Some(u8::from(*alert)),
            alert_message: Some(format!("{alert:?}")),
        },
        Some(_) => Error::TlsProtocolError,
        None => Error::ConnectionTerminated,
    }
}

pub(super) fn of_hyper(error: hyper::Error) -> Error {
    if let Some(cause) = error.source().and_then(|cause| cause.downcast_ref::<Error>()) {
        // The plugin's own body was at fault, or too long.
        return match cause {
            Error::HttpRequestBodySize(size) => Error::HttpRequestBodySize(*size),
            other => Error::InternalError(Some(other.to_string())),
        };
    }
    if error.is_parse_too_large() {
        return Error::HttpResponseHeaderSectionSize(None);
    }
    if error.is_incomplete_message() {
        return Error::HttpResponseIncomplete;
    }
    if error.is_canceled() || error.is_closed() {
        return Error::ConnectionTerminated;
    }
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    match cause.map(io::Error::kind) {
        Some(io::ErrorKind::UnexpectedEof) => Error::HttpResponseIncomplete,
        None | Some(io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput) => {
            Error::HttpProtocolError
        }
        Some(_) => Error::ConnectionTerminated,
    }
}
