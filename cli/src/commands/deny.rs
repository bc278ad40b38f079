//! `tenon deny`

use serde_json::json;
use std::process::ExitCode;

use crate::error::Error;
use crate::{Common, call_approval, output, store};

/// Deny a call that waits for approval, take a standing approval back, or forget one that is damaged
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tenon deny A-3K7QZ0M2X9TB
  tenon deny A-3K7QZ0M2X9TB --reason 'use the staging server'

`tenon pending --all` lists the ids. A denial holds for a day; `tenon approve` overrules it.")]
pub(crate) struct Args {
    /// The call, as `tenon pending` lists it
    #[arg(value_name = "ID")]
    id: String,
    /// What the caller is told
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

pub(crate) fn run(common: &Common, Args { id, reason }: Args) -> Result<ExitCode, Error> {
    let id = call_approval::read_id(&id).unwrap_or(id);
    let (approvals, now) = (call_approval::approvals(common)?, store::now());
    let is_standing = approvals.standing(now)?.iter().any(|standing| standing.id == id);
    let is_damaged = approvals.damaged()?.contains(&id);
    approvals.deny(&id, reason, now)?;
    match common.json {
        true => output::json(&json!({ "id": id, "approved": false }))?,
        false if is_damaged => output::line(format!("{id}, which was damaged, is forgotten"))?,
        false if is_standing => output::line(format!("{id} is taken back"))?,
        false => output::line(format!("{id} is denied"))?,
    }
    Ok(ExitCode::SUCCESS)
}
