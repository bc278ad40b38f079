//! `tenon test`

use serde::Serialize;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::component_build::{BuildProfile, build};
use crate::error::{Error, Exit};
use crate::open::trust;
use crate::plugin_in_folder::{AuthoredPlugins, PluginInFolder};
use crate::source_snapshot::SourceSnapshot;
use crate::test_cases::{CaseFile, CaseResult, PluginUnderTest, run_all};
use crate::{Common, output, project_folder};

/// Run the cases of the plugin of a folder, or of those of a project
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tenon test
  tenon test plugins/hello --only greet
  tenon --json test | jq '.cases[] | select(.problems != [])'

Cases are tables in the files `cases/*.toml` beside the plugin.toml: what the plugin finds (settings, secrets, files, \
answers to HTTP requests, of a model and of the user), what is called, and what is expected. Each runs in a host of \
its own, in which the plugin has what its manifest requests. No case reaches the network or files of yours. A component \
that is missing or older than its source is built first.")]
pub(crate) struct Args {
    /// The folder of a plugin or a project [default: this one, or the nearest above it]
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Run cases whose names have this text in them
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Test the last build
    #[arg(long)]
    no_build: bool,
}

pub(crate) async fn run(common: &Common, args: Args) -> Result<ExitCode, Error> {
    let folder = project_folder::of_author(common, args.folder.as_deref());
    let authored = AuthoredPlugins::read(common, &folder)?;
    trust::require_code(common, &folder)?;
    let mut results = Vec::new();
    for plugin in &authored.plugins {
        test(common, &args, plugin, &mut results).await?;
    }
    if results.is_empty() {
        return Err(Error::Input(match &args.only {
            Some(only) => format!("no case has {only:?} in its name"),
            None => {
                format!("{} has no cases: there is no file in its folder `cases`", folder.display())
            }
        }));
    }
    let failed = results.iter().filter(|(_, result)| !result.problems.is_empty()).count();
    if common.json {
        #[derive(Serialize)]
        struct CaseReport<'a> {
            file: &'a Path,
            #[serde(flatten)]
            result: &'a CaseResult,
        }
        let cases = results.iter().map(|(file, result)| CaseReport { file, result });
        output::json(&json!({ "failed": failed, "cases": cases.collect::<Vec<_>>() }))?;
    } else {
        output::line(format!("{} passed, {failed} failed", results.len() - failed))?;
    }
    Ok(if failed == 0 { Exit::Success } else { Exit::Failed }.into())
}

/// Runs the cases of a plugin, and adds what came of them with the files that they are in.
async fn test(
    common: &Common,
    args: &Args,
    authored: &PluginInFolder,
    results: &mut Vec<(PathBuf, CaseResult)>,
) -> Result<(), Error> {
    let mut files = CaseFile::read_all(&authored.folder)?;
    if let Some(only) = &args.only {
        files.iter_mut().for_each(|file| file.cases.retain(|case| case.name.contains(only)));
    }
    files.retain(|file| !file.cases.is_empty());
    if files.is_empty() {
        return Ok(());
    }
    if let Some(component) = authored.plugin.component().filter(|_| !args.no_build)
        && SourceSnapshot::read(&authored.folder).is_unbuilt(component)
    {
        build(authored, BuildProfile::Debug).await?;
    }
    let plugin = PluginUnderTest::new(authored);
    for file in files {
        if !common.json {
            output::line(file.path.strip_prefix(".").unwrap_or(&file.path).display())?;
        }
        for result in run_all(&plugin, &file).await {
            if !common.json {
                show(&file.path, &result)?;
            }
            results.push((file.path.clone(), result));
        }
    }
    Ok(())
}

fn show(file: &Path, result: &CaseResult) -> Result<(), Error> {
    let CaseResult { name, line, problems, time } = result;
    let word = if problems.is_empty() { "ok" } else { "FAILED" };
    output::text(&format!("  {word:<6}  {name} ({} ms)", time.as_millis()))?;
    if !problems.is_empty() {
        output::text(&format!(
            "          {}:{line}",
            file.strip_prefix(".").unwrap_or(file).display()
        ))?;
    }
    for problem in problems {
        for line in problem.lines() {
            output::text(&format!("          {line}"))?;
        }
    }
    Ok(())
}
