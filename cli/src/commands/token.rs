//! `tenon token`

use serde_json::json;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};
use tenon_serve::HttpTokenDigest;

use crate::error::Error;
use crate::tokens::{NamedToken, NamedTokenStore, random_token};
use crate::{Common, duration, open, output};

/// Manage the tokens of clients of `tenon serve --http`
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tenon token add laptop
  tenon token add helper --profile files --tools 'files__read*' --expires 30d
  tenon token list
  tenon token revoke helper

Each client can have a token of its own, which is good for one profile or for some tools only. A profile also says \
which resources and prompts there are. ClientContext with different tokens see nothing of each other's sessions. A server \
that runs notices at once what is added or revoked.")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Make a token and print it; it is not shown again
    Add {
        /// What it is called
        #[arg(value_name = "NAME", value_parser = name)]
        name: String,
        /// Good for this profile of the configuration only
        #[arg(long, value_name = "PROFILE", value_parser = name)]
        profile: Option<String>,
        /// Good for tools with such names only, as `tenon tools` shows them; `*` stands for any text; can be repeated
        #[arg(long, value_name = "PATTERN", value_parser = pattern)]
        tools: Vec<String>,
        /// Good for so long, as `12h` or `30d`
        #[arg(long, value_name = "TIME", value_parser = duration)]
        expires: Option<Duration>,
    },
    /// List the tokens, without their texts
    List,
    /// End a token
    Revoke {
        /// What it is called
        #[arg(value_name = "NAME")]
        name: String,
    },
}

/// How long a token may be good.
const MAX_TIME: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Reads a pattern of tools.
fn pattern(text: &str) -> Result<String, String> {
    match text.is_empty() {
        true => Err("no tool has an empty name".into()),
        false => Ok(text.to_string()),
    }
}

/// Reads a name, which stands in logs and lists.
fn name(text: &str) -> Result<String, String> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    match (1..=64).contains(&text.len()) && text.chars().all(is_allowed) {
        true => Ok(text.to_string()),
        false => Err("a name has 1 to 64 letters, digits, `-`, `_` and `.`".into()),
    }
}

pub(crate) fn run(common: &Common, args: Args) -> Result<ExitCode, Error> {
    let tokens = NamedTokenStore::open(common)?;
    match args.verb {
        Verb::Add { name, profile, tools, expires } => {
            let now = SystemTime::now();
            let time = |time| humantime::format_rfc3339_seconds(time).to_string();
            if expires.is_some_and(|expires| expires > MAX_TIME) {
                return Err(Error::Input("a token is good for 100 years at most".into()));
            }
            if let Some(profile) = &profile {
                note_unknown(common, profile);
            }
            let end = expires.and_then(|expires| now.checked_add(expires));
            let text = random_token()?;
            let token = NamedToken {
                name,
                sha256: HttpTokenDigest::new(&text).sha256(),
                profile,
                tools: (!tools.is_empty()).then_some(tools),
                created: time(now),
                expires: end.map(time),
            };
            add(common, &tokens, &token, &text)
        }
        Verb::List => list(common, &tokens.list()?),
        Verb::Revoke { name } => {
            if !tokens.revoke(&name)? {
                return Err(Error::Input(format!("there is no token {name:?}")));
            }
            match common.json {
                true => output::json(&json!({ "name": name, "revoked": true }))?,
                false => output::line(format!("revoked {name}"))?,
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Says of a profile that it is not there. It may be configured later, and a project that cannot be read has no say in
/// it.
fn note_unknown(common: &Common, profile: &str) {
    if !open::has_profile(common, profile) {
        output::note(&format!(
            "the user's configuration has no profile {profile:?}: clients with this token are refused until it has one and `tenon serve` is started again"
        ));
    }
}

fn add(
    common: &Common,
    tokens: &NamedTokenStore,
    token: &NamedToken,
    text: &str,
) -> Result<ExitCode, Error> {
    let NamedToken { name, expires, .. } = token;
    // One whose time is over takes no name.
    if !tokens.add(token, SystemTime::now())? {
        return Err(Error::Input(format!(
            "there is a token {name:?} already: revoke it first, or choose another name"
        )));
    }
    match common.json {
        true => output::json(&json!({ "name": name, "token": text, "expires": expires }))?,
        false => {
            output::line(text)?;
            output::note(
                "clients send it as `Authorization: Bearer …`; it is kept as a digest and not shown again",
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list(common: &Common, tokens: &[NamedToken]) -> Result<ExitCode, Error> {
    let now = SystemTime::now();
    if common.json {
        let all = tokens.iter().map(|token| {
            json!({
                "name": token.name,
                "profile": token.profile,
                "tools": token.tools,
                "created": token.created,
                "expires": token.expires,
                "expired": token.is_expired(now),
            })
        });
        output::json(&all.collect::<Vec<_>>())?;
        return Ok(ExitCode::SUCCESS);
    }
    for token in tokens {
        let mut line = token.name.clone();
        if let Some(profile) = &token.profile {
            line += &format!("  profile {profile}");
        }
        if let Some(tools) = &token.tools {
            line += &format!("  tools {}", tools.join(", "));
        }
        match &token.expires {
            Some(end) if token.is_expired(now) => line += &format!("  expired {end}"),
            Some(end) => line += &format!("  expires {end}"),
            None => {}
        }
        output::line(line)?;
    }
    output::if_empty(tokens.is_empty(), "no tokens; `tenon token add NAME` makes one");
    Ok(ExitCode::SUCCESS)
}
