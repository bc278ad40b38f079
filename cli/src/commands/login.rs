//! `tenon login`

use serde_json::json;
use std::process::ExitCode;
use std::time::{Duration, UNIX_EPOCH};
use tenon_config::discover::{CodeSource, Remote, ServerLocation};
use tenon_config::secret::SecretStore;
use tenon_host::HostEnvironment;
use url::Url;

use crate::error::Error;
use crate::keychain::secret_store;
use crate::login::{LoginError, LoginOptions, LoginStore, log_in};
use crate::{Common, open, output};

/// Log in to an MCP server elsewhere, with a browser
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tenon login tracker
  tenon login tracker --no-browser
  tenon login tracker --scope 'issues:read issues:write'
  tenon login tracker --client-id tenon --client-secret tracker-client

The server says who gives tokens for it; the browser opens a page there, and comes back to a port of this machine. The \
tokens are kept in the system's keychain, or else in a file that only its user can read, and renewed as long as they can \
be. They go into requests to the origin of the server's URL and nowhere else. If the server wants more rights later, the \
same command asks for them. An entry whose `headers` have `Authorization` needs no login.")]
pub(crate) struct Args {
    /// The server, as `tenon plugins` names it
    #[arg(value_name = "SERVER")]
    server: String,
    /// Ask for these scopes, and not for those that the server names
    #[arg(long, value_name = "SCOPES")]
    scope: Vec<String>,
    /// The client that is known to the authorization server already
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// The secret with which that client proves itself, by the name under which `tenon secret set` stored it
    #[arg(long, value_name = "SECRET", requires = "client_id")]
    client_secret: Option<String>,
    /// Present this client ID metadata document, where the authorization server takes one
    #[arg(long, value_name = "URL", conflicts_with = "client_id")]
    client_metadata: Option<Url>,
    /// Have the browser come back to this port [default: any that is free]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Print the page's URL, and open no browser
    #[arg(long)]
    no_browser: bool,
}

/// The variable that names a browser, as other programs know it.
const BROWSER: &str = "BROWSER";

pub(crate) async fn run(common: &Common, args: Args) -> Result<ExitCode, Error> {
    let url = server_url(common, &args.server, true)?;
    let store = login_store(&args.server)?;
    let failed = |error| Error::Login { server: args.server.clone(), error };
    let client_secret = match &args.client_secret {
        Some(name) => {
            let secrets = secret_store(HostEnvironment::of_process());
            let secret = secrets.secret(&args.server, name).await;
            let unset = || {
                let remedy = secrets.remedy(name).unwrap_or_default();
                Error::Input(format!("the secret {name:?} is not set; {remedy}"))
            };
            Some(secret.ok_or_else(unset)?)
        }
        None => None,
    };
    let scopes = args.scope.iter().flat_map(|scopes| scopes.split_whitespace());
    let options = LoginOptions {
        scopes: scopes.map(str::to_string).collect(),
        client_id: args.client_id,
        client_secret,
        client_metadata: args.client_metadata.map(String::from),
        port: args.port,
    };
    let show = |page: &str| {
        output::note(&format!("log in on this page: {page}"));
        if !args.no_browser && !open_browser(page) {
            output::note("no browser could be opened");
        }
    };
    let login = log_in(&url, &store, options, show).await.map_err(failed)?;
    let expires = login.expires.map(|end| {
        humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(end)).to_string()
    });
    if common.json {
        output::json(&json!({
            "server": args.server,
            "issuer": login.issuer,
            "scopes": login.scopes,
            "expires": expires,
            "renewable": login.refresh_token.is_some(),
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut line = format!("logged in to {}", args.server);
    if !login.scopes.is_empty() {
        line += &format!(", scopes {}", login.scopes.join(" "));
    }
    if let (Some(expires), None) = (expires, &login.refresh_token) {
        line += &format!(", until {expires}");
    }
    output::line(line)?;
    Ok(ExitCode::SUCCESS)
}

/// The logins that there are.
pub(super) fn login_store(server: &str) -> Result<LoginStore, Error> {
    let no_folder = || Error::Login { server: server.into(), error: LoginError::NoFolder };
    LoginStore::new(&HostEnvironment::of_process()).ok_or_else(no_folder)
}

/// The URL of a server elsewhere that somebody named. With `to_use` it must be one that uses a login.
pub(super) fn server_url(common: &Common, server: &str, to_use: bool) -> Result<Url, Error> {
    let found = open::found(common)?;
    let candidate = found.candidate(server)?;
    let here =
        || Error::Input(format!("\"{server}\" is no MCP server elsewhere: nobody logs in to it"));
    let CodeSource::Mcp(found) = &candidate.source else { return Err(here()) };
    let ServerLocation::Remote(Remote { url, headers, .. }) = &found.place else {
        return Err(here());
    };
    if to_use && headers.keys().any(|name| name.eq_ignore_ascii_case("authorization")) {
        return Err(Error::Input(format!(
            "the entry of \"{server}\" has `Authorization` under `headers`, which is used instead of a login"
        )));
    }
    Ok(url.clone())
}

/// Opens a page. Gives whether there is anything to open it with.
fn open_browser(page: &str) -> bool {
    let named = std::env::var(BROWSER).ok().filter(|browser| !browser.is_empty());
    let opened = match named {
        Some(browser) => ::open::with_detached(page, browser),
        None => ::open::that_detached(page),
    };
    opened.is_ok()
}
