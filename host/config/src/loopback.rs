//! Which URLs name this machine, without resolving a name.

use url::{Host, Url};

/// Whether a URL names `localhost` or a loopback address. What is sent there does not leave the machine, so it needs
/// no TLS.
///
/// ```
/// # use tenon_config::loopback::is_loopback;
/// let check = |url: &str| is_loopback(&url::Url::parse(url).expect("it is a URL"));
/// assert!(check("http://localhost:5000") && check("http://127.0.0.2") && check("http://[::1]"));
/// assert!(!check("http://localhost.example.com") && !check("http://10.0.0.1"));
/// ```
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
