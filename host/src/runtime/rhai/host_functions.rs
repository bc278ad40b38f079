//! What scripts can ask the host for, behind the same grants as the imports of components.

use rhai::serde::to_dynamic;
use rhai::{Array, Dynamic, Map};
use serde_json::{Value, json};
use tenon_types::{
    CompletionRequest, FormAnswer, FormRequest, Memory, Message, OutgoingMessage, Part, Role,
    ToolResult, UrlAnswer, UrlRequest,
};

use super::content::value_of;
use super::engine::MAX_STRING_BYTES;
use super::error::{ScriptResult, written};
use super::json::to_json;
use super::running_call::ask;
use crate::call::mask::Unmasked;
use crate::capability::{host_tools, inference, memory, messaging, network, user};

/// The memories that are asked for where the script does not say how many.
const DEFAULT_MEMORIES: i64 = 10;

pub(super) fn add(engine: &mut rhai::Engine) {
    engine.register_fn("call_tool", |name: &str| call_tool(name, Map::new()));
    engine.register_fn("call_tool", call_tool);
    engine.register_fn("ask", ask_user);
    engine.register_fn("ask_url", ask_url);
    engine.register_fn("complete", |model: &str, prompt: &str| {
        let said = [("model", model), ("prompt", prompt)];
        complete(said.map(|(key, text)| (key.into(), text.into())).into_iter().collect())
    });
    engine.register_fn("complete", complete);
    engine.register_fn("send_message", |text: &str| send_message(None, text));
    engine.register_fn("send_message", |channel: &str, text: &str| {
        send_message(Some(channel.to_string()), text)
    });
    engine.register_fn("search_memory", |query: &str| search_memory(query, DEFAULT_MEMORIES));
    engine.register_fn("search_memory", search_memory);
    engine.register_fn("http_get", http_get);
}

/// Calls a tool. What it says of its failure is thrown.
fn call_tool(name: &str, arguments: Map) -> ScriptResult<Dynamic> {
    let (name, arguments) = (name.to_string(), to_json(&arguments.into())?);
    let result: ToolResult = ask(|host| async move {
        host_tools::call(&host.granted, host.caller, name, arguments).await
    })?;
    if result.is_error {
        return Err(result.plain_text().into());
    }
    to_dynamic(value_of(&result))
}

/// Has the user fill in a form: a message and the JSON Schema of an object with flat members, or its properties alone.
/// Returns the map that was filled in, or `()` where the user declined or went away.
fn ask_user(message: &str, schema: Map) -> ScriptResult<Dynamic> {
    let schema = match to_json(&schema.into())? {
        schema if schema["properties"].is_object() => schema,
        properties => json!({ "type": "object", "properties": properties }),
    };
    let form = Unmasked::new(FormRequest::new(message, schema));
    let answer = ask(|host| async move {
        user::require(&host.granted, "ask")?;
        user::ask(&host.granted, host.request(), form).await
    })?;
    match answer {
        FormAnswer::Accepted(content) => to_dynamic(Value::Object(content)),
        FormAnswer::Declined | FormAnswer::Cancelled => Ok(Dynamic::UNIT),
    }
}

/// Asks the user to open a page. Returns whether the user did.
fn ask_url(message: &str, url: &str) -> ScriptResult<bool> {
    let page = Unmasked::new(UrlRequest::new(message, url));
    let answer = ask(|host| async move {
        user::require(&host.granted, "ask-url")?;
        user::ask_url(&host.granted, host.request(), page).await
    })?;
    Ok(answer == UrlAnswer::Accepted)
}

/// Asks a model: `prompt`, and where they are wanted `model`, `system`, `max_tokens` and `temperature`. Without a model
/// it is the one that the host chooses. Returns the text of the answer.
fn complete(about: Map) -> ScriptResult<String> {
    let known = ["model", "prompt", "system", "max_tokens", "temperature"];
    if let Some(key) = about.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(format!("a request has no \"{key}\"; it has {}", known.join(", ")).into());
    }
    let text = |key: &str| -> ScriptResult<Option<String>> {
        let text = about.get(key).map(|value| value.clone().into_string());
        text.transpose().map_err(|kind| format!("the `{key}` is a text, not {kind}").into())
    };
    let missing = |key: &str| format!("the request has no {key}");
    let model = text("model")?.unwrap_or_else(|| inference::DEFAULT_MODEL.into());
    let prompt = text("prompt")?.ok_or_else(|| missing("prompt"))?;
    let max_tokens = about.get("max_tokens").map(|value| {
        let tokens = value.as_int().ok().and_then(|tokens| u64::try_from(tokens).ok());
        tokens.ok_or_else(|| {
            format!("the `max_tokens` are a number of tokens, not {}", written(value))
        })
    });
    let temperature = about.get("temperature").map(|value| {
        let number = value.as_float().or_else(|_| value.as_int().map(|int| int as f64));
        number.map_err(|kind| format!("the `temperature` is a number, not {kind}"))
    });
    let mut request = CompletionRequest::new(model, prompt);
    if let Some(system) = text("system")? {
        request.messages.insert(0, Message::text(Role::System, system));
    }
    request.sampling.max_tokens = max_tokens.transpose()?;
    request.sampling.temperature = temperature.transpose()?;
    let completion = ask(|host| async move {
        let asks = host.request();
        inference::complete(&host.granted, host.caller, asks, request).await
    })?;
    let texts = completion.parts.into_iter().filter_map(|part| match part {
        Part::Text(text) => Some(text),
        _ => None,
    });
    Ok(texts.collect::<Vec<_>>().join("\n"))
}

fn send_message(channel: Option<String>, text: &str) -> ScriptResult<()> {
    let message = OutgoingMessage { channel, text: text.to_string(), extra: None };
    let message = Unmasked::new(message);
    ask(|host| async move { messaging::send_message(&host.granted, host.caller, message).await })
}

/// Searches the host's memory: an array of maps with `text`, `score` and, where it is known,
/// `source`.
fn search_memory(query: &str, limit: i64) -> ScriptResult<Array> {
    let query = Unmasked::new(query.to_string());
    let limit = u32::try_from(limit.max(0)).unwrap_or(u32::MAX);
    let found: Vec<Memory> =
        ask(|host| async move { memory::search_memory(&host.granted, query, limit).await })?;
    let map = |memory: Memory| {
        let mut map = Map::new();
        map.insert("text".into(), memory.text.into());
        map.insert("score".into(), Dynamic::from_float(memory.score));
        map.extend(memory.source.map(|source| ("source".into(), source.into())));
        Dynamic::from_map(map)
    };
    Ok(found.into_iter().map(map).collect())
}

/// Fetches what is at a URL: a map with `status`, `headers`, a map of texts by lower-case names, and
/// `body`, a text.
fn http_get(url: &str) -> ScriptResult<Map> {
    let url = url.to_string();
    let fetched: network::GetResponse = ask(|host| async move {
        network::get(&host.granted, host.network.as_deref(), &url, MAX_STRING_BYTES).await
    })?;
    let headers = fetched.headers.into_iter().map(|(name, text)| (name.into(), text.into()));
    let mut map = Map::new();
    map.insert("status".into(), i64::from(fetched.status).into());
    map.insert("headers".into(), headers.collect::<Map>().into());
    map.insert("body".into(), fetched.body.into());
    Ok(map)
}
