//! What the plugin keeps between calls, reloads and restarts, as JSON. The manifest asks for it with
//! `state = ["project"]`, `"user"` or `"session"`.
//!
//! ```no_run
//! use tenon_sdk::{Result, state, tool};
//!
//! /// Counts how often it was called in this project.
//! #[tool]
//! async fn count() -> Result<String> {
//!     let count = state::increment("count", 1)?;
//!     state::update("days", |days: Option<Vec<String>>| {
//!         let mut days = days.unwrap_or_default();
//!         days.push("today".into());
//!         days
//!     })?;
//!     Ok(format!("{count} times"))
//! }
//! # fn main() {}
//! ```
//!
//! Other languages use `wasi:keyvalue`, which this is made of. What is kept in memory only is in
//! [`instance`](mod@crate::instance).

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::imports::keyvalue;
use crate::{Error, ErrorCode, Result};

/// Whose state it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Everything that the user does.
    User,
    /// The project that the host works in.
    Project,
    /// The session of the call.
    Session,
}

/// The state of a scope. [`Bucket::default`] is that of the scope that is granted; where several are, of the
/// narrowest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bucket(Option<Scope>);

/// The state of a scope.
pub fn bucket(scope: Scope) -> Bucket {
    Bucket(Some(scope))
}

/// As [`Bucket::get`], of the scope that is granted.
///
/// # Errors
///
/// As there.
pub fn get<T: DeserializeOwned>(key: &str) -> Result<Option<T>, Error> {
    Bucket::default().get(key)
}

/// As [`Bucket::set`], of the scope that is granted.
///
/// # Errors
///
/// As there.
pub fn set(key: &str, value: &impl Serialize) -> Result<(), Error> {
    Bucket::default().set(key, value)
}

/// As [`Bucket::update`], of the scope that is granted.
///
/// # Errors
///
/// As there.
pub fn update<T: DeserializeOwned + Serialize>(
    key: &str,
    change: impl FnMut(Option<T>) -> T,
) -> Result<T, Error> {
    Bucket::default().update(key, change)
}

/// As [`Bucket::increment`], of the scope that is granted.
///
/// # Errors
///
/// As there.
pub fn increment(key: &str, by: i64) -> Result<i64, Error> {
    Bucket::default().increment(key, by)
}

/// As [`Bucket::delete`], of the scope that is granted.
///
/// # Errors
///
/// As there.
pub fn delete(key: &str) -> Result<(), Error> {
    Bucket::default().delete(key)
}

/// As [`Bucket::keys`], of the scope that is granted.
///
/// # Errors
///
/// As there.
pub fn keys() -> Result<Vec<String>, Error> {
    Bucket::default().keys()
}

impl Scope {
    /// The scopes, the narrowest first.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) const ALL: [Self; 3] = [Self::Session, Self::Project, Self::User];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Session => "session",
        }
    }
}

impl Bucket {
    fn name(self) -> &'static str {
        self.0.map_or("default", Scope::name)
    }

    /// The value of a key, if it has one.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::Denied`] where the scope is not granted, [`ErrorCode::Failed`] where the value is of another type or
    /// cannot be read.
    pub fn get<T: DeserializeOwned>(self, key: &str) -> Result<Option<T>, Error> {
        keyvalue::get(self.name(), key)?.map(|kept| read(key, &kept)).transpose()
    }

    /// The bytes of a key, if it has any.
    ///
    /// # Errors
    ///
    /// As for [`get`](Self::get).
    pub fn get_bytes(self, key: &str) -> Result<Option<Vec<u8>>, Error> {
        keyvalue::get(self.name(), key)
    }

    /// Sets the value of a key. It is on the disk when this returns.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::Denied`] where the scope is not granted, [`ErrorCode::Failed`] where it is full or cannot be
    /// written.
    pub fn set(self, key: &str, value: &impl Serialize) -> Result<(), Error> {
        keyvalue::set(self.name(), key, &written(key, value)?)
    }

    /// Sets the bytes of a key.
    ///
    /// # Errors
    ///
    /// As for [`set`](Self::set).
    pub fn set_bytes(self, key: &str, value: &[u8]) -> Result<(), Error> {
        keyvalue::set(self.name(), key, value)
    }

    /// Sets the value of a key to what a function makes of it, and returns that. Where another call has changed the value
    /// meanwhile, the function is called again with the new one.
    ///
    /// # Errors
    ///
    /// As for [`get`](Self::get) and [`set`](Self::set).
    pub fn update<T: DeserializeOwned + Serialize>(
        self,
        key: &str,
        mut change: impl FnMut(Option<T>) -> T,
    ) -> Result<T, Error> {
        let mut changed = None;
        keyvalue::update(self.name(), key, &mut |kept| {
            let kept = kept.map(|kept| read(key, &kept)).transpose()?;
            let value = changed.insert(change(kept));
            written(key, value)
        })?;
        changed.ok_or_else(|| Error::failed("the state was not updated"))
    }

    /// Adds to a number, which is 0 where it has no value, and returns the sum.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::Failed`] where the value is no number, or the sum none of 64 bits; and as for [`set`](Self::set).
    pub fn increment(self, key: &str, by: i64) -> Result<i64, Error> {
        keyvalue::increment(self.name(), key, by)
    }

    /// Whether a key has a value.
    ///
    /// # Errors
    ///
    /// As for [`get`](Self::get).
    pub fn contains(self, key: &str) -> Result<bool, Error> {
        keyvalue::exists(self.name(), key)
    }

    /// Removes a key. One that is not there is no error.
    ///
    /// # Errors
    ///
    /// As for [`set`](Self::set).
    pub fn delete(self, key: &str) -> Result<(), Error> {
        keyvalue::delete(self.name(), key)
    }

    /// The keys, in the order of their bytes.
    ///
    /// # Errors
    ///
    /// As for [`get`](Self::get).
    pub fn keys(self) -> Result<Vec<String>, Error> {
        keyvalue::keys(self.name())
    }
}

