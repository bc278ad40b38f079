//! What a component needs, held against what its manifest requests and what was granted.

use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

use super::{CAPABILITIES, CapabilityRow, ENVIRONMENT, Eligibility};

/// Values by the names of capabilities.
type CapabilityValues = BTreeMap<String, Vec<String>>;

/// How a component stands to one capability that is lent on request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CapabilityStatus {
    /// The capability.
    pub capability: &'static str,
    /// The imports through which it is used.
    pub imports: Vec<String>,
    /// What the manifest requests of it.
    pub requested: Vec<String>,
    /// What was granted of it.
    pub granted: Vec<String>,
    /// What that comes to.
    pub verdict: NeedStatus,
}

/// Whether a request fits what a component imports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum NeedStatus {
    /// What is imported is requested, and granted.
    Granted,
    /// What is imported is requested, and not granted.
    NotGranted,
    /// It is imported and not requested: the component cannot be loaded.
    NotRequested,
    /// It could be used through what every component may import, and is not requested.
    Possible,
    /// It is requested, and nothing of it is imported.
    NotUsed,
}

impl fmt::Display for NeedStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Granted => "granted",
            Self::NotGranted => "requested and not granted",
            Self::NotRequested => "under-declared: imported and not requested",
            Self::Possible => "possible and not requested",
            Self::NotUsed => "over-declared: requested and not imported",
        })
    }
}

impl NeedStatus {
    /// Whether manifest and component do not fit each other.
    pub fn is_misdeclared(self) -> bool {
        matches!(self, Self::NotRequested | Self::NotUsed)
    }
}

impl CapabilityStatus {
    /// How a component with these imports stands to each capability that it uses or requests.
    pub fn all(
        imports: &[String],
        requested: &CapabilityValues,
        granted: &CapabilityValues,
    ) -> Vec<Self> {
        let of =
            |values: &CapabilityValues, name: &str| values.get(name).cloned().unwrap_or_default();
        let needs = CAPABILITIES.iter().filter_map(|capability| {
            let Eligibility::OnRequest { .. } = capability.availability else { return None };
            let uses = |import: &&String| {
                capability.has_import(import) || capability.is_used_through(import)
            };
            let used: Vec<String> = imports.iter().filter(uses).cloned().collect();
            let must = used.iter().any(|import| capability.has_import(import));
            let requested = of(requested, capability.name);
            let granted = of(granted, capability.name);
            let verdict = match (used.is_empty(), requested.is_empty(), granted.is_empty()) {
                (true, true, _) => return None,
                (true, false, _) => NeedStatus::NotUsed,
                (false, true, _) if must => NeedStatus::NotRequested,
                // Nearly every component can look at its environment.
                (false, true, _) if capability.name == ENVIRONMENT => return None,
                (false, true, _) => NeedStatus::Possible,
                (false, false, true) => NeedStatus::NotGranted,
                (false, false, false) => NeedStatus::Granted,
            };
            Some(Self { capability: capability.name, imports: used, requested, granted, verdict })
        });
        needs.collect()
    }

    /// What is wrong with the manifest, in words.
    pub fn problem(&self) -> Option<String> {
        let name = self.capability;
        match self.verdict {
            NeedStatus::NotRequested => Some(format!(
                "it imports {} and its manifest does not request `{name}`",
                self.imports.join(", ")
            )),
            NeedStatus::NotUsed => {
                Some(format!("its manifest requests `{name}`, and it imports nothing of it"))
            }
            NeedStatus::Granted | NeedStatus::NotGranted | NeedStatus::Possible => None,
        }
    }
}

impl CapabilityRow {
    /// Whether an import stands for it.
    fn has_import(&self, import: &str) -> bool {
        Self::of_import(import).is_some_and(|capability| std::ptr::eq(capability, self))
    }

    /// Whether it is used through an import that every component may have.
    fn is_used_through(&self, import: &str) -> bool {
        let interface = import.split('@').next().unwrap_or(import);
        let package = interface.split('/').next().unwrap_or(interface);
        self.through.iter().any(|name| *name == interface || *name == package)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_is_held_against_what_is_requested_and_granted() {
        let check = |imports: &[&str], requested: &[&str], granted: &[&str], expected: &[_]| {
            let imports: Vec<String> = imports.iter().map(ToString::to_string).collect();
            let values = |names: &[&str]| -> CapabilityValues {
                names.iter().map(|name| (name.to_string(), vec!["x".to_string()])).collect()
            };
            let needs = CapabilityStatus::all(&imports, &values(requested), &values(granted));
            let found: Vec<_> = needs.iter().map(|need| (need.capability, need.verdict)).collect();
            assert_eq!(found, expected, "{imports:?} {requested:?}");
        };
        use NeedStatus::{Granted, NotGranted, NotRequested, NotUsed, Possible};
        let http = "wasi:http/outgoing-handler@0.2.4";
        let files = "wasi:filesystem/types@0.2.6";
        check(&["wasi:io/poll@0.2.6", "tenon:plugin/log@0.1.0"], &[], &[], &[]);
        check(&[http], &[], &[], &[("network", NotRequested)]);
        check(&[http], &["network"], &[], &[("network", NotGranted)]);
        check(&[http], &["network"], &["network"], &[("network", Granted)]);
        check(&[], &["network"], &["network"], &[("network", NotUsed)]);
        check(&[files], &[], &[], &[("filesystem", Possible)]);
        check(&[files], &["filesystem"], &["filesystem"], &[("filesystem", Granted)]);
        check(&["wasi:cli/environment@0.2.6"], &[], &[], &[]);
        check(
            &["wasi:cli/environment@0.3.0"],
            &["environment"],
            &[],
            &[("environment", NotGranted)],
        );
    }
}
