//! The tools of profiles that do not list all: `search` finds tools, and `call` or `run` uses them. They cost a model the
//! same, however many tools there are.

use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;
use tenon_host::Platform;
use tenon_host::runs::{CatalogFilter, CatalogTool, MAX_RUN_SCRIPT_BYTES, ToolCatalog};
use tenon_host::types::name::nearest;

use super::Profile;

/// How clients are offered the tools of a profile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToolMode {
    /// All are listed.
    #[default]
    All,
    /// `search` finds them, and `call` calls one.
    Search,
    /// `search` finds them, and `run` runs a script that calls them.
    Code,
}

pub(crate) const SEARCH: &str = "search";
pub(crate) const CALL: &str = "call";
pub(crate) const RUN: &str = "run";

/// How many tools a search finds where nobody says how many, and at most.
pub(crate) const DEFAULT_FOUND: usize = 8;
const MAX_FOUND: u64 = 50;

/// How many tools a client may have found.
pub(crate) const FOUND_RANGE: std::ops::RangeInclusive<u64> = 1..=MAX_FOUND;

/// What a client reads of running scripts.
const RUN_DESCRIPTION: &str = r#"Runs a Rhai script that calls tools, so that their results need not pass through you. `search` says how each is called.
files.read(#{ path: "/a" })  structured content is a value, one text a text, else an array of content blocks
parallel(list.map(|i| || a.x(#{ id: i })))  results in order; not made in a `for` loop, whose variable all share; what they assign is lost
step("name", || …)  done once, even if the script runs again after an approval
call_tool("name", #{ … }), tools.search("words"), tools.describe("files.read")
resources.list("plugin"), resources.read("plugin", "uri"), prompts.get("plugin", "name", #{ … })
A failed call throws: try { … } catch (e) { … }. `data` is what you pass, print(…) is returned, the last value is the result. Rhai: let x = 1; #{ key: 1 } is a map, [1] an array, |x| x + 1 a closure, `a ${x}` a text, () nothing; if, for x in list, while, switch.
A call that has to be approved pauses the run; pass its id as `resume` once it is approved."#;

/// The tools that such a profile lists, as JSON.
pub(super) fn items(mode: ToolMode) -> Vec<String> {
    definitions(mode).iter().map(Value::to_string).collect()
}

/// The definitions of these tools.
fn definitions(mode: ToolMode) -> [Value; 2] {
    let found = match mode {
        ToolMode::Code => "how each is called in a script",
        _ => "each with its arguments",
    };
    let search = json!({
        "name": SEARCH,
        "description": format!(
            "Finds tools by words, and says {found} and what it does. The name of a tool finds all that is known of it."
        ),
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": { "type": "string" },
                "limit": { "type": "integer", "minimum": 1, "maximum": MAX_FOUND },
            },
            "required": ["query"],
            "additionalProperties": false,
        },
        "annotations": { "readOnlyHint": true, "openWorldHint": false },
    });
    let other = match mode {
        ToolMode::Code => json!({
            "name": RUN,
            "description": RUN_DESCRIPTION,
            "inputSchema": {
                "type": "object",
                "properties": {
                    "script": { "type": "string", "maxLength": MAX_RUN_SCRIPT_BYTES },
                    "data": { "description": "any value" },
                    "resume": { "type": "string" },
                },
                "additionalProperties": false,
            },
        }),
        _ => json!({
            "name": CALL,
            "description": "Calls a tool that `search` has found.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "name": { "type": "string" },
                    "arguments": { "type": "object" },
                },
                "required": ["name"],
                "additionalProperties": false,
            },
        }),
    };
    [search, other]
}

/// What is wrong with arguments of one of these tools that it does not have.
pub(crate) fn unknown_argument(mode: ToolMode, tool: &str, arguments: &Value) -> Option<String> {
    let definition = definitions(mode).into_iter().find(|definition| definition["name"] == tool)?;
    let known = definition["inputSchema"]["properties"].as_object()?;
    let unknown = arguments.as_object()?.keys().find(|name| !known.contains_key(*name))?;
    let meant = nearest(unknown, known.keys().map(String::as_str));
    let meant = meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
    Some(format!("there is no argument {unknown:?}{meant}"))
}

/// The catalog of a profile: of these tools, by the names that the platform has for them.
pub(super) fn catalog(
    platform: &Platform,
    profile: &Arc<Profile>,
    tools: HashSet<String>,
) -> ToolCatalog {
    let (of_resources, of_prompts) = (profile.clone(), profile.clone());
    let named_by = platform.clone();
    let prompt = move |plugin: &str, name: &str| {
        let shown = match of_prompts.prefix {
            true => named_by.registry().rendered_name(plugin, name).map(|name| name.to_string()),
            false => Some(name.to_string()),
        };
        shown.is_some_and(|shown| of_prompts.offers_prompt(&shown))
    };
    platform.catalog(CatalogFilter {
        tool: Box::new(move |name| tools.contains(name)),
        resource: Box::new(move |uri| of_resources.offers_resource(uri)),
        prompt: Box::new(prompt),
    })
}

/// What a search has found, as text: a line for each tool. A tool that was named, or that is the only one, is described.
/// `meant` is the name that the platform has for the tool that clients know as `query`, where there is one.
pub(crate) fn found(
    catalog: &ToolCatalog,
    mode: ToolMode,
    shown_name: impl Fn(&CatalogTool) -> String,
    query: &str,
    meant: Option<&str>,
    limit: Option<u64>,
) -> String {
    let limit = limit.map_or(DEFAULT_FOUND, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let named = catalog.tools().iter().find(|tool| {
        tool.tool == query
            || tool.function.as_deref() == Some(query)
            || Some(tool.tool.as_str()) == meant
    });
    if let Some(tool) = named {
        return described(tool, mode, &shown_name(tool));
    }
    let found = catalog.search(query, limit);
    match &found[..] {
        [] => "no tool has one of these words".into(),
        [only] => described(only, mode, &shown_name(only)),
        several => {
            let lines = several.iter().map(|tool| {
                let call = match mode {
                    ToolMode::Code => tool.signature(),
                    _ => format!("{}({})", shown_name(tool), tool.arguments()),
                };
                format!("{call}  {}", tool.summary())
            });
            lines.collect::<Vec<_>>().join("\n")
        }
    }
}

fn described(tool: &CatalogTool, mode: ToolMode, shown_name: &str) -> String {
    let mut all = tool.describe();
    if mode != ToolMode::Code {
        all["name"] = shown_name.into();
        if let Some(members) = all.as_object_mut() {
            members.remove("signature");
        }
    }
    if all["result"] == Value::Null
        && let Some(members) = all.as_object_mut()
    {
        members.remove("result");
    }
    all.to_string()
}
