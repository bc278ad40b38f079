//! `tenon skills`

use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use tenon_config::chain;
use tenon_config::discover::Candidate;
use tenon_config::files::absolute;
use tenon_config::skills::FILE_NAME;
use tenon_host::types::text::one_line;
use tenon_host::{CallError, PluginSkills, Skill};

use crate::error::{Error, Exit};
use crate::open::{self, FoundPlugins};
use crate::{Common, output};

/// List or read the skills of plugins: instructions for agents
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tenon skills list
  tenon skills list reviews
  tenon skills read reviews code-review
  tenon skills read reviews code-review scripts/diff.sh --output diff.sh
  tenon --json skills list | jq -r '.[].folder'

A skill is a folder skills/NAME of a plugin with a SKILL.md, in the format of https://agentskills.io. A \
plugin that carries skills must be approved. The approval covers all their files: a plugin whose skills \
have changed must be approved again. No plugin is started.")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// List the skills of a plugin, or of all
    List {
        /// The plugin
        plugin: Option<String>,
    },
    /// Read the instructions of a skill, or another of its files
    Read {
        /// The plugin
        plugin: String,
        /// The skill
        skill: String,
        /// The file, by its path in the skill's folder
        #[arg(default_value = FILE_NAME)]
        file: String,
        /// Write it to a file
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

pub(crate) async fn run(common: &Common, args: Args) -> Result<ExitCode, Error> {
    let found = open::found(common)?;
    match args.verb {
        Verb::List { plugin: None } => list_all(common, &found).await,
        Verb::List { plugin: Some(plugin) } => {
            let owner = of_plugin(&found, &plugin).await?;
            output::if_empty(owner.skills().is_empty(), "it has no skills");
            list(common, &[owner])?;
            Ok(ExitCode::SUCCESS)
        }
        Verb::Read { plugin, skill, file, output } => {
            let owner = of_plugin(&found, &plugin).await?;
            let content = read(&owner, &skill, &file)?;
            match (output, String::from_utf8(content)) {
                (Some(path), content) => {
                    let bytes = content.map_or_else(|error| error.into_bytes(), String::into_bytes);
                    fs::write(&path, bytes).map_err(|error| Error::Write(path, error))?;
                }
                (None, Ok(text)) if common.json => {
                    output::json(
                        &json!({ "plugin": plugin, "skill": skill, "file": file, "text": text }),
                    )?;
                }
                (None, Err(_)) if common.json => {
                    let problem = format!("{file} is not text; `--output` writes it to a file");
                    return Err(Error::Input(problem));
                }
                (None, Ok(text)) => output::text(text.trim_end())?,
                (None, Err(error)) => output::bytes(error.as_bytes())?,
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Lists the skills of all plugins. Those of one that is not let in are not listed, which is said.
async fn list_all(common: &Common, found: &FoundPlugins) -> Result<ExitCode, Error> {
    let mut code = Exit::Success;
    for diagnostic in &found.discovery.diagnostics {
        tracing::warn!("{diagnostic}");
        // What cannot be understood is wrong configuration.
        code = Exit::Input;
    }
    let mut owners = Vec::new();
    for (plugin, admitted) in found.admit(|plugin| !plugin.skills().is_empty()).await {
        match admitted {
            Ok(owner) => owners.push(owner),
            Err(refusal) => {
                let remedy = refusal.remedy();
                tracing::warn!(
                    "the skills of plugin \"{plugin}\" are left out: {refusal}; {remedy}"
                );
                // One that waits for its approval, or that its operator does not want, has not failed.
                if !refusal.awaits_approval() && !refusal.is_meant() {
                    code = code.max(Exit::Refused);
                }
            }
        }
    }
    output::if_empty(owners.is_empty(), "there are no skills");
    list(common, &owners)?;
    Ok(code.into())
}

fn list(common: &Common, owners: &[Candidate]) -> Result<(), Error> {
    let with_skills = owners.iter().filter_map(|owner| Some((owner, owner.skills.as_deref()?)));
    let all = with_skills.flat_map(|(owner, skills)| {
        skills.all().iter().map(move |skill| (owner.id(), skills, skill))
    });
    if common.json {
        let rows = all.map(|(plugin, skills, skill)| row(plugin, skills, skill));
        return output::json(&rows.collect::<Vec<Value>>());
    }
    for (plugin, _, skill) in all {
        output::line(format!("{plugin}  {}  {}", skill.name, one_line(&skill.description)))?;
    }
    Ok(())
}

fn row(plugin: &str, skills: &PluginSkills, skill: &Skill) -> Value {
    json!({
        "plugin": plugin,
        "name": skill.name,
        "description": skill.description,
        "license": skill.license,
        "compatibility": skill.compatibility,
        "folder": absolute(&skills.folder_of(skill)).to_string_lossy(),
        "files": skill.files().collect::<Vec<_>>(),
    })
}

/// The plugin of an id, if it is let in.
async fn of_plugin(found: &FoundPlugins, id: &str) -> Result<Candidate, Error> {
    match found.admit(|plugin| plugin.id() == id).await.into_iter().next() {
        Some((_, Ok(owner))) => Ok(owner),
        Some((_, Err(refusal))) => Err(open::refused(id.into(), &refusal)),
        None => Err(found.broken(|plugin| plugin == id).unwrap_or_else(|| found.unknown(id))),
    }
}

/// Reads a file of a skill.
fn read(owner: &Candidate, skill: &str, file: &str) -> Result<Vec<u8>, Error> {
    let unknown = || CallError::not_found("skill", skill, owner.skill_names());
    let skills = owner.skills.as_deref().ok_or_else(unknown)?;
    let found = skills.get(skill).ok_or_else(unknown)?;
    let content = skills.read(found, file).map_err(|error| Error::Host(chain(&error)))?;
    Ok(content.ok_or_else(|| CallError::not_found("file", file, found.files()))?)
}
