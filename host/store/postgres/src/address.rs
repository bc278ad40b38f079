//! Reads the address of a database. There may be a password in it, so no error shows any part of it.

use postgres::Config;
use postgres::config::{Host, SslMode};
use std::error::Error;
use std::time::Duration;

/// Why an address is none.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AddressError {
    #[error("in the address, write special characters of a password percent-encoded, `@` as `%40`")]
    NotEncoded,
    #[error("the address has an {0}")]
    Value(String),
    #[error("the address is none of PostgreSQL, or has an option that is not known")]
    Unknown,
}

/// How long it may take to connect where the address does not say (`connect_timeout`): nobody waits longer for a host that does not
/// answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Reads an address. Through a Unix socket there is no TLS, whatever it says.
///
/// # Errors
///
/// Where it is none.
pub(crate) fn parse(text: &str) -> Result<Config, AddressError> {
    check_credentials(text)?;
    // A server with TLS has to prove that it is the host of the address in any case.
    let verified = |text: String, before: &str| {
        text.replace(&format!("{before}sslmode=verify-full"), &format!("{before}sslmode=require"))
    };
    let text = ["?", "&", " "].into_iter().fold(text.to_string(), verified);
    let mut config: Config = text.parse().map_err(reason)?;
    let is_local = config.get_hosts().iter().all(is_socket) && config.get_hostaddrs().is_empty();
    if is_local {
        config.ssl_mode(SslMode::Disable);
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(CONNECT_TIMEOUT);
    }
    Ok(config)
}

/// A URL with one of these characters in its password is read as one of another host or database, and errors name those.
fn check_credentials(text: &str) -> Result<(), AddressError> {
    let rest = ["postgres://", "postgresql://"].iter().find_map(|start| text.strip_prefix(start));
    let Some((credentials, rest)) = rest.and_then(|rest| rest.split_once('@')) else {
        return Ok(());
    };
    match credentials.contains(['/', '?']) || rest.contains('@') {
        true => Err(AddressError::NotEncoded),
        false => Ok(()),
    }
}

/// What is wrong with a value names its option only. Elsewhere a part of a password may stand for the name of an option.
fn reason(error: postgres::Error) -> AddressError {
    let text = error.source().map(ToString::to_string).unwrap_or_default();
    match text.starts_with("invalid value for option `") {
        true => AddressError::Value(text),
        false => AddressError::Unknown,
    }
}

fn is_socket(host: &Host) -> bool {
    match host {
        Host::Tcp(_) => false,
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::{SslMode, parse};

    /// Checks what is said of an address that has a password with `SECRET` in it.
    fn check(text: &str, expected: &str) {
        let error = parse(text).expect_err(text);
        assert_eq!(error.to_string(), expected, "{text}");
        assert!(!format!("{error:?}").contains("SECRET"), "{text}: {error:?}");
    }

    #[test]
    fn an_address_that_is_none_says_why_without_a_password() {
        let value = |option| format!("the address has an invalid value for option `{option}`");
        check("postgresql://a:SECRET@h:x/b", &value("port"));
        check("postgresql://a:SECRET@h/b?sslmode=verify-ca", &value("sslmode"));
        check("host=h password=SECRET sslmode=SECRET", &value("sslmode"));
        let unknown = "the address is none of PostgreSQL, or has an option that is not known";
        check("postgresql://h/b?user=a&password=1&SECRET=2", unknown);
        check("postgresql://h/b?user=a&password=1&SECRET", unknown);
        check("host=h password=1 SECRET=2", unknown);
        check("host=h password=1 SECRET", unknown);
        check("host=h password='SECRET", unknown);
        check("mysql://a:SECRET@h/b", unknown);
        let encode =
            "in the address, write special characters of a password percent-encoded, `@` as `%40`";
        check("postgresql://a:1@SECRET@h/b", encode);
        check("postgres://a:1@2/SECRET@h/b", encode);
        check("postgresql://a:1/SECRET@h/b", encode);
        check("postgresql://a:1?SECRET@h/b", encode);
        check("postgresql://h/b?user=a&password=1@SECRET", encode);
        assert!(parse("postgresql://a:%40%2F%3FSECRET@h/b").is_ok());
        assert!(parse("host=h user=a password=@/?SECRET").is_ok());
        for verified in ["postgresql://h/b?sslmode=verify-full", "host=h sslmode=verify-full"] {
            assert_eq!(parse(verified).unwrap().get_ssl_mode(), SslMode::Require, "{verified}");
        }
    }
}
