//! Which calls of tools may be made by the operator's rules: at once, after somebody has approved the call, or not at
//! all.
//!
//! Rules of several configurations come together here for each tool. Where none speaks of a call, the [`DefaultCallMode`] does.
//! Asking somebody, and keeping what was answered, is left to others.

#[cfg(test)]
mod tests;

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use tenon_types::ToolAnnotations;
use tenon_types::name::nearest;
use tenon_types::text::fits;

use crate::call_rule::{AnnotationHint, ArgumentPointer, CallRule, may_fit_principal};
pub use crate::call_rule::{CallDecision, CallFacts, DefaultCallMode, Fit};
use crate::config::combine::{PluginOwner, is_bounded};
use crate::config::{Config, PluginOrigin, SideEffects};
use crate::diagnostic::Diagnostic;

/// The profile that is there without a configuration.
const DEFAULT_PROFILE: &str = "default";

/// The rules that are for a profile which no configuration has, or for a principal that no client of `tenon serve` is, as
/// warnings. Profiles are the user's: a project's rule may be for one of another user. Other hosts may have other
/// principals.
pub fn call_rules_for_nobody(configs: &[Config]) -> Vec<Diagnostic> {
    let names = configs.iter().flat_map(|config| config.profiles.keys().map(String::as_str));
    let names: BTreeSet<&str> = names.chain([DEFAULT_PROFILE]).collect();
    let mut unknown = Vec::new();
    for config in configs {
        for rule in &config.calls {
            let CallRule { pattern: tools, number, .. } = rule;
            let rule_name =
                format!("[[tools.{tools:?}.when]] number {}", number.unwrap_or_default());
            let warn = |problem: String, remedy: String| {
                let problem = format!("{rule_name} is for {problem}");
                Diagnostic::in_file(config.path.display(), problem).remedy(remedy)
            };
            let principals = rule.principals.iter();
            for pattern in principals.filter(|pattern| !may_fit_principal(pattern)) {
                let remedy = "a principal is `token:NAME` for a token of `tenon token`, or `subject:SUBJECT` for one \
                              of an issuer";
                unknown.push(warn(
                    format!("the principal {pattern:?}, which no client is"),
                    remedy.into(),
                ));
            }
            let is_there = |pattern: &&String| names.iter().any(|name| fits(pattern, name));
            for pattern in rule.profiles.iter().filter(|pattern| !is_there(pattern)) {
                let remedy = match nearest(pattern, names.iter().copied()) {
                    Some(meant) => format!("did you mean \"{meant}\"?"),
                    None => {
                        let names: Vec<&str> = names.iter().copied().collect();
                        format!("the user's profiles are: {}", names.join(", "))
                    }
                };
                unknown.push(warn(format!("the profile {pattern:?}, which is not there"), remedy));
            }
        }
    }
    unknown
}

/// What is known of the effects of a tool's calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct KnownEffects {
    /// What the tool says of itself; nothing where it is not believed.
    hints: ToolAnnotations,
    /// What the file says of it.
    side_effects: Option<SideEffects>,
}

impl KnownEffects {
    fn hint(self, hint: AnnotationHint) -> Fit {
        let told = |said: Option<bool>| said.map_or(Fit::Unclear, Fit::of);
        match hint {
            AnnotationHint::ReadOnly => self.read_only(),
            AnnotationHint::Destructive => self.destructive(),
            AnnotationHint::OpenWorld => told(self.hints.open_world),
            AnnotationHint::Idempotent => match self.side_effects {
                Some(effects) => Fit::of(effects != SideEffects::Repeated),
                None if self.read_only() == Fit::Yes => Fit::Yes,
                None => told(self.hints.idempotent),
            },
        }
    }

    fn read_only(self) -> Fit {
        match self.side_effects {
            Some(effects) => Fit::of(effects == SideEffects::None),
            None => self.hints.read_only.map_or(Fit::Unclear, Fit::of),
        }
    }

    /// What changes nothing destroys nothing.
    fn destructive(self) -> Fit {
        match self.read_only() {
            Fit::Yes => Fit::No,
            _ => self.hints.destructive.map_or(Fit::Unclear, Fit::of),
        }
    }
}

