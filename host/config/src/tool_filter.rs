//! Which of a plugin's tools are wanted, by the names that the plugin gives them.

use tenon_types::name::nearest;
use tenon_types::text::fits;

/// Which of a plugin's tools are wanted: `enabled_tools` and `disabled_tools`, for an MCP server in
/// its own entry, for any plugin under `[policy.plugins.ID]`. Names are the plugin's own; `*` stands
/// for anything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolFilter {
    /// The only ones; without a list, all.
    pub enabled: Option<Vec<String>>,
    /// Those that are left out of that.
    pub disabled: Vec<String>,
}

/// The list that leaves a tool out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilterReason {
    /// It is not among those that are enabled.
    NotEnabled,
    /// It is among those that are disabled.
    Disabled,
}

impl FilterReason {
    /// Describes the setting that excludes the tool, for messages.
    pub fn describe(self) -> &'static str {
        match self {
            Self::NotEnabled => "the `enabled_tools` of its plugin, which do not name it",
            Self::Disabled => "the `disabled_tools` of its plugin",
        }
    }
}

impl ToolFilter {
    /// Which list leaves a tool out, if one does.
    pub fn leaves_out(&self, tool: &str) -> Option<FilterReason> {
        let listed = |list: &[String]| list.iter().any(|pattern| fits(pattern, tool));
        match &self.enabled {
            _ if listed(&self.disabled) => Some(FilterReason::Disabled),
            Some(enabled) if !listed(enabled) => Some(FilterReason::NotEnabled),
            _ => None,
        }
    }

    /// What is said of tools that are not there, in words.
    pub fn problems(&self, tools: &[&str]) -> Vec<String> {
        let enabled = self.enabled.iter().flatten().map(|pattern| ("enabled_tools", pattern));
        let disabled = self.disabled.iter().map(|pattern| ("disabled_tools", pattern));
        let unknown = enabled
            .chain(disabled)
            .filter(|(_, pattern)| !tools.iter().any(|tool| fits(pattern, tool)));
        let problem = |(list, pattern): (&str, &String)| {
            let meant = match nearest(pattern, tools.iter().copied()) {
                Some(meant) => format!("; did you mean \"{meant}\"?"),
                None => String::new(),
            };
            format!("its `{list}` has \"{pattern}\", which matches none of its tools{meant}")
        };
        unknown.map(problem).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(enabled: Option<&[&str]>, disabled: &[&str]) -> ToolFilter {
        let list = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        ToolFilter { enabled: enabled.map(list), disabled: list(disabled) }
    }

    #[test]
    fn rows() {
        let check = |enabled: Option<&[&str]>, disabled: &[&str], tool, expected| {
            assert_eq!(filter(enabled, disabled).leaves_out(tool), expected, "{enabled:?} {tool}");
        };
        check(None, &[], "read", None);
        check(Some(&["re*"]), &[], "read", None);
        check(Some(&["re*"]), &[], "write", Some(FilterReason::NotEnabled));
        check(Some(&[]), &[], "read", Some(FilterReason::NotEnabled));
        check(Some(&["re*"]), &["read"], "read", Some(FilterReason::Disabled));
        check(None, &["*"], "read", Some(FilterReason::Disabled));
    }

    #[test]
    fn a_name_that_no_tool_has_is_reported_with_the_nearest() {
        let problems = filter(Some(&["raed", "wr*"]), &["purge*"]).problems(&["read", "write"]);
        assert_eq!(
            problems,
            [
                "its `enabled_tools` has \"raed\", which matches none of its tools; did you mean \"read\"?",
                "its `disabled_tools` has \"purge*\", which matches none of its tools",
            ]
        );
    }
}
