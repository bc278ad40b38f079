//! `tenon state`

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::fmt;
use std::process::ExitCode;
use std::sync::Arc;
use tenon_host::services::{Bucket, BucketUsage, Scope, SqliteStore, Store};
use tenon_host::types::name::nearest;
use tenon_host::types::text::one_line;
use tokio::runtime::Handle;

use super::uninstall::confirmed;
use crate::approval::is_terminal;
use crate::error::{Error, Exit};
use crate::hint::quoted;
use crate::store::StorePlace;
use crate::{Common, output};

/// Show or delete what plugins keep between calls
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tenon state list
  tenon state get notes
  tenon state get notes last-run
  tenon state clear notes --scope user --yes")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// List how much each plugin keeps, in which scopes
    List {
        /// Only of this plugin
        #[arg(value_name = "PLUGIN")]
        plugin: Option<String>,
    },
    /// List the keys of a plugin, or print the value of one
    Get {
        /// The plugin
        #[arg(value_name = "PLUGIN")]
        plugin: String,
        /// The key whose value is printed
        #[arg(value_name = "KEY")]
        key: Option<String>,
        #[command(flatten)]
        scope: ScopeArgs,
    },
    /// Delete what a plugin keeps
    Clear {
        /// The plugin
        #[arg(value_name = "PLUGIN")]
        plugin: String,
        #[command(flatten)]
        scope: ScopeArgs,
        /// Ask nothing
        #[arg(long)]
        yes: bool,
    },
}

/// Which buckets of a plugin are meant; all of this project's and the user's where nothing is said.
#[derive(clap::Args)]
struct ScopeArgs {
    /// Only what is kept in this scope
    #[arg(long, value_name = "SCOPE", value_parser = ["user", "project", "session"])]
    scope: Option<String>,
    /// Only what is kept in this session
    #[arg(long, value_name = "ID")]
    session: Option<String>,
}

impl ScopeArgs {
    /// As they stand in a command.
    fn shown(&self) -> String {
        let option = |name: &str, value: Option<&str>| {
            value.map(|value| format!(" --{name}{}", quoted(value))).unwrap_or_default()
        };
        [option("scope", self.scope.as_deref()), option("session", self.session.as_deref())]
            .concat()
    }
}

/// A bucket in the words of the command.
struct BucketText<'a>(&'a Bucket);

impl fmt::Display for BucketText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.scope {
            Scope::User => f.write_str("user"),
            Scope::Project(folder) => write!(f, "project {}", one_line(&folder.to_string_lossy())),
            Scope::Session(session) => write!(f, "session {}", one_line(session)),
            _ => f.write_str("another scope"),
        }
    }
}

impl BucketText<'_> {
    fn kind(&self) -> &'static str {
        match self.0.scope {
            Scope::User => "user",
            Scope::Project(_) => "project",
            Scope::Session(_) => "session",
            _ => "other",
        }
    }

    fn json(&self, BucketUsage { keys, bytes }: BucketUsage) -> Value {
        let of = match &self.0.scope {
            Scope::Project(folder) => Some(folder.to_string_lossy().into_owned()),
            Scope::Session(session) => Some(session.clone()),
            _ => None,
        };
        let mut shown = json!({
            "plugin": self.0.plugin,
            "scope": self.kind(),
            "keys": keys,
            "bytes": bytes,
        });
        if let Some(of) = of {
            shown[self.kind()] = of.into();
        }
        shown
    }
}

pub(crate) fn run(common: &Common, args: Args) -> Result<ExitCode, Error> {
    let store = match StorePlace::find(common)? {
        // Where no plugin has kept anything yet, looking makes no file.
        StorePlace::File(file) if !file.exists() => Arc::new(SqliteStore::in_memory()?),
        place => place.open()?,
    };
    let store = &*store;
    match args.verb {
        Verb::List { plugin } => list(common, store, plugin.as_deref()),
        Verb::Get { plugin, key, scope } => {
            let buckets = buckets(common, store, &plugin, &scope)?;
            match key {
                Some(key) => value(common, store, &plugin, &buckets, &key),
                None => keys(common, store, &buckets),
            }
        }
        Verb::Clear { plugin, scope, yes } => {
            let buckets = buckets(common, store, &plugin, &scope)?;
            clear(common, store, &plugin, &scope, &buckets, yes)
        }
    }
}

