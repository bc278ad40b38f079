//! What clients declare of themselves, and how much of what is logged they want.

use serde_json::{Value, json};
use tenon_host::services::{ClientFeature, Offers};
use tenon_host::types::LogLevel;

/// What a client can do for a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ClientCapabilities {
    /// Its user fills in forms.
    pub(crate) forms: bool,
    /// Its user opens pages.
    pub(crate) pages: bool,
    /// It asks a model.
    pub(crate) sampling: bool,
    /// The model may call tools meanwhile.
    pub(crate) sampling_tools: bool,
    /// It names its roots.
    pub(crate) roots: bool,
}

impl ClientCapabilities {
    /// Reads `ClientCapabilities`. An empty `elicitation` means forms, as in the revisions that knew nothing else.
    pub(crate) fn read(json: &Value) -> Self {
        let elicitation = json.get("elicitation").and_then(Value::as_object);
        let has = |mode: &str| elicitation.is_some_and(|modes| modes.contains_key(mode));
        Self {
            forms: has("form") || elicitation.is_some() && !has("url"),
            pages: has("url"),
            sampling: json["sampling"].is_object(),
            sampling_tools: json["sampling"]["tools"].is_object(),
            roots: json["roots"].is_object(),
        }
    }

    pub(crate) fn offers(self) -> Offers {
        Offers { forms: self.forms, pages: self.pages, sampling: self.sampling, roots: self.roots }
    }
}

/// The members of `ClientCapabilities` that declare a feature.
pub(crate) fn declaration(feature: ClientFeature) -> Value {
    match feature {
        ClientFeature::Sampling => json!({ "sampling": {} }),
        ClientFeature::Roots => json!({ "roots": {} }),
        ClientFeature::Pages => json!({ "elicitation": { "url": {} } }),
        _ => json!({ "elicitation": { "form": {} } }),
    }
}

/// How much a message matters, in the protocol's words, which are those of RFC 5424.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl Severity {
    const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }

    pub(crate) fn read(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|severity| severity.name() == name)
    }
}

impl From<LogLevel> for Severity {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Trace | LogLevel::Debug => Self::Debug,
            LogLevel::Info => Self::Info,
            LogLevel::Warn => Self::Warning,
            LogLevel::Error => Self::Error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_declared_in_two_ways_and_pages_in_one() {
        let check = |json: Value, forms, pages, sampling| {
            let read = ClientCapabilities::read(&json);
            assert_eq!((read.forms, read.pages, read.sampling), (forms, pages, sampling), "{json}");
        };
        check(json!({}), false, false, false);
        check(json!({ "elicitation": {}, "sampling": {} }), true, false, true);
        check(json!({ "elicitation": { "form": {} } }), true, false, false);
        check(json!({ "elicitation": { "url": {} } }), false, true, false);
        check(json!({ "elicitation": { "form": {}, "url": {} } }), true, true, false);
        check(json!({ "elicitation": true, "sampling": null }), false, false, false);
        check(json!(3), false, false, false);
    }

    #[test]
    fn a_severity_is_read_as_it_is_written() {
        for severity in Severity::ALL {
            assert_eq!(Severity::read(severity.name()), Some(severity));
        }
        assert_eq!(Severity::read("warn"), None);
        assert!(Severity::from(LogLevel::Info) < Severity::Notice);
    }
}
