//! The points at which hooks run: one row for each, with its names and the outcomes that it allows.

use std::fmt;
use std::str::FromStr;

pub use crate::bindings::types::HookPoint;

/// A well-known point.
pub struct PointInfo {
    /// The point.
    pub point: HookPoint,
    /// Its name in commands and in the contract.
    pub name: &'static str,
    /// The name of a script's function for it.
    pub function: &'static str,
    /// Whether a handler may stop what is about to happen.
    pub veto: bool,
    /// What the context holds; hosts may add members.
    pub context: &'static str,
}

/// The twelve well-known points. At each of them a handler may replace the context.
pub static POINTS: [PointInfo; 12] = [
    row(HookPoint::BeforePlan, "before-plan", "BeforePlan", true, "`goal`: what is to be planned"),
    row(HookPoint::AfterPlan, "after-plan", "AfterPlan", false, "`goal`, `plan`: the steps"),
    row(
        HookPoint::BeforeExecute,
        "before-execute",
        "BeforeExecute",
        true,
        "`step`: what is to run",
    ),
    row(HookPoint::AfterExecute, "after-execute", "AfterExecute", false, "`step`, `result`"),
    row(HookPoint::BeforeEvaluate, "before-evaluate", "BeforeEvaluate", true, "`subject`"),
    row(
        HookPoint::AfterEvaluate,
        "after-evaluate",
        "AfterEvaluate",
        false,
        "`subject`, `evaluation`",
    ),
    row(HookPoint::OnLearning, "on-learning", "OnLearning", false, "`learning`: what is kept"),
    row(HookPoint::OnPattern, "on-pattern", "OnPattern", false, "`pattern`: what was noticed"),
    row(HookPoint::MessageReceived, "message-received", "MessageReceived", true, "`message`"),
    row(HookPoint::MessageSending, "message-sending", "MessageSending", true, "`message`"),
    row(
        HookPoint::BeforeToolCall,
        "before-tool-call",
        "BeforeToolCall",
        true,
        "`tool`, `plugin`, `arguments`; only `arguments` can be changed",
    ),
    row(
        HookPoint::AfterToolCall,
        "after-tool-call",
        "AfterToolCall",
        false,
        "`tool`, `plugin`, `arguments`, `result`; only `result`, an MCP tool result, can be changed",
    ),
];

const fn row(
    point: HookPoint,
    name: &'static str,
    function: &'static str,
    veto: bool,
    context: &'static str,
) -> PointInfo {
    PointInfo { point, name, function, veto, context }
}

/// A text that names no point.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no hook point \"{0}\"; a point of your own is \"custom:{0}\"")]
pub struct UnknownPoint(String);

impl HookPoint {
    /// The point's row, for a well-known one.
    pub fn info(&self) -> Option<&'static PointInfo> {
        POINTS.iter().find(|info| info.point == *self)
    }

    /// Whether a handler may stop what is about to happen.
    pub fn allows_veto(&self) -> bool {
        self.info().is_none_or(|info| info.veto)
    }
}

impl fmt::Display for HookPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.info(), self) {
            (Some(info), _) => f.write_str(info.name),
            (None, Self::Custom(name)) => write!(f, "custom:{name}"),
            (None, point) => write!(f, "{point:?}"),
        }
    }
}

impl FromStr for HookPoint {
    type Err = UnknownPoint;

    /// Reads `before-plan`, `BeforePlan` and the like, or `custom:NAME`.
    fn from_str(text: &str) -> Result<Self, UnknownPoint> {
        if let Some(name) = text.strip_prefix("custom:") {
            return Ok(Self::Custom(name.to_string()));
        }
        let found = POINTS.iter().find(|info| info.name == text || info.function == text);
        found.map(|info| info.point.clone()).ok_or_else(|| UnknownPoint(text.to_string()))
    }
}

impl PartialEq for HookPoint {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Custom(this), Self::Custom(other)) => this == other,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

impl Eq for HookPoint {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_point_is_read_by_both_of_its_names() {
        for info in &POINTS {
            assert_eq!(info.name.parse(), Ok(info.point.clone()));
            assert_eq!(info.function.parse(), Ok(info.point.clone()));
            assert_eq!(info.point.to_string(), info.name);
        }
    }

    #[test]
    fn other_points_are_custom_and_say_so() {
        assert_eq!("custom:deploy".parse(), Ok(HookPoint::Custom("deploy".into())));
        assert!("before-lunch".parse::<HookPoint>().is_err());
        assert!(HookPoint::Custom("deploy".into()).allows_veto());
    }

    #[test]
    fn what_has_happened_cannot_be_vetoed() {
        for info in &POINTS {
            let happened = info.name.starts_with("after-") || info.name.starts_with("on-");
            assert_eq!(info.veto, !happened, "{}", info.name);
        }
    }
}
