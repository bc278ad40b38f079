//! `tenon dev`

use std::future::pending;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tenon_config::manifest::FILE_NAME as MANIFEST;
use tenon_host::{Event, OnChange, Platform, PluginState};

use super::serve::{self, HttpEndpoint};
use crate::dev::{DevHost, Session, plugin_problem};
use crate::error::Error;
use crate::event_text::{call_text, change_text};
use crate::open::trust;
use crate::{Common, open, output};

/// Build, load and test plugins while they are edited
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tenon dev
  tenon dev plugins/hello
  tenon dev --serve

Whenever a file is saved, its plugin is built, loaded and tested. A plugin that does not build or load leaves the \
former one where it is. `tenon call` in the same project finds this command: it waits for what is being built, and \
after each change the last call is made again. Calls, what they used, refusals and what plugins log are shown.

The plugins of the folder get what their manifests request as long as this command runs. All else holds as in \
every host. Components are built with `tenon build --debug`; `tenon build` makes those to publish.")]
pub(crate) struct Args {
    /// The folder of a project [default: that of --project]
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Serve the plugins to MCP clients as well, over HTTP on this address, at /mcp
    #[arg(long, value_name = "ADDRESS:PORT", num_args = 0..=1, default_missing_value = serve::DEFAULT_ADDRESS, value_parser = serve::address)]
    serve: Option<SocketAddr>,
    /// Run no tests
    #[arg(long)]
    no_tests: bool,
}

pub(crate) async fn run(common: &Common, args: Args) -> Result<ExitCode, Error> {
    let folder = args.folder.as_ref().unwrap_or(&common.project);
    let folder = folder.canonicalize().map_err(|error| Error::Read(folder.clone(), error))?;
    require_project(common, &folder)?;
    trust::require_code(common, &folder)?;
    // What changes is trusted as it was.
    let common = &Common { project: folder.clone(), trust: true, ..common.clone() };
    let session = Session::begin(common, !args.no_tests).await?;
    let arguments = serve::Args::default();
    let http = match args.serve {
        Some(address) => Some(HttpEndpoint::listen(common, address, &arguments).await?),
        None => None,
    };
    let found = match &http {
        Some(http) => open::served(common, Some(http.address))?,
        None => open::found(common)?,
    };
    let found = found.authored_in(folder);
    let configs = &found.sources.configs;
    let settings = serve::settings(configs, &arguments)?;
    let http = http.map(|http| http.take_tokens_of_issuer(configs, &settings)).transpose()?;
    let client = found.client().clone();
    open::with_stop(common, found.platform(|_| true), async |platform, stop| {
        let host = DevHost { platform: platform.clone(), client };
        let _watch = platform.watch(OnChange::Reload)?;
        let serving = async {
            match http {
                Some(http) => http.serve(&serve::server(platform, settings)?, pending()).await,
                None => pending().await,
            }
        };
        let stop = async {
            let _ = stop.await;
        };
        tokio::select! {
            ended = session.run(&host, stop) => ended?,
            told = tell(platform) => told?,
            served = serving => served?,
            () = output::unread() => return Err(Error::Unread),
        }
        Ok(ExitCode::SUCCESS)
    })
    .await
}

/// Refuses the folder of a plugin that no project loads: nothing would be ready, and nothing would say why.
fn require_project(common: &Common, folder: &Path) -> Result<(), Error> {
    let is_project = common.config.is_some() || folder.join("tenon.toml").is_file();
    match folder.join(MANIFEST).is_file() && !is_project {
        true => Err(Error::Input(format!(
            "the plugin in {} belongs to no project: write `plugins.folders = [\".\"]` into a tenon.toml beside its \
             plugin.toml, or run `tenon dev` in the project that loads it",
            folder.display()
        ))),
        false => Ok(()),
    }
}

/// Says what becomes of plugins and calls.
async fn tell(platform: &Platform) -> Result<(), Error> {
    let mut events = platform.events();
    let ready = platform.registry().plugins().len();
    output::line(format!("{ready} plugins are ready; `tenon call` calls their tools"))?;
    tell_problems(platform, |_| true)?;
    while let Some(event) = events.next().await {
        if let Some(text) = change_text(&event).or_else(|| call_text(&event)) {
            output::text(&text)?;
        }
        if let Event::Reloaded { plugin, .. } = &event {
            tell_problems(platform, |id| *id == **plugin)?;
        }
    }
    Ok(())
}

/// Says what is wrong with plugins that are there: a tool may have been left out.
fn tell_problems(platform: &Platform, is_one: impl Fn(&str) -> bool) -> Result<(), Error> {
    let plugins = platform.plugins();
    let ready = plugins.iter().filter(|report| report.state == PluginState::Ready);
    for problem in ready.filter(|report| is_one(&report.plugin)).filter_map(plugin_problem) {
        output::line(problem)?;
    }
    Ok(())
}
