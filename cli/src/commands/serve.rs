//! `tenon serve`

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use tenon_config::config::ProfileMode;
use tenon_config::files;
use tenon_host::{Config, HostEnvironment, OnChange, Platform};
use tenon_serve::{HttpSettings, HttpTokenDigest, Profile, Server, Settings, ToolMode};
use tokio::net::TcpListener;
use url::{Position, Url};

use crate::client_config::{Connection, McpClient};
use crate::error::Error;
use crate::issuer::token_issuer;
use crate::metrics::PrometheusExporter;
use crate::tokens::{NamedTokenStore, ServerTokens, random_token};
use crate::{Common, blocking, open, output, paused_run, stdio};

/// Serve everything to MCP clients
#[derive(Default, clap::Args)]
#[command(after_help = "Examples:
  tenon serve
  tenon serve --profile files
  tenon serve --http
  tenon serve --http 127.0.0.1:0 --no-auth
  tenon serve --print-config claude-code

It speaks the Model Context Protocol in both of its eras: on standard input and output, until the input ends, or \
over HTTP until it is interrupted. What plugins ask of a user or a model, the client is asked. Nobody is asked on \
the terminal: `tenon approve` and `tenon trust` come first.

Over HTTP clients send a token, `Authorization: Bearer …`. One is made on first use and kept in a private file, \
which is named on standard error; `tenon token` makes others, and `[issuer]` in the user's configuration names an \
authorization server whose tokens are good as well. `/mcp/p/NAME` offers what a profile says. TLS is for a proxy \
in front of it.")]
pub(crate) struct Args {
    /// Serve HTTP on this address, at /mcp; with port 0 on a free one
    #[arg(long, value_name = "ADDRESS:PORT", num_args = 0..=1, default_missing_value = DEFAULT_ADDRESS, value_parser = address)]
    http: Option<SocketAddr>,
    /// Read the token of HTTP clients from this private file
    #[arg(long, value_name = "FILE", requires = "http")]
    token_file: Option<PathBuf>,
    /// Ask HTTP clients for no token; on loopback only
    #[arg(long, requires = "http", conflicts_with = "token_file")]
    no_auth: bool,
    /// Take requests for this host as well, as a proxy passes them on; can be repeated
    #[arg(long = "host", value_name = "HOST", requires = "http", value_parser = host)]
    hosts: Vec<String>,
    /// Print the entry with which a client finds this server, and serve nothing
    #[arg(long, value_name = "CLIENT")]
    print_config: Option<McpClient>,
    /// Offer what this profile of the configuration says, and nothing else
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Begin the names of tools and prompts with those of their plugins
    #[arg(long, value_name = "BOOL", action = clap::ArgAction::Set)]
    prefix: Option<bool>,
}

/// The address that is served on where none is named.
pub(super) const DEFAULT_ADDRESS: &str = "127.0.0.1:7331";

/// Reads an address to serve on.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "it is an IP address and a port, as `127.0.0.1:7331`".into())
}

/// Reads the name of a host, as it stands in `Host`.
fn host(text: &str) -> Result<String, String> {
    match text.is_empty() || text.contains(['/', '@', ' ']) {
        true => Err("a host is `NAME` or `NAME:PORT`, without a scheme and a path".into()),
        false => Ok(text.to_string()),
    }
}

/// The name of the file with the token, in the user's folder for state.
const TOKEN_FILE: &str = "serve-token";

pub(crate) async fn run(common: &Common, args: Args) -> Result<ExitCode, Error> {
    if common.answers.is_some() {
        let problem = "`--answers` is for single calls: what plugins ask of a user, the clients of `tenon serve` are asked";
        return Err(Error::Input(problem.into()));
    }
    if let Some(address) = args.http.filter(|address| args.no_auth && !address.ip().is_loopback()) {
        return Err(Error::Input(format!(
            "`--no-auth` on {address} would let everybody there use every plugin: leave it out, or serve on 127.0.0.1"
        )));
    }
    if let Some(client) = args.print_config {
        print_config(common, client, &args)?;
        return Ok(ExitCode::SUCCESS);
    }
    // Before anything is found, so that it is known which of the project's servers would be this one.
    let http = match args.http {
        Some(address) => Some(HttpEndpoint::listen(common, address, &args).await?),
        None => None,
    };
    let found = open::served(common, http.as_ref().map(|http| http.address))?;
    let mut settings = settings(&found.sources.configs, &args)?;
    // Servers that share a database may have their folders elsewhere.
    let is_shared = found.sources.configs.first().is_some_and(|config| config.store.url.is_some());
    settings.project = paused_run::project(common).filter(|_| !is_shared);
    let http = match http {
        Some(http) => Some(http.take_tokens_of_issuer(&found.sources.configs, &settings)?),
        None => None,
    };
    open::with_stop(common, found.platform(|_| true), async |platform, stop| {
        let stop = async {
            let _ = stop.await;
        };
        let server = server(platform, settings)?;
        let _watch = platform.watch(OnChange::Reload)?;
        match http {
            None => serve_stdio(&server, stop).await?,
            Some(http) => http.serve(&server, stop).await?,
        }
        Ok(ExitCode::SUCCESS)
    })
    .await
}

