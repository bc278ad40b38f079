//! `tenon policy`

use serde_json::{Value, json};
use std::process::ExitCode;
use tenon_host::call_policy::{CallDecision, CallExplanation, CallFacts, Fit, RuleTrial};
use tenon_host::types::text::one_line;

use crate::error::{Error, Exit};
use crate::tool_arguments::RawArguments;
use crate::{Common, open, output};

/// Say which rule decides of a call
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Try the rules on a call, which is not made
    #[command(after_help = "Examples:
  tenon policy test files__write path=/etc/passwd text=x
  tenon policy test git__push '{\"branch\": \"main\"}' --principal token:laptop --profile coder

The exit code is 0 where the call would be made, and 3 where it has to be approved or is denied.")]
    Test {
        /// The tool, as `tenon tools` lists it
        name: String,
        /// Its arguments: any number of KEY=VALUE; or a JSON object, @FILE, or - for standard input
        #[arg(value_name = "KEY=VALUE|JSON")]
        arguments: Vec<String>,
        /// Whose call it is: `token:NAME`, or `subject:SUBJECT` of a token that an issuer signed
        #[arg(long, value_name = "NAME")]
        principal: Option<String>,
        /// The profile that the client uses
        #[arg(long, value_name = "NAME")]
        profile: Option<String>,
    },
}

pub(crate) async fn run(common: &Common, Args { verb }: Args) -> Result<ExitCode, Error> {
    let Verb::Test { name, arguments, principal, profile } = verb;
    let arguments = RawArguments::parse(&arguments)?;
    if let Some(profile) = profile.as_deref().filter(|profile| !open::has_profile(common, profile))
    {
        let problem = format!("there is no profile {profile:?} in the user's configuration");
        return Err(Error::Input(problem));
    }
    let found = open::found(common)?;
    open::with(common, found.platform_for_tool(&name, &arguments), async |platform| {
        let call = arguments.call(platform, name.clone(), open::caller(None));
        let explained = platform.registry().explain_call(
            &call.name,
            &CallFacts {
                arguments: &call.arguments,
                principal: principal.as_deref(),
                profile: profile.as_deref(),
            },
        )?;
        show(common, &call.name, &explained)
    })
    .await
}

fn show(common: &Common, name: &str, explained: &CallExplanation) -> Result<ExitCode, Error> {
    let CallExplanation { verdict, trials, .. } = explained;
    let exit = match verdict.decision {
        CallDecision::Allow => Exit::Success,
        CallDecision::Ask | CallDecision::Deny => Exit::Refused,
    };
    if common.json {
        let rules: Vec<Value> = trials.iter().map(json_of).collect();
        output::json(&json!({
            "tool": name,
            "decision": verdict.decision,
            "by": verdict.by.to_string(),
            "rules": rules,
        }))?;
        return Ok(exit.into());
    }
    let decided = match verdict.decision {
        CallDecision::Allow => "is allowed",
        CallDecision::Ask => "has to be approved",
        CallDecision::Deny => "is denied",
    };
    output::line(one_line(&format!("the call of {name} {decided}, by {}", verdict.by)))?;
    for trial in trials {
        let speaks = if trial.speaks() { "fits" } else { "does not fit" };
        let decision = trial.decision.as_str();
        output::line(one_line(&format!("  {}: {decision}, {speaks}", trial.source)))?;
        for (condition, fit) in &trial.conditions {
            output::line(one_line(&format!("    {condition}: {}", word(*fit))))?;
        }
    }
    Ok(exit.into())
}

fn json_of(trial: &RuleTrial) -> Value {
    let conditions: Vec<Value> = { trial.conditions.iter() }
        .map(|(condition, fit)| json!({ "condition": condition, "fits": word(*fit) }))
        .collect();
    json!({
        "rule": trial.source.to_string(),
        "decision": trial.decision,
        "fits": trial.speaks(),
        "conditions": conditions,
    })
}

fn word(fit: Fit) -> &'static str {
    match fit {
        Fit::Yes => "yes",
        Fit::No => "no",
        Fit::Unclear => "unclear",
    }
}
