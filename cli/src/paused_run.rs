//! Who resumes a paused run, as people read it.

use tenon_host::runs::Run;

use crate::{Common, hint};

/// Whose a run is that this command does not resume.
pub(crate) fn owner(run: &Run) -> Option<String> {
    match (&run.of.principal, &run.of.profile) {
        (None, None) => None,
        (Some(principal), None) => Some(principal.clone()),
        (None, Some(profile)) => Some(format!("an MCP client with the profile {profile}")),
        (Some(principal), Some(profile)) => Some(format!("{principal} with the profile {profile}")),
    }
}

/// How a paused run goes on.
pub(crate) fn resume_hint(common: &Common, run: &Run) -> String {
    let id = &run.id;
    match owner(run) {
        None => format!("`{} --resume {id}` goes on with the run", hint::command(common, "run")),
        Some(owner) => format!("{owner} can resume the run {id}"),
    }
}
