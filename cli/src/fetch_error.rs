//! What can go wrong when something is fetched.

use hyper::StatusCode;
use std::path::PathBuf;
use tenon_config::files::Digest;

/// Why a source does not give what it should.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    #[error("{what} has the wrong digest: expected {}, found {}", .expected.named(), .found.named())]
    Digest { what: String, expected: Digest, found: Digest },
    #[error("{what} is larger than {}", bytes(*.most))]
    TooLarge { what: String, most: u64 },
    #[error("refusing to contact {0} over plain HTTP")]
    Plain(String),
    #[error("refusing to send credentials to {0} over plain HTTP")]
    Exposed(String),
    #[error("{url} responded with {status}")]
    Status { url: String, status: StatusCode },
    #[error("{what}: authentication required")]
    Unauthorized {
        what: String,
        /// Whether there were credentials, which were not enough.
        known: bool,
    },
    #[error("{variable} names {}: {problem}", .path.display())]
    Authorities { variable: &'static str, path: PathBuf, problem: String },
    #[error("{url}: {problem}")]
    Failed { url: String, problem: String },
}

impl FetchError {
    /// Whether something was refused, and not just not there.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Digest { .. } | Self::TooLarge { .. } | Self::Plain(_) | Self::Exposed(_)
        )
    }

    /// The same, of something with a better name than its URL.
    pub(crate) fn about(self, name: &str) -> Self {
        match self {
            Self::TooLarge { most, .. } => Self::TooLarge { what: name.into(), most },
            error => error,
        }
    }

    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Digest { .. } => {
                Some("it was changed, or the digest is of something else; nothing was installed")
            }
            Self::Plain(_) => Some("use https, or `--insecure` to trust the network"),
            Self::Unauthorized { known: false, .. } => {
                Some("`docker login` and its like keep credentials in ~/.docker/config.json")
            }
            Self::Unauthorized { known: true, .. } => {
                Some("the credentials in ~/.docker/config.json are not enough")
            }
            Self::TooLarge { .. }
            | Self::Exposed(_)
            | Self::Status { .. }
            | Self::Authorities { .. }
            | Self::Failed { .. } => None,
        }
    }
}

/// How many bytes, in words.
fn bytes(most: u64) -> String {
    match most >> 20 {
        0 => format!("{most} bytes"),
        mib => format!("{mib} MiB"),
    }
}
