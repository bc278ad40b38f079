//! Which calls may be made by the operator's rules, as types: what [`Registry::explain_call`](crate::Registry::explain_call)
//! takes and gives.

pub use tenon_config::call_policy::{
    CallDecision, CallExplanation, CallFacts, CallVerdict, DecidedBy, DefaultCallMode, Fit,
    RuleLocation, RuleTrial,
};