/// What was decided of a call, and by what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallVerdict {
    /// The decision.
    pub decision: CallDecision,
    /// What decided.
    pub by: DecidedBy,
}

/// What decided of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecidedBy {
    /// A rule.
    Rule(RuleLocation),
    /// No rule: the mode.
    Mode(DefaultCallMode),
}

impl fmt::Display for DecidedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(source) => source.fmt(f),
            Self::Mode(mode) => {
                let why = match mode {
                    DefaultCallMode::Trusting => "allows calls of which no rule says anything",
                    DefaultCallMode::Careful => "asks about tools that may destroy something",
                    DefaultCallMode::Locked => "allows only what a rule allows",
                };
                write!(f, "the mode `{}`, which {why}", mode.as_str())
            }
        }
    }
}

/// Where a rule stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleLocation {
    /// The configuration; empty for one that was made in code.
    pub file: Arc<Path>,
    /// The pattern under `[tools]`.
    pub pattern: String,
    /// Its number among those with conditions, counted from one; nothing for the one without.
    pub number: Option<usize>,
}

impl fmt::Display for RuleLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, pattern, number } = self;
        match number {
            None => write!(f, "`approve` under [tools.\"{pattern}\"]")?,
            Some(number) => write!(f, "[[tools.\"{pattern}\".when]] number {number}")?,
        }
        match file.as_os_str().is_empty() {
            true => f.write_str(" of the host's configuration"),
            false => write!(f, " of {}", file.display()),
        }
    }
}

/// The rules of configurations, by whose they are.
#[derive(Debug, Clone, Default)]
pub struct CallRules {
    /// Those of the project, or of configurations that were made in code.
    project: Vec<ConfigRules>,
    /// Those of the user, where they are apart.
    user: Vec<ConfigRules>,
}

/// The rules of one configuration.
#[derive(Debug, Clone)]
struct ConfigRules {
    file: Arc<Path>,
    rules: Vec<Arc<CallRule>>,
    /// What calls of tools change, by patterns of their names.
    side_effects: Vec<(String, SideEffects)>,
    mode: Option<DefaultCallMode>,
    /// The modes of profiles that have their own.
    profiles: Arc<[(String, DefaultCallMode)]>,
}

impl ConfigRules {
    fn new(config: &Config) -> Self {
        let modes = config.profiles.iter();
        let modes = modes.filter_map(|(name, profile)| Some((name.clone(), profile.calls?)));
        let effects = config.tools.iter();
        let effects =
            effects.filter_map(|(pattern, rule)| Some((pattern.clone(), rule.side_effects?)));
        // Who decides later of a call does so elsewhere.
        let file = match config.path.as_os_str().is_empty() {
            true => config.path.clone(),
            false => std::path::absolute(&config.path).unwrap_or_else(|_| config.path.clone()),
        };
        Self {
            file: file.into(),
            rules: config.calls.iter().cloned().map(Arc::new).collect(),
            side_effects: effects.collect(),
            mode: config.policy.calls,
            profiles: modes.collect(),
        }
    }
}

impl CallRules {
    /// What these files say together, the user's and the project's.
    pub fn new(configs: &[Config]) -> Self {
        let mut rules = Self::default();
        let is_apart = configs.iter().any(|config| is_bounded(config, configs));
        for config in configs {
            match !is_apart || config.origin == PluginOrigin::User {
                true => rules.user.push(ConfigRules::new(config)),
                // Profiles are the user's, whose own file says which modes they have.
                false => {
                    rules
                        .project
                        .push(ConfigRules { profiles: [].into(), ..ConfigRules::new(config) });
                }
            }
        }
        rules
    }

    /// The policy for the calls of a tool of somebody's plugin: by its name, and for the user's rules also by the name that
    /// it would have as the user's file has tools named. `hints` is what the tool says of itself; nothing where it is not
    /// believed. A project makes the policy of its user's plugins only stricter.
    pub fn of(
        &self,
        name: &str,
        users_name: &str,
        owner: PluginOwner,
        hints: ToolAnnotations,
    ) -> ToolCallPolicy {
        self.of_any(&[name], users_name, owner, hints)
    }

