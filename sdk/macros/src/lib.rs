//! The attributes of `tenon-sdk`, documented here and used from there.
//!
//! Each attribute leaves its function as it is and adds a type of the same name beside it, which
//! [`plugin!`] then lists. A function lives in another namespace than a type, so the two do not
//! meet.

mod eval;
mod function;
mod hook;
mod plugin;
mod prompt;
mod resource;
mod text_argument;
mod tokens;
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
    listed(expanded, |error| tool::mistaken(function.into(), error))
}

/// Makes a hook handler of an async function, for the points in parentheses: `#[hook(before_plan,
/// message_sending, custom("acme:before-deploy"))]`.
///
/// The first parameter is the context of the event: `serde_json::Value`, or a type of one's own. A
/// second parameter may be the name of the point, a `String`, and another `&Context`, the call's. The
/// function returns an `Outcome` of the same type, alone or in a `Result`.
///
/// Options: `priority = 10`, where a greater priority is called earlier, and `audit`, with which the
/// host records the outcome and goes on as if it were `Continue`.
#[proc_macro_attribute]
pub fn hook(options: TokenStream, function: TokenStream) -> TokenStream {
    let expanded = hook::expand(options.into(), function.clone().into());
    listed(expanded, |error| hook::mistaken(function.into(), error))
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
    listed(expanded, |error| eval::mistaken(function.into(), error))
}

/// Makes a resource of an async function, or with a URI template (RFC 6570) a family of them:
/// `#[resource("notes://{name}")]`.
///
/// Each variable of the template is a parameter of the same name: a `String`, a number, or any other
/// type that implements `FromStr`. With `Option` it may be missing, and a list is a `Vec`:
///
/// | in a template | in a URI | parameters |
/// |---|---|---|
/// | `{name}` | `shopping`, without `/` | `name: String` |
/// | `{a,b}` | `1,2` | `a: u32, b: u32` |
/// | `{+path}` | `a/b.txt?x`, up to the end | `path: String` |
/// | `{/folder}` | `/a` | `folder: String` |
/// | `{/path*}` | `/a/b/c` | `path: Vec<String>` |
/// | `{?page,tag*}` | `?page=2&tag=a&tag=b` | `page: Option<u32>, tag: Vec<String>` |
/// | `{&page}` | `&page=2`, after a `?` in the text | `page: Option<u32>` |
/// | `{#line}` | `#7` | `line: Option<u32>` |
///
/// A value is decoded after it was cut out: `notes://{name}` matches `notes://a%2Fb`, with the name
/// `a/b`, and not `notes://a/b`. The caller writes what it likes: a value that names a file may be
/// `../../other`. Except in a query, no value is empty. A template that could match a URI in two ways
/// is a mistake. A URI without variables goes before a template that matches it too, and of two
/// templates the one that is listed first.
///
/// The doc comment is the description. A parameter of type `&Context` receives the call's context.
/// The function returns `String`, `Vec<u8>`, `Json<T>`, `ResourceContents` or `Vec<ResourceContents>`,
/// alone or in a `Result`.
///
/// Options: `name = "…"`, `title = "…"`, `mime_type = "…"`, and for a URI without variables `size = 3`.
/// With `list = path::to::function` a template says which resources there are now: an async function
/// that takes nothing or `&Context`, and returns `Vec<ListedResource>`, alone or in a `Result`.
///
/// `#[complete(…)]` and `#[argument(name = "…")]` stand at parameters, as for [`macro@prompt`].
#[proc_macro_attribute]
pub fn resource(options: TokenStream, function: TokenStream) -> TokenStream {
    let expanded = resource::expand(options.into(), function.clone().into());
    listed(expanded, |error| resource::mistaken(function.into(), error))
}

/// Makes a prompt of an async function.
///
/// The function's name is the prompt's, its doc comment the description. Each parameter is an
/// argument, with its doc comment: a `String`, a number, or any other type that implements `FromStr`,
/// as all arguments arrive as text. `Option` makes it optional. A parameter of type `&Context` receives
/// the call's context. The function returns `String` or `Content`, which is one message of the user's,
/// `Message`, a `Vec` of messages, or a `Prompt`, alone or in a `Result`.
///
/// Options: `name = "…"`, `title = "…"`.
///
/// At a parameter, `#[argument(name = "…", title = "…")]` names the argument, and `#[complete(…)]`
/// suggests values of it. `#[complete("red", "green")]` suggests those that begin with what was typed,
/// and `#[complete(path::to::function)]` what an async function returns. That function takes what was
/// typed (`&str`) and, if it needs them, the other arguments (`&Arguments`) and `&Context`; it returns a
/// `Vec` of text or `Suggestions`, alone or in a `Result`. List the prompt under `completions` of
/// [`plugin!`] as well.
#[proc_macro_attribute]
pub fn prompt(options: TokenStream, function: TokenStream) -> TokenStream {
    let expanded = prompt::expand(options.into(), function.clone().into());
    listed(expanded, |error| prompt::mistaken(function.into(), error))
}

/// Makes the crate a plugin: `plugin!(tools: [a, b], hooks: [c], evals: [d], resources: [e], prompts:
/// [f], provider: G)`.
///
/// Each part may be left out, and the component exports what is listed and nothing else. Resources that
/// can be subscribed to are also listed under `subscriptions`, and resources and prompts that suggest
/// values of their arguments under `completions`. It stands in the root of the crate. A provider that streams is `streaming_provider: G`.
/// Name, version and description are those of the package.
#[proc_macro]
pub fn plugin(parts: TokenStream) -> TokenStream {
    let expanded = plugin::expand(parts.into());
    expanded
        .unwrap_or_else(|error| [error.to_compile_error(), plugin::mark()].into_iter().collect())
        .into()
}

/// What an attribute makes of a function that `plugin!` lists, or what is left of one with a mistake.
fn listed(
    expanded: syn::Result<proc_macro2::TokenStream>,
    mistaken: impl FnOnce(&syn::Error) -> proc_macro2::TokenStream,
) -> TokenStream {
    match expanded {
        Ok(expanded) => [expanded, plugin::required().unwrap_or_default()].into_iter().collect(),
        Err(error) => mistaken(&error),
    }
    .into()
}
