//! `tenon pending`

use std::process::ExitCode;
use tenon_host::services::PendingCall;

use crate::call_approval::{self, json_of, json_of_standing, of_pending, of_standing};
use crate::error::Error;
use crate::{Common, output, store};

/// List the calls that wait for approval
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tenon pending
  tenon approve A-3K7QZ0M2X9TB
  tenon deny A-3K7QZ0M2X9TB --reason 'use the staging server'

Rules under [tools] and `calls` under [policy] say which calls have to be approved. A call waits for a day. When it \
is approved, the same call is made once when it is tried again.")]
pub(crate) struct Args {
    /// Also list calls that are decided, and standing approvals
    #[arg(long)]
    all: bool,
}

pub(crate) fn run(common: &Common, Args { all }: Args) -> Result<ExitCode, Error> {
    let (approvals, now) = (call_approval::approvals(common)?, store::now());
    let mut calls = approvals.list(now)?;
    if !all {
        calls.retain(PendingCall::is_undecided);
    }
    let standing = if all { approvals.standing(now)? } else { Vec::new() };
    if common.json {
        let rows = calls.iter().map(json_of).chain(standing.iter().map(json_of_standing));
        output::json(&rows.collect::<Vec<_>>())?;
        return Ok(ExitCode::SUCCESS);
    }
    call_approval::note_damaged(&approvals)?;
    output::if_empty(calls.is_empty() && standing.is_empty(), "no call waits for approval");
    for call in &calls {
        output::write(of_pending(call, now))?;
    }
    for standing in &standing {
        output::line(of_standing(standing))?;
    }
    Ok(ExitCode::SUCCESS)
}
