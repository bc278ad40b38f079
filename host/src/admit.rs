//! Step two: whether a candidate may be loaded. A pure function.
//!
//! What the operator's configuration names is trusted to load. What it *requests* is another
//! matter: a capability is lent only where somebody approved it.

use crate::capability::{Capability, Lent};
use crate::discover::Candidate;

/// Who approved what. Nobody has approved anything: this host does not ask yet.
#[derive(Debug, Clone, Default)]
pub struct Approvals {}

/// A candidate that may be loaded.
#[derive(Debug)]
pub struct Admitted {
    candidate: Candidate,
}

impl Admitted {
    /// The candidate, for the next step.
    pub(crate) fn into_candidate(self) -> Candidate {
        self.candidate
    }
}

/// Why a candidate is not loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It requests something that no host has.
    #[error("it requests the capability `{name}`, which does not exist; there are {}", known())]
    Unknown {
        /// The key in the manifest.
        name: String,
    },
    /// It requests a capability that nobody has approved.
    #[error("it requests `{name} = {values:?}`, which is not granted")]
    NotApproved {
        /// The capability.
        name: String,
        /// What it wants of it.
        values: Vec<String>,
    },
}

impl Refusal {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "correct the name under [capabilities] in its plugin.toml",
            Self::NotApproved { .. } => {
                "this version of Tenon grants no capabilities: remove the line from [capabilities] in \
                 its plugin.toml if the plugin can do without"
            }
        }
    }
}

/// Admits a candidate, or says why not.
///
/// # Errors
///
/// The first reason that speaks against it.
pub fn admit(candidate: Candidate, approvals: &Approvals) -> Result<Admitted, Refusal> {
    let Approvals {} = approvals;
    for (name, values) in &candidate.requests {
        let known = Capability::named(name).is_some_and(is_requestable);
        if !known {
            return Err(Refusal::Unknown { name: name.clone() });
        }
        if !values.is_empty() {
            return Err(Refusal::NotApproved { name: name.clone(), values: values.clone() });
        }
    }
    Ok(Admitted { candidate })
}

fn is_requestable(capability: &Capability) -> bool {
    matches!(capability.lent, Lent::OnRequest(_))
}

fn known() -> String {
    let names =
        crate::capability::CAPABILITIES.iter().filter(|capability| is_requestable(capability));
    names.map(|capability| capability.name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::discover::discover;
    use crate::surroundings::Surroundings;

    fn check(requests: &[(&str, &[&str])], expected: Result<(), &str>) {
        let config = Config::parse("plugins.wasm = [\"a.wasm\"]", "tenon.toml").unwrap();
        let mut candidate = discover(&[config], &Surroundings::default()).candidates.remove(0);
        candidate.requests = { requests.iter() }
            .map(|(name, values)| {
                (name.to_string(), values.iter().map(|v| v.to_string()).collect())
            })
            .collect();
        let admitted = admit(candidate, &Approvals::default());
        assert_eq!(
            admitted.map(drop).map_err(|refusal| refusal.to_string()),
            expected.map_err(Into::into)
        );
    }

    #[test]
    fn rows() {
        check(&[], Ok(()));
        check(&[("network", &[])], Ok(()));
        check(
            &[("network", &["https://x/*"])],
            Err("it requests `network = [\"https://x/*\"]`, which is not granted"),
        );
        check(
            &[("netwrok", &["x"])],
            Err(
                "it requests the capability `netwrok`, which does not exist; there are filesystem, \
                 network, environment, secrets, services, providers, tools",
            ),
        );
        check(
            &[("stdio-child", &["x"])],
            Err("it requests the capability `stdio-child`, which does \
                 not exist; there are filesystem, network, environment, secrets, services, providers, tools"),
        );
    }
}
