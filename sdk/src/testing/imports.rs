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

pub(crate) mod tools {
    use super::current;
    use crate::tools::ToolDefinition;
    use crate::{Error, ToolResult};

    pub(crate) async fn list_tools() -> Result<Vec<ToolDefinition>, Error> {
        Ok(current().tools())
    }

    pub(crate) async fn call(name: String, arguments: String) -> Result<ToolResult, Error> {
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

pub(crate) mod services {
    use super::current;
    use crate::Error;
    use crate::services::{Memory, OutgoingMessage};

    pub(crate) async fn send_message(message: OutgoingMessage) -> Result<(), Error> {
        current().send(message)
    }

    pub(crate) async fn search_memory(query: String, limit: u32) -> Result<Vec<Memory>, Error> {
        current().search(&query, limit)
    }
}