/// A server of a platform.
pub(super) fn server(platform: &Platform, settings: Settings) -> Result<Server, Error> {
    Server::new(platform.clone(), settings).map_err(|error| Error::Host(error.to_string()))
}

async fn serve_stdio(
    server: &Server,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Error> {
    let (input, output) = stdio::streams();
    let server = server.clone();
    // On a thread where its requests are carried out as well: waking another one takes longer than most of them.
    let serving = tokio::spawn(async move {
        let served = server.serve_lines(None, input, output, stop).await;
        server.end_waiting_calls().await;
        served
    });
    match serving.await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => Err(Error::Unread),
        Ok(Err(error)) => Err(Error::Host(format!("the client cannot be reached: {error}"))),
        Err(error) => Err(Error::Host(format!("serving has failed: {error}"))),
    }
}

/// The profiles of the configuration, and which of them clients are offered that choose none.
pub(super) fn settings(configs: &[Config], args: &Args) -> Result<Settings, Error> {
    let profiles = configs.first().map(|config| &config.profiles);
    let profiles = profiles.into_iter().flatten().map(|(name, profile)| {
        let profile = Profile {
            name: name.clone(),
            tools: profile.tools.clone(),
            resources: profile.resources.clone(),
            prompts: profile.prompts.clone(),
            prefix: args.prefix.or(profile.prefix).unwrap_or(true),
            calls_per_minute: profile.calls_per_minute,
            mode: match profile.mode.unwrap_or_default() {
                ProfileMode::Tools => ToolMode::All,
                ProfileMode::Search => ToolMode::Search,
                ProfileMode::Code => ToolMode::Code,
            },
            ..Profile::default()
        };
        (name.clone(), profile)
    });
    let mut profiles: BTreeMap<String, Profile> = profiles.collect();
    let all = Profile { prefix: args.prefix.unwrap_or(true), ..Profile::default() };
    let default = profiles.entry(all.name.clone()).or_insert(all).clone();
    let Some(chosen) = &args.profile else {
        let mut settings = Settings::with_profile(default);
        settings.profiles = profiles;
        return Ok(settings);
    };
    match profiles.remove(chosen) {
        Some(chosen) => Ok(Settings::with_profile(chosen)),
        None => {
            let names: Vec<&str> = profiles.keys().map(String::as_str).collect();
            Err(Error::Input(format!(
                "there is no profile {chosen:?} in the user's configuration; there are {}",
                names.join(", ")
            )))
        }
    }
}

/// An address that is listened on, and who may use it.
pub(super) struct HttpEndpoint {
    listener: TcpListener,
    pub(super) address: SocketAddr,
    settings: HttpSettings,
    /// No client sends a token.
    no_auth: bool,
}

impl HttpEndpoint {
    /// Listens on an address, as the arguments say. It says where clients find the token that they need.
    pub(super) async fn listen(
        common: &Common,
        address: SocketAddr,
        args: &Args,
    ) -> Result<Self, Error> {
        let (listener, address) = listen(address).await?;
        let settings = http_settings(common, args).await?;
        Ok(Self { listener, address, settings, no_auth: args.no_auth })
    }

