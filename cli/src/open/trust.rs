//! Whether a command may use the project that it is run in.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use tenon_config::discover::trust::{
    ProjectReview, TrustBasis, TrustError, TrustFile, UntrustedProject, is_project,
};
use tenon_config::discover::{Sources, discover_trusted};
use tenon_host::HostEnvironment;

use crate::error::Error;
use crate::hint::quoted;
use crate::{Common, open};

/// The variable that names folders whose projects are trusted as they are, separated as in `PATH`.
const VARIABLE: &str = "TENON_TRUST";

/// Whose word it is that the project may be used.
pub(crate) fn of(common: &Common, host_environment: &HostEnvironment) -> TrustBasis {
    match common.trust || is_named(&common.project, host_environment) {
        true => TrustBasis::User,
        false => TrustBasis::Recorded(file(host_environment)),
    }
}

/// What the user trusts; nothing where there is no place for it.
pub(crate) fn file(host_environment: &HostEnvironment) -> Option<TrustFile> {
    Some(TrustFile::new(host_environment.state.as_ref()?.join("trust.json")))
}

/// The same, for what cannot do without.
pub(crate) fn kept_file(host_environment: &HostEnvironment) -> Result<TrustFile, Error> {
    let problem = "no folder for trusted projects: HOME is not set";
    file(host_environment).ok_or_else(|| Error::Host(problem.into()))
}

/// Whether the environment names the folder, or one that it is in. A relative path would name
/// whatever folder a command is run in.
fn is_named(folder: &Path, host_environment: &HostEnvironment) -> bool {
    let Some(value) = host_environment.environment.get(OsStr::new(VARIABLE)) else { return false };
    let Ok(folder) = folder.canonicalize() else { return false };
    let named = std::env::split_paths(value).filter(|path| !path.as_os_str().is_empty());
    let (named, relative): (Vec<PathBuf>, Vec<PathBuf>) =
        named.partition(|path| path.is_absolute());
    for path in relative {
        let path = path.display();
        tracing::warn!("{VARIABLE} names {path}, which is not an absolute path and is ignored");
    }
    named
        .into_iter()
        .filter_map(|path| path.canonicalize().ok())
        .any(|path| folder.starts_with(path))
}

/// Says that there may be what was asked for, in a project that is not trusted. Why it is not has been said.
pub(crate) fn unknown(what: &str, untrusted: &UntrustedProject) -> Error {
    let problem = format!(
        "there is no {what} but perhaps one of the project, of which nothing is used before it is trusted"
    );
    Error::Refused { problem, hint: untrusted.remedy() }
}

/// Refuses to run or compile what is in the folder of a plugin unless it is trusted to change: what is
/// built is different each time.
pub(crate) fn require_code(common: &Common, folder: &Path) -> Result<(), Error> {
    let host_environment = HostEnvironment::of_process();
    if common.trust || is_named(folder, &host_environment) {
        return Ok(());
    }
    let lets = file(&host_environment).map(|file| file.lets_code_change(folder)).transpose()?;
    if lets == Some(true) {
        return Ok(());
    }
    let (shown, folder) = (folder.display(), quoted(&folder.to_string_lossy()));
    Err(Error::Refused {
        problem: format!("the code in {shown} is not trusted, and to build it is to run it"),
        hint: format!(
            "`tenon trust{folder} --allow-code-changes` trusts it, `--trust` does for this command"
        ),
    })
}

/// The user's trust in a project that a command of the user's changes.
pub(crate) struct TrustRenewal {
    file: TrustFile,
    sources: Sources,
    before: ProjectReview,
}

/// Takes note of a project before a command changes it; nothing where that makes no difference.
pub(crate) fn keep(common: &Common) -> Result<Option<TrustRenewal>, Error> {
    let sources = open::sources(common)?;
    let TrustBasis::Recorded(file) = sources.trust.clone() else { return Ok(None) };
    if is_project(&common.project) {
        let (discovery, _) = discover_trusted(&mut sources.clone());
        if let Some(untrusted) = discovery.untrusted {
            let hint = untrusted.remedy();
            return Err(Error::Refused { problem: untrusted.to_string(), hint });
        }
    }
    let Some(file) = file else { return Ok(None) };
    let before = file.review(&sources)?;
    Ok(Some(TrustRenewal { file, sources, before }))
}

impl TrustRenewal {
    /// Trusts what the command has made of the project.
    pub(crate) fn renew(self) -> Result<(), Error> {
        let after = self.file.review(&self.sources)?;
        Ok(self.file.renew(&self.before, &after)?)
    }
}

/// Trusts a folder that a command has just made, with code that changes.
pub(crate) fn trust_new(common: &Common, folder: &Path) -> Result<(), Error> {
    let Some(file) = file(&HostEnvironment::of_process()) else { return Ok(()) };
    let sources =
        open::sources(&Common { project: folder.into(), config: None, ..common.clone() })?;
    let review = file.review(&sources)?;
    Ok(file.trust(&review, true)?)
}

impl From<TrustError> for Error {
    fn from(error: TrustError) -> Self {
        match error {
            TrustError::NoFolder(path, error) => Self::Read(path, error),
            error => Self::Host(tenon_config::diagnostic::chain(&error)),
        }
    }
}
