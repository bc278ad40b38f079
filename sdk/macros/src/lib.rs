//! The attributes of `tenon-sdk`, documented here and used from there.
//!
//! Each attribute leaves its function as it is and adds a type of the same name beside it, which
//! [`plugin!`] then lists. A function lives in another namespace than a type, so the two do not
//! meet.

mod eval;
mod function;
mod hook;
mod plugin;
mod tool;

use proc_macro::TokenStream;

/// Makes a tool of an async function.
///
/// The function's name is the tool's, its doc comment the description. Each parameter is a member
/// of the arguments, with its doc comment and its `#[serde(…)]` and `#[schemars(…)]` attributes;
/// `Option` makes it optional. A parameter of type `&Context` receives the call's context. The
/// function returns text (`String`), `Json<T>`, `Content`, a list of those, a `ToolResult` or
/// nothing, alone or in a `Result`.
///
/// Options: `name = "…"`, `title = "…"`, `capabilities("…", …)`, and the hints `read_only`,
/// `destructive`, `idempotent`, `open_world`, each of which may be `= false`.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, function: TokenStream) -> TokenStream {
    let expanded = tool::expand(options.into(), function.clone().into());
    expanded.unwrap_or_else(|error| tool::mistaken(function.into(), &error)).into()
}

/// Makes a hook handler of an async function, for the points in parentheses: `#[hook(before_plan,
/// message_sending, custom("deploy"))]`.
///
/// The first parameter is the context of the event: `serde_json::Value`, or a type of one's own. A
/// second parameter may be the `HookPoint` and another `&Context`, the call's. The function returns
/// an `Outcome` of the same type, alone or in a `Result`.
#[proc_macro_attribute]
pub fn hook(options: TokenStream, function: TokenStream) -> TokenStream {
    let expanded = hook::expand(options.into(), function.clone().into());
    expanded.unwrap_or_else(|error| hook::mistaken(function.into(), &error)).into()
}

/// Makes an evaluation strategy of an async function.
///
/// The first parameter is the subject: `eval::Subject`, or a type of one's own. A second one is the
/// options, whose type gives the options' schema. A parameter of type `&Context` receives the
/// call's context. The function returns an `Evaluation`, alone or in a `Result`.
///
/// Options: `name = "…"`.
#[proc_macro_attribute]
pub fn eval(options: TokenStream, function: TokenStream) -> TokenStream {
    let expanded = eval::expand(options.into(), function.clone().into());
    expanded.unwrap_or_else(|error| eval::mistaken(function.into(), &error)).into()
}

/// Makes the crate a plugin: `plugin!(tools: [a, b], hooks: [c], evals: [d], provider: E)`.
///
/// Each part may be left out, and the component exports what is listed and nothing else. A provider
/// that streams is `streaming_provider: E`. Name, version and description are those of the package.
#[proc_macro]
pub fn plugin(parts: TokenStream) -> TokenStream {
    plugin::expand(parts.into()).unwrap_or_else(|error| error.to_compile_error()).into()
}
