//! The imports of a plugin, answered by the scripted host of this thread. Signatures are those of
//! the generated bindings.

use super::current;

pub(crate) mod config {
    use super::current;

    pub(crate) fn get(key: &str) -> Option<String> {
        current().setting(key).map(|value| value.to_string())
    }

    pub(crate) fn all() -> String {
        current().settings().to_string()
    }
}

pub(crate) mod log {
    use super::current;
    use crate::log::Level;

    pub(crate) fn write(level: Level, message: &str, fields: &[(String, String)]) {
        current().log(level, message, fields);
    }
}

pub(crate) mod notify {
    use super::current;

    pub(crate) fn contributions_changed() {
        current().note_change();
    }

    pub(crate) fn resource_updated(uri: &str) {
        current().note_update(uri);
    }

    pub(crate) fn progress(call: &str, progress: f64, total: Option<f64>, message: Option<&str>) {
        current().report(call, progress, total, message);
    }
}

pub(crate) mod secrets {
    use super::current;
    use crate::Error;

    pub(crate) fn get(name: &str) -> Result<String, Error> {
        current().reveal(name)
    }
}

pub(crate) mod host_tools {
    use super::current;
    use crate::host_tools::ToolDefinition;
    use crate::{Error, ToolResult};

    pub(crate) async fn list_tools() -> Result<Vec<ToolDefinition>, Error> {
        Ok(current().tools())
    }

    pub(crate) async fn call_tool(name: String, arguments: String) -> Result<ToolResult, Error> {
        current().answer_call(&name, &arguments)
    }
}

pub(crate) mod inference {
    use super::current;
    use crate::Error;
    use crate::inference::{Completion, CompletionRequest};

    pub(crate) async fn complete(request: CompletionRequest) -> Result<Completion, Error> {
        current().answer_request(request)
    }
}

pub(crate) mod messaging {
    use super::current;
    use crate::Error;
    use crate::messaging::OutgoingMessage;

    pub(crate) async fn send_message(message: OutgoingMessage) -> Result<(), Error> {
        current().send(message)
    }
}

pub(crate) mod memory {
    use super::current;
    use crate::Error;
    use crate::memory::MemoryEntry;

    pub(crate) async fn search_memory(
        query: String,
        limit: u32,
    ) -> Result<Vec<MemoryEntry>, Error> {
        current().search(&query, limit)
    }
}

pub(crate) mod keyvalue {
    use super::current;
    use crate::Error;

    pub(crate) fn get(bucket: &str, key: &str) -> Result<Option<Vec<u8>>, Error> {
        current().with_state(bucket, |state| Ok(state.get(key).cloned()))
    }

    pub(crate) fn set(bucket: &str, key: &str, value: &[u8]) -> Result<(), Error> {
        current().with_state(bucket, |state| {
            state.insert(key.to_string(), value.to_vec());
            Ok(())
        })
    }

    pub(crate) fn delete(bucket: &str, key: &str) -> Result<(), Error> {
        current().with_state(bucket, |state| {
            state.remove(key);
            Ok(())
        })
    }

    pub(crate) fn exists(bucket: &str, key: &str) -> Result<bool, Error> {
        current().with_state(bucket, |state| Ok(state.contains_key(key)))
    }

    pub(crate) fn keys(bucket: &str) -> Result<Vec<String>, Error> {
        current().with_state(bucket, |state| Ok(state.keys().cloned().collect()))
    }

    pub(crate) fn increment(bucket: &str, key: &str, by: i64) -> Result<i64, Error> {
        current().with_state(bucket, |state| {
            let number = match state.get(key) {
                None => Some(0),
                Some(kept) => str::from_utf8(kept).ok().and_then(|text| text.parse::<i64>().ok()),
            };
            let sum = number.and_then(|number| number.checked_add(by));
            let sum = sum.ok_or_else(|| Error::failed(format!("{key:?} is no such number")))?;
            state.insert(key.to_string(), sum.to_string().into_bytes());
            Ok(sum)
        })
    }

    pub(crate) fn update(
        bucket: &str,
        key: &str,
        change: &mut dyn FnMut(Option<Vec<u8>>) -> Result<Vec<u8>, Error>,
    ) -> Result<(), Error> {
        // The function may use the state itself.
        let value = change(get(bucket, key)?)?;
        set(bucket, key, &value)
    }
}

pub(crate) mod user {
    use super::current;
    use crate::Error;
    use crate::user::{FormAnswer, FormRequest, UrlAnswer, UrlRequest};

    pub(crate) async fn ask(form: FormRequest) -> Result<FormAnswer, Error> {
        current().answer_form(form)
    }

    pub(crate) async fn ask_url(page: UrlRequest) -> Result<UrlAnswer, Error> {
        current().answer_page(&page)
    }
}

pub(crate) mod clock {
    use std::time::Duration;

    use crate::testing::timers::Sleep;

    pub(crate) fn wait_for(time: Duration) -> Sleep {
        Sleep::new(time)
    }
}

pub(crate) mod http {
    use super::current;
    use crate::Error;
    use crate::http::{Headers, Request};
    pub(crate) use crate::testing::http::ResponseBody;

    pub(crate) async fn send(request: Request) -> Result<(u16, Headers, ResponseBody), Error> {
        current().answer_http(request)
    }
}
