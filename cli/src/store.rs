//! The store of the command: the database in the user's folder for state, or the one that the configuration names.

use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tenon_config::config::StoreSettings;
use tenon_config::expand;
use tenon_host::services::{STATE_FILE, Store, StoreError};
use tenon_host::{Config, HostEnvironment};
use tenon_store::LazyStore;
use tenon_store_postgres::PostgresStore;

use crate::Common;
use crate::error::Error;

/// The time as stores have it: milliseconds since 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A time of a store as people read it.
pub(crate) fn shown_time(at: u64) -> impl Display {
    // What is not before the year 9999 has no such form.
    let since = Duration::from_millis(at.min(253_402_300_799_000));
    humantime::format_rfc3339_seconds(UNIX_EPOCH + since)
}

/// Where a store is.
pub(crate) enum StorePlace {
    /// In this file, which need not be there yet.
    File(PathBuf),
    /// In a database that several hosts can share.
    Shared(Arc<dyn Store>),
}

impl StorePlace {
    /// Finds the store of the user. It blocks where it is in a database elsewhere.
    pub(crate) fn find(common: &Common) -> Result<Self, Error> {
        let host_environment = HostEnvironment::of_process();
        if let Some(shared) = shared(&settings(common, &host_environment)?, &host_environment)? {
            return Ok(Self::Shared(shared.open()?));
        }
        let problem = "no folder for the database: neither HOME nor XDG_STATE_HOME is set";
        let folder = host_environment.state.ok_or_else(|| Error::Host(problem.into()))?;
        Ok(Self::File(folder.join(STATE_FILE)))
    }

    /// Whether it has been made.
    pub(crate) fn is_there(&self) -> bool {
        match self {
            Self::File(file) => file.exists(),
            Self::Shared(_) => true,
        }
    }

    /// Opens it. A file that is not there is made.
    pub(crate) fn open(self) -> Result<Arc<dyn Store>, Error> {
        match self {
            Self::File(file) => Ok(LazyStore::new(Some(file)).get()?),
            Self::Shared(store) => Ok(store),
        }
    }
}

/// What the only configuration says that is read, or the user's own. No project says where a store is.
fn settings(common: &Common, host_environment: &HostEnvironment) -> Result<StoreSettings, Error> {
    let config = match (&common.config, &host_environment.configuration) {
        (Some(path), _) => Config::read(path)?,
        (None, Some(folder)) => Config::read_optional(folder.join("config.toml"))?,
        (None, None) => Config::default(),
    };
    Ok(config.store)
}

/// Where the database is that several hosts share.
pub(crate) struct SharedStoreAddress {
    url: String,
    authorities: Option<PathBuf>,
}

impl SharedStoreAddress {
    /// Connects to it. It blocks.
    pub(crate) fn open(&self) -> Result<Arc<dyn Store>, StoreError> {
        Ok(Arc::new(PostgresStore::connect(&self.url, self.authorities.as_deref())?))
    }
}

/// Where the database is that several hosts share, where one is configured.
pub(crate) fn shared(
    settings: &StoreSettings,
    host_environment: &HostEnvironment,
) -> Result<Option<SharedStoreAddress>, Error> {
    let Some(url) = &settings.url else { return Ok(None) };
    let expanded = |key: &str, text: &str| {
        expand::path(text, host_environment)
            .map_err(|error| Error::Input(format!("`{key}` under [store]: {error}")))
    };
    let url = expanded("url", url)?;
    let authorities = settings.authorities.as_deref();
    let authorities = authorities.map(|text| expanded("authorities", text)).transpose()?;
    let authorities = authorities.map(PathBuf::from);
    PostgresStore::check_address(&url, authorities.as_deref())?;
    Ok(Some(SharedStoreAddress { url, authorities }))
}
