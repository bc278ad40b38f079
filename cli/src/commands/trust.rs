//! `tenon trust`

use serde_json::json;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tenon_config::discover::trust::{InputQuestion, ProjectEffect, ProjectReview, ReviewItem};
use tenon_host::HostEnvironment;
use tenon_host::types::text::one_line;

use crate::approval::{is_terminal, seen};
use crate::client::line;
use crate::error::{Error, Exit};
use crate::hint::quoted;
use crate::open::trust;
use crate::{Common, open, output};

/// Show what a project would run, and trust it
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tenon trust
  tenon trust ../checkout --yes
  tenon trust --revoke ../checkout
  tenon trust --list

A project is the tenon.toml, .mcp.json, .vscode/mcp.json and .tenon/plugins of a folder, and the files \
that they name. Nothing of it is started, loaded or compiled until it is trusted. Trust covers the \
project as it is now: when a file changes, nothing of it is used until `tenon trust` has shown the \
change; when a component or script changes, only that plugin waits. Of a server, the program and the \
files in its arguments are compared, but not what these load. What plugins request must be approved \
as well, with `tenon approve`.

For automation, `--trust` trusts the project for one command. The variable TENON_TRUST lists folders, \
like PATH: all projects in and below them are trusted.")]
pub(crate) struct Args {
    /// The project's folder [default: that of --project]
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Trust it, and ask nothing
    #[arg(long)]
    yes: bool,
    /// Also trust later changes of its components, scripts, manifests and programs
    #[arg(long)]
    allow_code_changes: bool,
    /// Revoke the trust
    #[arg(long, conflicts_with_all = ["yes", "allow_code_changes"])]
    revoke: bool,
    /// List the trusted projects
    #[arg(long, conflicts_with_all = ["folder", "yes", "allow_code_changes", "revoke"])]
    list: bool,
}

pub(crate) async fn run(common: &Common, args: Args) -> Result<ExitCode, Error> {
    if common.config.is_some() {
        let problem = "with --config nothing of a project is used, and nothing needs to be trusted";
        return Err(Error::Input(problem.into()));
    }
    let file = trust::kept_file(&HostEnvironment::of_process())?;
    if args.list {
        return list(common, &file.list()?);
    }
    let folder = args.folder.unwrap_or_else(|| common.project.clone());
    let shown = std::path::absolute(&folder).unwrap_or_else(|_| folder.clone());
    let shown = one_line(&shown.to_string_lossy()).into_owned();
    if args.revoke {
        if !file.revoke(&folder)? {
            return Err(Error::Input(format!("the project in {shown} is not trusted")));
        }
        match common.json {
            true => output::json(&json!({ "folder": folder, "trusted": false }))?,
            false => output::line(format!("the project in {shown} is not trusted any more"))?,
        }
        return Ok(ExitCode::SUCCESS);
    }
    if !folder.is_dir() {
        return Err(Error::Input(format!("{shown} is not a folder")));
    }
    let mut sources = open::sources(&Common { project: folder.clone(), ..common.clone() })?;
    let mut review = file.review(&sources)?;
    if !review.questions.is_empty() && !args.yes && is_terminal() {
        sources.answers = answers(review.questions).await;
        review = file.review(&sources)?;
    }
    let code_may_change = args.allow_code_changes || review.code_may_change == Some(true);
    let is_as_before = review.is_trusted() && review.code_may_change == Some(code_may_change);
    if is_as_before || !review.is_project && !code_may_change {
        let said = match is_as_before {
            true => format!("the project in {shown} is trusted as it is"),
            false => format!("nothing in {shown} needs trust"),
        };
        return told(common, &review, is_as_before, code_may_change, &said);
    }
    let question = text(&review, &shown, code_may_change);
    let asks = !args.yes && is_terminal();
    if !asks && !common.json {
        output::write(&question)?;
    }
    if !args.yes && !asks {
        let refused = Error::Refused {
            problem: format!("no terminal to ask whether to trust the project in {shown}"),
            hint: format!("`{}` trusts it without asking", command(&folder, code_may_change)),
        };
        if !common.json {
            return Err(refused);
        }
        // One document: what there is to be trusted, and why it is not.
        let mut form = form(&review, false, code_may_change);
        form["error"] = refused.to_json()["error"].take();
        output::json(&form)?;
        return Ok(refused.exit_code().into());
    }
    if asks && !ask(question).await {
        told(common, &review, false, code_may_change, "it is not trusted")?;
        return Ok(Exit::Refused.into());
    }
    file.trust(&review, code_may_change)?;
    told(common, &review, true, code_may_change, &format!("the project in {shown} is trusted"))
}

