//! Who resumes a paused run, and where, as people read it.

use tenon_host::runs::Run;

use crate::Common;
use crate::hint::{self, quoted};

/// What makes a folder a project: there may be plugins and rules of its own.
const PROJECT_MARKS: [&str; 3] = ["tenon.toml", "tenon.lock", ".tenon/plugins"];

/// The project that runs of this command belong to, by its folder. They belong to none where the folder is no project, since
/// what is the user's is the same in all folders, or where only one configuration is read.
pub(crate) fn project(common: &Common) -> Option<String> {
    let is_project = PROJECT_MARKS.iter().any(|mark| common.project.join(mark).exists());
    if common.config.is_some() || !is_project {
        return None;
    }
    let folder = common.project.canonicalize().ok()?;
    Some(folder.to_string_lossy().into_owned())
}

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
    if let Some(owner) = owner(run) {
        return format!("{owner} can resume the run {id}");
    }
    let command = match &run.of.project {
        Some(folder) if project(common).as_ref() != Some(folder) => {
            format!("tenon --project{} run", quoted(folder))
        }
        _ => hint::command(common, "run"),
    };
    format!("`{command} --resume {id}` goes on with the run")
}
