//! `tenon serve`

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tenon_config::files;
use tenon_host::{HostEnvironment, OnChange};
use tenon_serve::{HttpSettings, HttpToken, Profile, Server, Settings};
use tokio::net::TcpListener;

use crate::client_config::{Connection, McpClient};
use crate::error::Error;
use crate::{Common, open, output, stdio};

/// Serve everything to MCP clients
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tenon serve
  tenon serve --prefix false
  tenon serve --http
  tenon serve --http 127.0.0.1:0 --no-auth
  tenon serve --print-config claude-code

It speaks the Model Context Protocol in both of its eras: on standard input and output, until the input ends, or
over HTTP until it is interrupted. What plugins ask of a user or a model, the client is asked. Nobody is asked on
the terminal: `tenon approve` and `tenon trust` come first.

Over HTTP clients send a token, `Authorization: Bearer …`. It is made on first use and kept in a private file,
which is named on standard error. TLS is for a proxy in front of it.")]
pub(crate) struct Args {
    /// Serve HTTP on this address, at /mcp; with port 0 on a free one
    #[arg(long, value_name = "ADDRESS:PORT", num_args = 0..=1, default_missing_value = "127.0.0.1:7331")]
    http: Option<SocketAddr>,
    /// Read the token of HTTP clients from this private file
    #[arg(long, value_name = "FILE", requires = "http")]
    token_file: Option<PathBuf>,
    /// Ask HTTP clients for no token; on loopback only
    #[arg(long, requires = "http", conflicts_with = "token_file")]
    no_auth: bool,
    /// Take requests for this host as well, as a proxy passes them on; can be repeated
    #[arg(long = "host", value_name = "HOST", requires = "http")]
    hosts: Vec<String>,
    /// Print the entry with which a client finds this server, and serve nothing
    #[arg(long, value_name = "CLIENT")]
    print_config: Option<McpClient>,
    /// Begin the names of tools and prompts with those of their plugins
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    prefix: bool,
}

/// The name of the file with the token, in the user's folder for state.
const TOKEN_FILE: &str = "serve-token";

pub(crate) async fn run(common: &Common, args: Args) -> Result<ExitCode, Error> {
    if let Some(address) = args.http.filter(|address| args.no_auth && !address.ip().is_loopback()) {
        return Err(Error::Input(format!(
            "`--no-auth` on {address} would let everybody there use every plugin: leave it out, or serve on 127.0.0.1"
        )));
    }
    if let Some(client) = args.print_config {
        print_config(common, client, &args)?;
        return Ok(ExitCode::SUCCESS);
    }
    let found = open::found(common)?.served();
    open::with_stop(common, found.platform(|_| true), async |platform, stop| {
        let stop = async {
            let _ = stop.await;
        };
        let profile = Profile { prefix: args.prefix, ..Profile::default() };
        let server = Server::new(platform.clone(), Settings::with_profile(profile));
        let server = server.map_err(|error| Error::Host(error.to_string()))?;
        let _watch = platform.watch(OnChange::Reload)?;
        match args.http {
            None => serve_stdio(&server, stop).await?,
            Some(address) => serve_http(&server, address, args, stop).await?,
        }
        Ok(ExitCode::SUCCESS)
    })
    .await
}

async fn serve_stdio(server: &Server, stop: impl Future<Output = ()>) -> Result<(), Error> {
    let (input, output) = stdio::streams();
    match server.serve_lines(None, input, output, stop).await {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Error::Unread),
        Err(error) => Err(Error::Host(format!("the client cannot be reached: {error}"))),
    }
}

async fn serve_http(
    server: &Server,
    address: SocketAddr,
    Args { token_file, no_auth, hosts, .. }: Args,
    stop: impl Future<Output = ()>,
) -> Result<(), Error> {
    let mut settings = HttpSettings::default();
    settings.hosts = hosts;
    if !no_auth {
        let file = match token_file {
            Some(file) => file,
            None => default_token_file()?,
        };
        settings.token = Some(HttpToken::new(&read_token(&file)?));
        output::note(&format!("clients send the token in {}", file.display()));
    }
    let failed = |error: io::Error| Error::Host(format!("{address} cannot be served: {error}"));
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    output::note(&format!("listening on http://{address}/mcp"));
    server.serve_http(listener, settings, stop).await.map_err(failed)
}

/// Prints a client's entry for this server: with the project and the configuration of this command.
fn print_config(common: &Common, client: McpClient, args: &Args) -> Result<(), Error> {
    let entry = match args.http {
        Some(address) => {
            let url = format!("http://{address}/mcp");
            let token = match (args.no_auth, &args.token_file) {
                (true, _) => None,
                (false, Some(file)) => Some(read_token(file)?),
                (false, None) => Some(read_token(&default_token_file()?)?),
            };
            client.entry(&Connection::Http { url: &url, token: token.as_deref() })
        }
        None => {
            let program = std::env::current_exe();
            let program = program.map_err(|error| Error::Host(format!("the program: {error}")))?;
            let mut arguments = vec!["serve".to_string()];
            let mut add = |option: &str, path: &Path| {
                arguments.extend([option.to_string(), files::absolute(path).display().to_string()]);
            };
            match &common.config {
                Some(config) => add("--config", config),
                // Clients start their servers in folders of their own choice.
                None => add("--project", &common.project),
            }
            if !args.prefix {
                arguments.extend(["--prefix".to_string(), "false".to_string()]);
            }
            client.entry(&Connection::Stdio { program: &program, arguments: &arguments })
        }
    };
    output::line(entry.map_err(Error::Input)?)?;
    output::note(&format!("put it into {}", client.file()));
    Ok(())
}

/// The user's own token. It is made where there is none.
fn default_token_file() -> Result<PathBuf, Error> {
    let folder = HostEnvironment::of_process().state;
    let folder = folder.ok_or_else(|| {
        Error::Host("no folder for the token: HOME is not set; `--token-file` names a file".into())
    })?;
    let path = folder.join(TOKEN_FILE);
    let failed = |error: io::Error| Error::Host(format!("{}: {error}", path.display()));
    files::claim(&folder).map_err(failed)?;
    if !path.exists() {
        let token = HttpToken::random_text();
        let token = token.ok_or_else(|| Error::Host("the system has no random numbers".into()))?;
        match files::write_private(&path, format!("{token}\n").as_bytes()) {
            // Another command has just made it.
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(failed(error));
            }
            _ => {}
        }
    }
    Ok(path)
}

fn read_token(file: &Path) -> Result<String, Error> {
    let text = files::read_private(file).map_err(|error| {
        Error::Input(format!("the token file {} cannot be read: {error}", file.display()))
    })?;
    let token = text.trim();
    match token.len() >= MIN_TOKEN_BYTES && token.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(token.to_string()),
        false => Err(Error::Input(format!(
            "{} has no token: one has at least {MIN_TOKEN_BYTES} visible characters of ASCII",
            file.display()
        ))),
    }
}

/// The shortest token that is taken.
const MIN_TOKEN_BYTES: usize = 16;