fn list(
    common: &Common,
    projects: &[tenon_config::discover::trust::TrustedProject],
) -> Result<ExitCode, Error> {
    if common.json {
        output::json(&projects)?;
        return Ok(ExitCode::SUCCESS);
    }
    for project in projects {
        let code = if project.code_may_change { "  (its code may change)" } else { "" };
        output::line(format!("{}{code}", one_line(&project.folder.to_string_lossy())))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn told(
    common: &Common,
    review: &ProjectReview,
    trusted: bool,
    code_may_change: bool,
    said: &str,
) -> Result<ExitCode, Error> {
    match common.json {
        true => output::json(&form(review, trusted, code_may_change))?,
        false => output::line(said)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn form(review: &ProjectReview, trusted: bool, code_may_change: bool) -> serde_json::Value {
    let ProjectReview { folder, items, removed, changed, .. } = review;
    json!({
        "folder": folder,
        "trusted": trusted,
        "codeMayChange": code_may_change,
        "items": items,
        "removed": removed,
        "changedFiles": changed,
    })
}

/// The command that trusts without asking.
fn command(folder: &Path, code_may_change: bool) -> String {
    let code = if code_may_change { " --allow-code-changes" } else { "" };
    let folder = match folder == Path::new(".") {
        true => String::new(),
        false => quoted(&folder.to_string_lossy()),
    };
    format!("tenon trust{code}{folder} --yes")
}

/// What a project would do, as people see it: what is new has a `+` before it, what is gone a `-`.
fn text(review: &ProjectReview, shown: &str, code_may_change: bool) -> String {
    let is_known = review.code_may_change.is_some();
    let mut text = match is_known {
        true => format!("the project in {shown} has changed since it was trusted\n"),
        false => format!("the project in {shown}\n"),
    };
    for item in &review.items {
        let ReviewItem { kind, plugin, text: what, details, new_details, is_new } = item;
        let sign = |is_new| if is_known && is_new { '+' } else { ' ' };
        let plugin = plugin.as_ref().map(|plugin| format!("{plugin}: ")).unwrap_or_default();
        let needs = match kind {
            ProjectEffect::Requests => "  (needs an approval of its own)".into(),
            _ => Cow::Borrowed(""),
        };
        let (is_new, what) = (sign(*is_new), seen(what));
        text.push_str(&format!("{is_new} {:<9} {plugin}{what}{needs}\n", kind.as_str()));
        for detail in details {
            let is_new = sign(new_details.contains(detail));
            text.push_str(&format!("{is_new}             {}\n", seen(detail)));
        }
    }
    for line in &review.removed {
        text.push_str(&format!("- {}\n", seen(line)));
    }
    for file in &review.changed {
        text.push_str(&format!("  changed   {}\n", seen(file)));
    }
    if code_may_change {
        text.push_str(
            "  its components and scripts, their manifests and skills, and programs may change, and be built, from then on\n",
        );
    }
    text
}

/// Asks what the project's files would have its user asked for. What is left empty has its default, or stays without a
/// value.
async fn answers(questions: Vec<InputQuestion>) -> BTreeMap<String, String> {
    let asked = tokio::task::spawn_blocking(move || {
        let mut answers = BTreeMap::new();
        for question in questions {
            let Some(answer) = answer(&question) else { break };
            if !answer.is_empty() {
                answers.insert(question.id, answer);
            }
        }
        answers
    });
    asked.await.unwrap_or_default()
}

/// Asks for one of them until something is said that it can be; nothing where nobody answers.
fn answer(question: &InputQuestion) -> Option<String> {
    let InputQuestion { id, description, default, options } = question;
    let about = description.as_deref().map(|text| format!(" ({})", one_line(text)));
    let choice = (!options.is_empty()).then(|| format!(", one of {}", question.shown_options()));
    let default = default.as_deref().filter(|default| question.takes(default));
    let offer = default.map(|default| format!(" [{}]", one_line(default)));
    let [about, choice, offer] = [about, choice, offer].map(Option::unwrap_or_default);
    let text = format!("the project asks for {}{about}{choice}{offer}: ", one_line(id));
    loop {
        let said = line(&text)?;
        if said.is_empty() {
            return Some(default.unwrap_or_default().to_string());
        }
        if question.takes(&said) {
            return Some(said);
        }
        // Where standard error is closed there is nobody to ask.
        let _ = writeln!(io::stderr(), "it is none of these");
    }
}

/// Shows it and asks. Who interrupts the command is not waited for.
async fn ask(shown: String) -> bool {
    let asked = tokio::task::spawn_blocking(move || {
        // Where standard error is closed there is nobody to ask.
        let _ = io::stderr().write_all(format!("{shown}trust it? [y]es, [n]o: ").as_bytes());
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        read.is_ok() && matches!(line.trim().to_lowercase().as_str(), "y" | "yes")
    });
    asked.await.unwrap_or(false)
}
