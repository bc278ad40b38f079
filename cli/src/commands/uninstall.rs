//! `tenon uninstall`

use serde_json::json;
use std::io::{self, BufRead, Write};
use std::process::ExitCode;
use tenon_config::lock::LockFile;
use tenon_config::manifest::FILE_NAME as MANIFEST;
use tenon_host::HostEnvironment;
use tenon_host::types::name::nearest;

use crate::approval::is_terminal;
use crate::error::{Error, Exit};
use crate::hint::quoted;
use crate::installed::InstallFolder;
use crate::open::trust;
use crate::plugin_in_folder::same;
use crate::{Common, open, output};

/// Remove an installed plugin and revoke its approvals
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The plugin
    #[arg(value_name = "PLUGIN")]
    plugin: String,
    /// Remove it from the user's plugins
    #[arg(long)]
    user: bool,
    /// Ask nothing
    #[arg(long)]
    yes: bool,
}

pub(crate) async fn run(common: &Common, args: Args) -> Result<ExitCode, Error> {
    let Args { plugin: id, user, yes } = args;
    let place = InstallFolder::of(common, &HostEnvironment::of_process(), user)?;
    let keeping = match user || common.config.is_some() {
        true => None,
        false => trust::keep(common)?,
    };
    let path = place.lock();
    let known = LockFile::read(&path)?;
    if !known.plugins.contains_key(&id) {
        let meant = match nearest(&id, known.plugins.keys().map(String::as_str)) {
            Some(meant) => format!("; did you mean \"{meant}\"?"),
            None => String::new(),
        };
        let path = path.display();
        return Err(Error::Input(format!(
            "plugin \"{id}\" is not in {path}: it was not installed{meant}"
        )));
    }
    if !yes && !is_terminal() {
        let user = if user { " --user" } else { "" };
        let command = format!("tenon uninstall{}{user} --yes", quoted(&id));
        let what = format!("remove plugin \"{id}\"");
        return Err(Error::Unconfirmed { what, command });
    }
    if !yes && !confirmed(format!("remove plugin \"{id}\" and its approval? [y]es, [n]o: ")).await {
        output::line(format!("plugin \"{id}\" stays"))?;
        return Ok(Exit::Refused.into());
    }
    let _claim = place.claim()?;
    let mut lock = LockFile::read(&path)?;
    // What cannot be removed keeps what was approved of it.
    let files = place.files(&lock, &id)?;
    let manifest = place.of_plugin(&id).join(MANIFEST);
    // While it is there: approvals are kept by where it really is.
    let found = open::found(common)?;
    let installed = { found.discovery.candidates.iter() }
        .find(|candidate| candidate.id() == id && same(candidate.named_in(), &manifest));
    let data = installed.and_then(|of| of.data_folder.clone()).filter(|folder| folder.is_dir());
    let revoked = match found.approvals() {
        Some(file) => file.revoke(&id, Some(&manifest))?,
        None => 0,
    };
    let left = place.remove(&mut lock, &id, &files)?;
    if let Some(keeping) = keeping {
        keeping.renew()?;
    }
    if common.json {
        let left: Vec<_> = left.iter().map(|path| path.to_string_lossy()).collect();
        let data = data.map(|folder| folder.to_string_lossy().into_owned());
        output::json(&json!({ "plugin": id, "revoked": revoked, "left": left, "data": data }))?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line(format!("plugin \"{id}\" is uninstalled"))?;
    for path in left {
        output::line(format!("  {} stays: it is not as it was installed", path.display()))?;
    }
    if let Some(folder) = data {
        output::line(format!("  its data stays in {}", folder.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Asks. Who interrupts the command is not waited for.
pub(crate) async fn confirmed(question: String) -> bool {
    let asked = tokio::task::spawn_blocking(move || {
        // Where standard error is closed there is nobody to ask.
        let _ = io::stderr().write_all(question.as_bytes());
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        read.is_ok() && matches!(line.trim().to_lowercase().as_str(), "y" | "yes")
    });
    asked.await.unwrap_or(false)
}