fn list(common: &Common, store: &dyn Store, plugin: Option<&str>) -> Result<ExitCode, Error> {
    let buckets = store.buckets(plugin)?;
    if common.json {
        let shown = buckets.iter().map(|(bucket, usage)| BucketText(bucket).json(*usage));
        output::json(&shown.collect::<Vec<_>>())?;
        return Ok(ExitCode::SUCCESS);
    }
    output::if_empty(buckets.is_empty(), "no plugin keeps anything");
    for (bucket, BucketUsage { keys, bytes }) in &buckets {
        let (plugin, bucket) = (one_line(&bucket.plugin), BucketText(bucket));
        let keys = counted(*keys, "key");
        output::line(format!("{plugin}  {bucket}  {keys}, {}", counted(*bytes, "byte")))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A number and what it counts: `1 key`, `2 keys`.
fn counted(number: u64, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        number => format!("{number} {what}s"),
    }
}

/// The buckets of a plugin that are meant.
fn buckets(
    common: &Common,
    store: &dyn Store,
    plugin: &str,
    args: &ScopeArgs,
) -> Result<Vec<(Bucket, BucketUsage)>, Error> {
    let all = store.buckets(None)?;
    let project = common.project.canonicalize().ok();
    let is_meant = |scope: &Scope| match scope {
        Scope::Session(session) => match (&args.session, &args.scope) {
            (Some(meant), _) => session == meant,
            (None, scope) => scope.as_deref() == Some("session"),
        },
        _ if args.session.is_some() => false,
        Scope::User => args.scope.as_deref().is_none_or(|scope| scope == "user"),
        Scope::Project(folder) => {
            args.scope.as_deref().is_none_or(|scope| scope == "project")
                && Some(folder) == project.as_ref()
        }
        _ => false,
    };
    let (of_plugin, others): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|(bucket, _)| bucket.plugin == plugin);
    let kept: Vec<_> = of_plugin.iter().map(|(bucket, _)| BucketText(bucket).to_string()).collect();
    let meant: Vec<_> =
        of_plugin.iter().filter(|(bucket, _)| is_meant(&bucket.scope)).cloned().collect();
    if !meant.is_empty() {
        return Ok(meant);
    }
    Err(Error::Input(if kept.is_empty() {
        let meant = nearest(plugin, others.iter().map(|(bucket, _)| &*bucket.plugin));
        let meant = meant.map(|meant| format!("; did you mean \"{meant}\"?")).unwrap_or_default();
        format!("plugin \"{plugin}\" keeps nothing{meant}")
    } else {
        format!("plugin \"{plugin}\" keeps nothing there; it keeps state of: {}", kept.join(", "))
    }))
}

fn keys(
    common: &Common,
    store: &dyn Store,
    buckets: &[(Bucket, BucketUsage)],
) -> Result<ExitCode, Error> {
    let mut shown = Vec::new();
    for (bucket, usage) in buckets {
        let keys = store.all_keys(bucket)?;
        if common.json {
            let mut bucket = BucketText(bucket).json(*usage);
            bucket["keys"] = json!(keys);
            shown.push(bucket);
            continue;
        }
        output::line(format!("{}:", BucketText(bucket)))?;
        keys.iter().try_for_each(|key| output::line(format!("  {}", one_line(key))))?;
    }
    if common.json {
        output::json(&shown)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn value(
    common: &Common,
    store: &dyn Store,
    plugin: &str,
    buckets: &[(Bucket, BucketUsage)],
    key: &str,
) -> Result<ExitCode, Error> {
    let mut found = Vec::new();
    for (bucket, _) in buckets {
        let value = store.get(bucket, key)?;
        found.extend(value.map(|value| (bucket, value)));
    }
    let value = match &mut *found {
        [] => {
            return Err(Error::Input(format!("plugin \"{plugin}\" keeps no \"{key}\" there")));
        }
        [(_, value)] => std::mem::take(value),
        several => {
            let scopes = several.iter().map(|(bucket, _)| BucketText(bucket).to_string());
            return Err(Error::Input(format!(
                "\"{key}\" is kept in several scopes; name one with --scope or --session: {}",
                scopes.collect::<Vec<_>>().join(", ")
            )));
        }
    };
    if common.json {
        output::json(&value_json(&value))?;
        return Ok(ExitCode::SUCCESS);
    }
    match str::from_utf8(&value) {
        Ok(text) => output::text(text)?,
        Err(_) => output::bytes(&value)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A value as JSON: what it is where it is JSON, its text, or its bytes.
fn value_json(value: &[u8]) -> Value {
    if let Ok(value) = serde_json::from_slice::<Value>(value) {
        return json!({ "value": value });
    }
    match str::from_utf8(value) {
        Ok(text) => json!({ "text": text }),
        Err(_) => json!({ "base64": STANDARD.encode(value) }),
    }
}

fn clear(
    common: &Common,
    store: &dyn Store,
    plugin: &str,
    scope: &ScopeArgs,
    buckets: &[(Bucket, BucketUsage)],
    yes: bool,
) -> Result<ExitCode, Error> {
    let scopes =
        buckets.iter().map(|(bucket, _)| BucketText(bucket).to_string()).collect::<Vec<_>>();
    let scopes = scopes.join(", ");
    if !yes && !is_terminal() {
        // It deletes no more than what this command would.
        let command = format!("tenon state clear{}{} --yes", quoted(plugin), scope.shown());
        let what = format!("delete what plugin \"{plugin}\" keeps");
        return Err(Error::Unconfirmed { what, command });
    }
    let question = format!("delete what plugin \"{plugin}\" keeps of {scopes}? [y]es, [n]o: ");
    if !yes && !Handle::current().block_on(confirmed(question)) {
        output::line(format!("what plugin \"{plugin}\" keeps stays"))?;
        return Ok(Exit::Refused.into());
    }
    for (bucket, _) in buckets {
        store.clear(bucket)?;
    }
    if common.json {
        let cleared = buckets.iter().map(|(bucket, usage)| BucketText(bucket).json(*usage));
        output::json(&json!({ "cleared": cleared.collect::<Vec<_>>() }))?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line(format!("plugin \"{plugin}\" keeps nothing of {scopes} any more"))?;
    Ok(ExitCode::SUCCESS)
}