    /// The same for a tool that has several names: a rule that fits any of them speaks of it.
    pub fn of_any(
        &self,
        names: &[&str],
        users_name: &str,
        owner: PluginOwner,
        hints: ToolAnnotations,
    ) -> ToolCallPolicy {
        let user = ToolPolicy::new(&self.user, &[names, &[users_name]].concat(), hints);
        let user = ToolPolicy { mode: Some(user.mode.unwrap_or_default()), ..user };
        let mut layers = vec![user];
        if owner.origin.is_of_project() || !owner.is_shielded {
            layers.push(ToolPolicy::new(&self.project, names, hints));
        }
        layers.retain(|layer| !layer.says_nothing());
        ToolCallPolicy { layers: layers.into() }
    }
}

/// What decides of the calls of one tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolCallPolicy {
    /// Each decides by itself; the strictest decision holds.
    layers: Arc<[ToolPolicy]>,
}

/// What somebody says of the calls of one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ToolPolicy {
    /// In the order in which they are asked.
    rules: Vec<ApplicableRule>,
    /// The arguments that rules are about: each is looked up once for a call.
    pointers: Vec<ArgumentPointer>,
    known: KnownEffects,
    mode: Option<DefaultCallMode>,
    profiles: Arc<[(String, DefaultCallMode)]>,
}

/// A rule that speaks of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ApplicableRule {
    rule: Arc<CallRule>,
    file: Arc<Path>,
    /// How what is known of the tool fits.
    hints: Fit,
    /// The numbers of its arguments among [`ToolPolicy::pointers`].
    pointers: Vec<usize>,
    /// How an argument begins, by its number, that has to equal a text.
    needs: Option<(usize, TextPrefilter)>,
}

/// The length and the beginning of a text. Most rules that need another text are told apart by it, without a look at them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TextPrefilter {
    length: usize,
    bytes: [u8; 8],
}

impl TextPrefilter {
    fn of(text: &str) -> Self {
        let mut bytes = [0; 8];
        let known = text.len().min(bytes.len());
        bytes[..known].copy_from_slice(&text.as_bytes()[..known]);
        Self { length: text.len(), bytes }
    }
}

impl ApplicableRule {
    fn source(&self) -> RuleLocation {
        let CallRule { pattern, number, .. } = &*self.rule;
        RuleLocation { file: self.file.clone(), pattern: pattern.clone(), number: *number }
    }
}

impl ToolPolicy {
    fn new(files: &[ConfigRules], names: &[&str], hints: ToolAnnotations) -> Self {
        let is_meant = |pattern: &str| names.iter().any(|name| fits(pattern, name));
        let mut effects = files.iter().flat_map(|file| &file.side_effects);
        let side_effects = effects.find(|(pattern, _)| is_meant(pattern)).map(|(_, of)| *of);
        let known = KnownEffects { hints, side_effects };
        let mut numbers = BTreeMap::new();
        let mut rules = Vec::new();
        for file in files {
            for rule in file.rules.iter().filter(|rule| is_meant(&rule.pattern)) {
                let number = |(pointer, _): &(ArgumentPointer, _)| {
                    let next = numbers.len();
                    *numbers.entry(pointer.clone()).or_insert(next)
                };
                let pointers: Vec<usize> = rule.arguments.iter().map(number).collect();
                let mut tests = pointers.iter().zip(&rule.arguments);
                let needs = tests.find_map(|(number, (_, test))| {
                    test.equal_text().map(|text| (*number, TextPrefilter::of(text)))
                });
                rules.push(ApplicableRule {
                    rule: rule.clone(),
                    file: file.file.clone(),
                    hints: rule.hints_fit(|hint| known.hint(hint)),
                    pointers,
                    needs,
                });
            }
        }
        let mut pointers: Vec<(ArgumentPointer, usize)> = numbers.into_iter().collect();
        pointers.sort_by_key(|(_, number)| *number);
        Self {
            rules,
            pointers: pointers.into_iter().map(|(pointer, _)| pointer).collect(),
            known,
            mode: files.iter().find_map(|file| file.mode),
            profiles: files.iter().flat_map(|file| file.profiles.iter().cloned()).collect(),
        }
    }

    /// Whether whatever is called is allowed.
    fn says_nothing(&self) -> bool {
        self.rules.is_empty()
            && self.mode.unwrap_or_default() == DefaultCallMode::Trusting
            && self.profiles.iter().all(|(_, mode)| *mode == DefaultCallMode::Trusting)
    }