fn read<T: DeserializeOwned>(key: &str, kept: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(kept)
        .map_err(|error| Error::new(ErrorCode::Failed, format!("the state of {key:?}: {error}")))
}

fn written(key: &str, value: &impl Serialize) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(value)
        .map_err(|error| Error::new(ErrorCode::Failed, format!("the state of {key:?}: {error}")))
}

/// The same over `wasi:keyvalue`.
#[cfg(target_arch = "wasm32")]
pub(crate) mod component {
    use crate::Error;
    use crate::bindings::keyvalue::wasi::keyvalue::atomics::{self, Cas, CasError};
    use crate::bindings::keyvalue::wasi::keyvalue::store::{self, Bucket};

    fn error(error: store::Error) -> Error {
        match error {
            store::Error::NoSuchStore => Error::not_found("there is no such state"),
            store::Error::AccessDenied => Error::denied("this state is not granted"),
            store::Error::Other(problem) => Error::failed(problem),
        }
    }

    fn open(name: &str) -> Result<Bucket, Error> {
        store::open(name).map_err(error)
    }

    pub(crate) fn get(bucket: &str, key: &str) -> Result<Option<Vec<u8>>, Error> {
        open(bucket)?.get(key).map_err(error)
    }

    pub(crate) fn set(bucket: &str, key: &str, value: &[u8]) -> Result<(), Error> {
        open(bucket)?.set(key, value).map_err(error)
    }

    pub(crate) fn delete(bucket: &str, key: &str) -> Result<(), Error> {
        open(bucket)?.delete(key).map_err(error)
    }

    pub(crate) fn exists(bucket: &str, key: &str) -> Result<bool, Error> {
        open(bucket)?.exists(key).map_err(error)
    }

    pub(crate) fn keys(bucket: &str) -> Result<Vec<String>, Error> {
        let (bucket, mut keys, mut cursor) = (open(bucket)?, Vec::new(), None::<String>);
        loop {
            let page = bucket.list_keys(cursor.as_deref()).map_err(error)?;
            keys.extend(page.keys);
            match page.cursor {
                Some(next) => cursor = Some(next),
                None => return Ok(keys),
            }
        }
    }

    pub(crate) fn increment(bucket: &str, key: &str, by: i64) -> Result<i64, Error> {
        atomics::increment(&open(bucket)?, key, by).map_err(error)
    }

    /// How often an update is tried again that others were faster than.
    const MAX_ATTEMPTS: usize = 100;

    pub(crate) fn update(
        bucket: &str,
        key: &str,
        change: &mut dyn FnMut(Option<Vec<u8>>) -> Result<Vec<u8>, Error>,
    ) -> Result<(), Error> {
        let mut seen = Cas::new(&open(bucket)?, key).map_err(error)?;
        for _ in 0..MAX_ATTEMPTS {
            let value = change(seen.current().map_err(error)?)?;
            match atomics::swap(seen, &value) {
                Ok(()) => return Ok(()),
                Err(CasError::CasFailed(now)) => seen = now,
                Err(CasError::StoreError(problem)) => return Err(error(problem)),
            }
        }
        Err(Error::unavailable(format!("others change the state of {key:?} all the time")))
    }
}
