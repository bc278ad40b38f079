//! `tenon secret`

use serde_json::json;
use std::io::{self, IsTerminal, Read};
use std::process::ExitCode;
use tenon_config::diagnostic::chain;
use tenon_config::secret::{
    LocalSecretStore, MIN_SECRET_LENGTH, Secret, Storage, StoredSecretError, StoredSecrets,
    is_value_name, secret_variable,
};
use tenon_host::HostEnvironment;

use crate::error::Error;
use crate::keychain::secret_store;
use crate::{Common, output};

/// Manage the secrets that plugins and servers may be granted
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tenon secret set weather-key
  pass show weather | tenon secret set weather-key
  tenon secret list
  tenon secret remove weather-key

A plugin reads the secret `weather-key` if its manifest requests it under `secrets` and its user approves that; in an \
entry for a server, `${secret:weather-key}` stands for it in values of `env` and `headers`. The variable WEATHER_KEY \
comes first, if it is set. Values are in the system's keychain, or else in files that only their user can read.")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Store a secret: the terminal asks for the value, or it is read from standard input
    Set {
        /// What it is called
        #[arg(value_name = "NAME", value_parser = name)]
        name: String,
        #[command(flatten)]
        storage: StorageArgs,
    },
    /// List the secrets, without their values
    List,
    /// Remove a secret
    Remove {
        /// What it is called
        #[arg(value_name = "NAME", value_parser = name)]
        name: String,
    },
}

/// Where values are stored; where nothing is said, in the keychain if there is one.
#[derive(clap::Args)]
#[group(multiple = false)]
struct StorageArgs {
    /// Store it in the system's keychain
    #[arg(long)]
    keychain: bool,
    /// Store it in a file that only its user can read
    #[arg(long)]
    file: bool,
}

/// The longest secret, in bytes.
const MAX_SECRET_BYTES: u64 = 64 << 10;

fn name(text: &str) -> Result<String, String> {
    match is_value_name(text) {
        true => Ok(text.to_string()),
        false => Err(StoredSecretError::Name(text.into()).to_string()),
    }
}

/// Where a value is, for people and in JSON.
fn storage_name(storage: Storage) -> &'static str {
    match storage {
        Storage::Keychain => "keychain",
        Storage::File => "file",
    }
}

pub(crate) fn run(common: &Common, args: Args) -> Result<ExitCode, Error> {
    let store = secret_store(HostEnvironment::of_process());
    let no_folder = || Error::Host("no folder for secrets: HOME is not set".into());
    let stored = store.stored().ok_or_else(no_folder)?;
    match args.verb {
        Verb::Set { name, storage } => set(common, &store, &stored, &name, &storage),
        Verb::List => list(common, &store, &stored),
        Verb::Remove { name } => remove(common, &stored, &name),
    }
}

fn failed(error: StoredSecretError) -> Error {
    Error::Host(chain(&error))
}

fn set(
    common: &Common,
    store: &LocalSecretStore,
    stored: &StoredSecrets,
    name: &str,
    storage: &StorageArgs,
) -> Result<ExitCode, Error> {
    let wanted = match storage {
        StorageArgs { keychain: true, .. } => Some(Storage::Keychain),
        StorageArgs { file: true, .. } => Some(Storage::File),
        StorageArgs { .. } => None,
    };
    let value = value(name)?;
    let storage = stored.write(name, &value, wanted).map_err(|error| match error {
        StoredSecretError::Keychain(_) if wanted.is_none() => {
            Error::Host(format!("{}; `--file` stores it in a file", chain(&error)))
        }
        error => failed(error),
    })?;
    let shown = storage_name(storage);
    match common.json {
        true => output::json(&json!({ "name": name, "storage": shown }))?,
        false => output::line(format!("stored {name} ({shown})"))?,
    }
    if value.reveal().len() < MIN_SECRET_LENGTH {
        output::note(&format!(
            "values of fewer than {MIN_SECRET_LENGTH} characters are not masked in what plugins say"
        ));
    }
    if store.variable(name).is_some() {
        output::note(&format!("the variable {} is set, and comes first", secret_variable(name)));
    }
    Ok(ExitCode::SUCCESS)
}

/// The value of a secret, as its user enters it, without the end of its last line.
fn value(name: &str) -> Result<Secret, Error> {
    let unread = |error: io::Error| Error::Host(format!("the value cannot be read: {error}"));
    let value = match io::stdin().is_terminal() {
        true => rpassword::prompt_password(format!("value of {name}: ")).map_err(unread)?,
        false => {
            let mut value = String::new();
            let read = io::stdin().take(MAX_SECRET_BYTES + 1).read_to_string(&mut value);
            read.map_err(|error| match error.kind() {
                io::ErrorKind::InvalidData => {
                    Error::Input(format!("the value of {name:?} is no text"))
                }
                _ => unread(error),
            })?;
            value
        }
    };
    let problem = match value.trim_end_matches(['\r', '\n']) {
        "" => "is empty",
        value if value.len() as u64 > MAX_SECRET_BYTES => "has more than 64 KiB",
        value if value.contains('\0') => "has a zero byte",
        value => return Ok(Secret::new(value)),
    };
    Err(Error::Input(format!("the value of {name:?} {problem}")))
}

fn list(
    common: &Common,
    store: &LocalSecretStore,
    stored: &StoredSecrets,
) -> Result<ExitCode, Error> {
    let secrets = stored.list().map_err(failed)?;
    if common.json {
        let all = secrets.iter().map(|(name, storage)| {
            let variable = store.variable(name).map(|_| secret_variable(name));
            json!({ "name": name, "storage": storage_name(*storage), "variable": variable })
        });
        output::json(&all.collect::<Vec<_>>())?;
        return Ok(ExitCode::SUCCESS);
    }
    for (name, storage) in &secrets {
        let mut line = format!("{name}  {}", storage_name(*storage));
        if store.variable(name).is_some() {
            line += &format!("  (the variable {} comes first)", secret_variable(name));
        }
        output::line(line)?;
    }
    output::if_empty(secrets.is_empty(), "no secrets; `tenon secret set NAME` stores one");
    Ok(ExitCode::SUCCESS)
}

fn remove(common: &Common, stored: &StoredSecrets, name: &str) -> Result<ExitCode, Error> {
    if !stored.remove(name).map_err(failed)? {
        return Err(Error::Input(format!("there is no secret {name:?}")));
    }
    match common.json {
        true => output::json(&json!({ "name": name, "removed": true }))?,
        false => output::line(format!("removed {name}"))?,
    }
    Ok(ExitCode::SUCCESS)
}