    /// The mode for this call.
    fn mode(&self, facts: &CallFacts<'_>) -> Option<DefaultCallMode> {
        let mut own = self.profiles.iter().filter(|(name, _)| facts.profile == Some(name));
        own.next().map(|(_, mode)| *mode).or(self.mode)
    }

    fn decide(&self, facts: &CallFacts<'_>) -> Option<CallVerdict> {
        let find = |pointer: &ArgumentPointer| {
            let value = pointer.find(facts.arguments);
            (value, value.and_then(Value::as_str).map(TextPrefilter::of))
        };
        let found: Vec<(Option<&Value>, Option<TextPrefilter>)> =
            self.pointers.iter().map(find).collect();
        let mut decided: Option<&ApplicableRule> = None;
        for asked in &self.rules {
            let decision = asked.rule.decision;
            // After one that speaks, only what forbids counts.
            if decided.is_some() && decision != CallDecision::Deny {
                continue;
            }
            if asked.needs.is_some_and(|(number, start)| found[number].1 != Some(start)) {
                continue;
            }
            let find = |number: usize| found[asked.pointers[number]].0;
            if asked.rule.fit(asked.hints, facts, find).lets_speak(decision) {
                decided = Some(asked);
                if decision == CallDecision::Deny {
                    break;
                }
            }
        }
        if let Some(rule) = decided {
            let by = DecidedBy::Rule(rule.source());
            return Some(CallVerdict { decision: rule.rule.decision, by });
        }
        let mode = self.mode(facts)?;
        Some(CallVerdict {
            decision: mode.decide(self.known.destructive()),
            by: DecidedBy::Mode(mode),
        })
    }
}

impl ToolCallPolicy {
    /// Whether each call is made, whatever its arguments are and whoever makes it.
    pub fn allows_all(&self) -> bool {
        self.layers.is_empty()
    }

    /// Decides of a call. Deny wins; else the first rule that fits decides, and the mode where none does.
    pub fn decide(&self, facts: &CallFacts<'_>) -> CallVerdict {
        let verdicts = self.layers.iter().filter_map(|layer| layer.decide(facts));
        // Of two that are as strict, one by a rule says more, and the first is the user's.
        let is_said = |verdict: &CallVerdict| matches!(verdict.by, DecidedBy::Rule(_));
        let rank = |verdict: &CallVerdict| (verdict.decision, is_said(verdict));
        let strictest = verdicts.reduce(|one, other| match rank(&other) > rank(&one) {
            true => other,
            false => one,
        });
        strictest.unwrap_or(CallVerdict {
            decision: CallDecision::Allow,
            by: DecidedBy::Mode(DefaultCallMode::Trusting),
        })
    }

    /// Decides of a call, and says of each rule why it speaks of it or not.
    pub fn explain(&self, facts: &CallFacts<'_>) -> CallExplanation {
        CallExplanation { verdict: self.decide(facts), trials: self.trials(facts) }
    }

    /// Tries each rule that speaks of the tool, in the order in which they are asked.
    fn trials(&self, facts: &CallFacts<'_>) -> Vec<RuleTrial> {
        let rules = self.layers.iter().flat_map(|layer| &layer.rules);
        let trials = rules.map(|asked| RuleTrial {
            source: asked.source(),
            decision: asked.rule.decision,
            conditions: asked.rule.conditions(asked.hints, facts),
        });
        trials.collect()
    }
}

/// What was decided of a call, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallExplanation {
    /// The decision, and what made it.
    pub verdict: CallVerdict,
    /// Each rule that speaks of the tool, in the order in which they are asked.
    pub trials: Vec<RuleTrial>,
}

/// A rule that was tried on a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleTrial {
    /// The rule.
    pub source: RuleLocation,
    /// What it decides where it fits.
    pub decision: CallDecision,
    /// Its conditions, each as a text, and how the call fits.
    pub conditions: Vec<(String, Fit)>,
}

impl RuleTrial {
    /// Whether the rule speaks of the call.
    pub fn speaks(&self) -> bool {
        let fit = self.conditions.iter().fold(Fit::Yes, |fit, (_, other)| fit.min(*other));
        fit.lets_speak(self.decision)
    }
}