    /// Takes the tokens of the issuer that the configuration names, if it does.
    pub(super) fn take_tokens_of_issuer(
        self,
        configs: &[Config],
        settings: &Settings,
    ) -> Result<Self, Error> {
        let issuer = configs.first().and_then(|config| config.issuer.as_ref());
        let Some(issuer) = issuer.filter(|_| !self.no_auth) else { return Ok(self) };
        let profile = issuer.profile.as_ref();
        if let Some(profile) = profile.filter(|profile| !settings.has_profile(profile)) {
            let problem = format!("`[issuer]` names the profile {profile:?}, which is not served");
            return Err(Error::Input(problem));
        }
        let mut http = self.settings;
        // Under the name that its tokens have for it, a proxy passes requests on.
        let host = Url::parse(&issuer.audience).ok();
        http.hosts
            .extend(host.map(|url| url[Position::BeforeHost..Position::AfterPort].to_string()));
        http.issuer = Some(Arc::new(token_issuer(issuer)));
        output::note(&format!("clients may send tokens of {} for {}", issuer.url, issuer.audience));
        Ok(Self { settings: http, ..self })
    }

    /// Serves, until it is told to stop.
    pub(super) async fn serve(
        self,
        server: &Server,
        stop: impl Future<Output = ()>,
    ) -> Result<(), Error> {
        let Self { listener, address, settings, no_auth: _ } = self;
        output::note(&format!("listening on http://{address}/mcp"));
        let served = server.serve_http(listener, settings, stop).await;
        served.map_err(|error| Error::Host(format!("{address} is no longer served: {error}")))
    }
}

/// Listens on an address. Gives the one that it has become.
async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Error> {
    let listening = async {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        io::Result::Ok((listener, address))
    };
    listening.await.map_err(|error| {
        let hint = match error.kind() {
            io::ErrorKind::AddrInUse => "; name another port, or 0 for a free one",
            _ => "",
        };
        Error::Host(format!("{address} cannot be served: {error}{hint}"))
    })
}

/// How HTTP is served. It says where clients find the token that they need.
async fn http_settings(
    common: &Common,
    Args { token_file, no_auth, hosts, .. }: &Args,
) -> Result<HttpSettings, Error> {
    let mut settings = HttpSettings::default();
    settings.hosts.clone_from(hosts);
    settings.metrics = Some(Arc::new(PrometheusExporter::install()?));
    if !no_auth {
        let file = match token_file {
            Some(file) => file.clone(),
            None => default_token_file()?,
        };
        let own = HttpTokenDigest::new(&read_token(&file)?);
        let named = blocking(common, (), |common, ()| NamedTokenStore::open(common)).await;
        // The user's own token needs no store.
        let named = named.inspect_err(|error| {
            output::note(&format!(
                "no named token is good until this server is started again: {error}"
            ));
        });
        let named = named.ok();
        settings.tokens = Some(Arc::new(ServerTokens::new(own, named)));
        output::note(&format!("clients send the token in {}", file.display()));
    }
    Ok(settings)
}

/// Prints a client's entry for this server: with the project and the configuration of this command.
fn print_config(common: &Common, client: McpClient, args: &Args) -> Result<(), Error> {
    // What is wrong with it is said now, and not to a client.
    settings(&open::configs(common)?, args)?;
    let entry = match args.http {
        Some(address) => {
            let mut url = url(address, &args.hosts)?;
            if let Some(profile) = &args.profile {
                url += &format!("/p/{profile}");
            }
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
            if common.locked {
                arguments.push("--locked".to_string());
            }
            if let Some(profile) = &args.profile {
                arguments.extend(["--profile".to_string(), profile.clone()]);
            }
            if let Some(prefix) = args.prefix {
                arguments.extend(["--prefix".to_string(), prefix.to_string()]);
            }
            client.entry(&Connection::Stdio { program: &program, arguments: &arguments })
        }
    };
    output::line(entry.map_err(Error::Input)?)?;
    output::note(&format!("put it into {}", client.file()));
    Ok(())
}

/// The URL at which clients find an address.
fn url(address: SocketAddr, hosts: &[String]) -> Result<String, Error> {
    if address.port() == 0 {
        let problem = "port 0 is another one each time: name the port that clients are to use";
        return Err(Error::Input(problem.into()));
    }
    // A host beside the address is that of a proxy, which has TLS.
    if let Some(host) = hosts.first() {
        return Ok(format!("https://{host}/mcp"));
    }
    let ip = match address.ip() {
        // No client can connect to it, but to each address of this machine.
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    Ok(format!("http://{}/mcp", SocketAddr::new(ip, address.port())))
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
        let token = random_token()?;
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
