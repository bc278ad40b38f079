//! Discovery of a project that its user has to trust first.
//!
//! Nothing of a project that is not trusted is parsed: its `tenon.toml` is compared with the one that was
//! trusted, and the rest is looked at only where that is the same.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::search_locations::EDITOR;
use super::{Candidate, Discovery, Sources, WORKSPACE, discover};
use crate::config::{Config, ConfigError};
use crate::diagnostic::chain;
use crate::discover::trust::{
    ProjectContent, ProjectTrust, TrustBasis, TrustProblem, TrustedProgram, UntrustedProject,
    is_project,
};
use crate::files::Digest;

/// Reads the configurations that come from files, and finds what there is, as far as the user
/// trusts the project ([`Sources::trust`]). Of a project that is not trusted, nothing is left in
/// `sources` either: its configuration there says nothing. Gives the errors of the configurations that
/// cannot be read, too; their former text stays in their place.
pub fn discover_trusted(sources: &mut Sources) -> (Discovery, Vec<ConfigError>) {
    let mut of_project = sources.configs.iter().filter(|config| config.is_of_project_file());
    let of_config = of_project.next().map(|config| config.folder().to_path_buf());
    let (record, folder) = match (&sources.trust, sources.workspace.clone().or(of_config)) {
        (TrustBasis::Recorded(file), Some(folder)) if is_project(&folder) => (file.clone(), folder),
        _ => {
            let errors = read(sources, |_, _| true);
            let mut discovery = discover(sources);
            if sources.trust == TrustBasis::User {
                discovery.candidates.iter_mut().for_each(Candidate::approve_command);
            }
            return (discovery, errors);
        }
    };
    let trusted = record.as_ref().map(|record| record.get(&folder)).transpose();
    let why = match trusted.map(Option::flatten) {
        Err(error) => TrustProblem::Unreadable(chain(&error)),
        Ok(None) => TrustProblem::Unknown,
        Ok(Some(trusted)) => match as_trusted(sources, &folder, &trusted) {
            Ok(found) => return found,
            Err(changed) => TrustProblem::Changed(changed),
        },
    };
    let record = record.as_ref().and_then(|record| record.path().parent());
    withhold(sources, UntrustedProject { folder, why }, record)
}

/// What there is, where it is as it was trusted; or else the files that are not.
fn as_trusted(
    sources: &mut Sources,
    folder: &Path,
    trusted: &ProjectTrust,
) -> Result<(Discovery, Vec<ConfigError>), Vec<String>> {
    let mut changed = Vec::new();
    let errors = read(sources, |config, digest| {
        let is_same = trusted.has(folder, &config.path, digest);
        if !is_same {
            changed.push(ProjectContent::key(folder, &config.path));
        }
        is_same
    });
    // One that could be read then.
    changed.extend(errors.iter().filter_map(|error| match error {
        ConfigError::Read(path, _) => {
            let mut own = sources.configs.iter().filter(|config| config.is_of_project_file());
            own.any(|config| config.path == *path).then(|| ProjectContent::key(folder, path))
        }
        ConfigError::Invalid { .. } => None,
    }));
    if !changed.is_empty() {
        return Err(changed);
    }
    sources.answers = trusted.answers().clone();
    let mut discovery = discover(sources);
    let own = |found: &&mut Candidate| found.origin.is_of_project();
    for candidate in discovery.candidates.iter_mut().filter(own) {
        // What is compared now is what has to be there whenever the server starts.
        candidate.programs = TrustedProgram::of(candidate, folder).map(Arc::new);
    }
    let changed = trusted.changed(&ProjectContent::of(&discovery, folder));
    if !changed.is_empty() {
        return Err(changed);
    }
    for candidate in discovery.candidates.iter_mut().filter(own) {
        candidate.trusted = trusted.code_of(folder, candidate);
        if trusted.lets_code_change() {
            candidate.programs = None;
        }
        // What nobody was shown, as a variable had no value or another, awaits an approval of its own.
        if trusted.has_start(folder, candidate) {
            candidate.approve_command();
        }
    }
    Ok((discovery, errors))
}

/// What there is without the project.
fn withhold(
    sources: &mut Sources,
    untrusted: UntrustedProject,
    record: Option<&Path>,
) -> (Discovery, Vec<ConfigError>) {
    for config in sources.configs.iter_mut().filter(|config| config.is_of_project_file()) {
        *config = config.unread();
    }
    let mut errors = Vec::new();
    for config in sources.configs.iter_mut().filter(|config| !config.is_of_project_file()) {
        read_again(config, |_, _| true, &mut errors);
    }
    Config::inherit(&mut sources.configs);
    let mut discovery = discover(&Sources { workspace: None, ..sources.clone() });
    // What changes there may be what is waited for.
    let folder = &untrusted.folder;
    let places = [folder.clone(), folder.join(WORKSPACE), folder.join(EDITOR)];
    places.iter().map(PathBuf::as_path).chain(record).for_each(|place| discovery.look_in(place));
    discovery.untrusted = Some(untrusted);
    (discovery, errors)
}

/// Reads configurations anew, those of a project where its content is let in. What is not let in, and
/// what cannot be read, stays as it was.
fn read(
    sources: &mut Sources,
    mut let_in: impl FnMut(&Config, Option<Digest>) -> bool,
) -> Vec<ConfigError> {
    let mut errors = Vec::new();
    for config in &mut sources.configs {
        read_again(config, &mut let_in, &mut errors);
    }
    Config::inherit(&mut sources.configs);
    errors
}

fn read_again(
    config: &mut Config,
    mut let_in: impl FnMut(&Config, Option<Digest>) -> bool,
    errors: &mut Vec<ConfigError>,
) {
    let mut found = None;
    let read = config.read_again(|digest| {
        found = digest;
        !config.is_of_project_file() || let_in(config, digest)
    });
    match read {
        Ok(Some(read)) => *config = read,
        Ok(None) => {}
        Err(error) => {
            // It is what it is, understood or not.
            config.set_digest(found);
            errors.push(error);
        }
    }
}
