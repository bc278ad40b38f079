//! References to what is in a registry: `oci://registry/repository[:tag][@sha256:digest]`.

use std::fmt;
use std::str::FromStr;
use tenon_config::files::Digest;

/// The scheme that a reference begins with.
pub(crate) const SCHEME: &str = "oci://";

/// The tag that is meant where none is named.
const LATEST: &str = "latest";

/// What of a registry is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reference {
    /// The registry's host, and its port where one is named.
    pub(crate) registry: String,
    pub(crate) repository: String,
    /// The tag; where there is a digest it says nothing.
    pub(crate) tag: Option<String>,
    pub(crate) digest: Option<Digest>,
}

impl Reference {
    /// The same, bound to a digest.
    pub(crate) fn bound(&self, digest: Digest) -> Self {
        Self { digest: Some(digest), ..self.clone() }
    }

    /// What the registry is asked for: a digest, or a tag.
    pub(crate) fn wanted(&self) -> String {
        match (&self.digest, &self.tag) {
            (Some(digest), _) => digest.named(),
            (None, Some(tag)) => tag.clone(),
            (None, None) => LATEST.into(),
        }
    }

    /// The last part of the repository's name.
    pub(crate) fn name(&self) -> &str {
        self.repository.rsplit('/').next().unwrap_or(&self.repository)
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { registry, repository, tag, digest } = self;
        write!(f, "{SCHEME}{registry}/{repository}")?;
        if let Some(tag) = tag {
            write!(f, ":{tag}")?;
        }
        match digest {
            Some(digest) => write!(f, "@{}", digest.named()),
            None => Ok(()),
        }
    }
}

impl FromStr for Reference {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rest = text.strip_prefix(SCHEME).ok_or("it does not begin with `oci://`")?;
        let (registry, rest) =
            rest.split_once('/').ok_or("it names no repository: `oci://REGISTRY/REPOSITORY`")?;
        if !is_host(registry) {
            return Err(format!("`{registry}` is not HOST or HOST:PORT"));
        }
        let (rest, digest) = match rest.split_once('@') {
            Some((rest, digest)) => {
                (rest, Some(digest.parse().map_err(|error| format!("`{digest}`: {error}"))?))
            }
            None => (rest, None),
        };
        let (repository, tag) = match rest.split_once(':') {
            Some((repository, tag)) => (repository, Some(tag)),
            None => (rest, None),
        };
        if repository.len() > 255 || !repository.split('/').all(is_part) {
            return Err(format!(
                "invalid repository name `{repository}`: a-z, 0-9 and `.`, `_`, `-` between them, with `/` between the parts"
            ));
        }
        if let Some(tag) = tag.filter(|tag| !is_tag(tag)) {
            return Err(format!(
                "invalid tag `{tag}`: 1 to 128 characters of A-Z, a-z, 0-9, `_`, `.` and `-`"
            ));
        }
        Ok(Self {
            registry: registry.to_string(),
            repository: repository.to_string(),
            tag: tag.map(Into::into),
            digest,
        })
    }
}

/// What is no more than a host and a port cannot lead the client elsewhere.
fn is_host(text: &str) -> bool {
    url::Url::parse(&format!("https://{text}/")).is_ok_and(|url| {
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        let host = url.host_str().unwrap_or_default();
        !host.is_empty() && (format!("{host}{port}") == text || format!("{host}:443") == text)
    })
}

fn is_part(part: &str) -> bool {
    let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c);
    ends(part.chars().next())
        && ends(part.chars().last())
        && part.chars().all(allowed)
        && !part.contains("..")
}

fn is_tag(tag: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    (1..=128).contains(&tag.len()) && tag.chars().all(allowed) && !tag.starts_with(['.', '-'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_read_and_written() {
        let digest = Digest::of("x");
        let check =
            |text: &str, registry: &str, repository: &str, tag: Option<&str>, bound: bool| {
                let reference: Reference = text.parse().unwrap();
                assert_eq!(reference.registry, registry, "{text}");
                assert_eq!(reference.repository, repository, "{text}");
                assert_eq!(reference.tag.as_deref(), tag, "{text}");
                assert_eq!(reference.digest, bound.then_some(digest), "{text}");
                assert_eq!(reference.to_string(), text);
            };
        check("oci://ghcr.io/acme/tools", "ghcr.io", "acme/tools", None, false);
        check("oci://ghcr.io/tools:1.0", "ghcr.io", "tools", Some("1.0"), false);
        check("oci://localhost:5000/a/b", "localhost:5000", "a/b", None, false);
        check("oci://[::1]:5000/a", "[::1]:5000", "a", None, false);
        let both = format!("oci://localhost:5000/a/b:tag@{}", digest.named());
        check(&both, "localhost:5000", "a/b", Some("tag"), true);
        let bound = format!("oci://example.org:443/a/b@{}", digest.named());
        check(&bound, "example.org:443", "a/b", None, true);
    }

    #[test]
    fn what_could_lead_elsewhere_is_no_reference() {
        let check = |text: &str, expected: &str| {
            let problem = text.parse::<Reference>().unwrap_err();
            assert!(problem.contains(expected), "{text}: {problem}");
        };
        check("https://ghcr.io/a", "does not begin with `oci://`");
        check("oci://ghcr.io", "names no repository");
        check("oci:///a", "is not HOST or HOST:PORT");
        check("oci://user@ghcr.io/a", "is not HOST or HOST:PORT");
        check("oci://user:word@ghcr.io/a", "is not HOST or HOST:PORT");
        check("oci://ghcr.io?x/a", "is not HOST or HOST:PORT");
        check("oci://GHCR.io/a", "is not HOST or HOST:PORT");
        check("oci://ghcr.io/", "invalid repository name");
        check("oci://ghcr.io/a/../b", "invalid repository name");
        check("oci://ghcr.io/A", "invalid repository name");
        check("oci://ghcr.io/a?x=y", "invalid repository name");
        check("oci://ghcr.io/a:", "invalid tag");
        check("oci://ghcr.io/a:b/c", "invalid tag");
        check("oci://ghcr.io/a@sha256:12", "invalid digest");
        check("oci://ghcr.io/a@sha512:12", "invalid digest");
    }
}
