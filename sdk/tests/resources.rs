//! Resources, as authors write and test them.

use tenon_sdk::resource::{ListedResource, ResourceBody, is_subscribed, subscribed};
use tenon_sdk::testing::Host;
use tenon_sdk::{
    Arguments, Context, Error, ErrorCode, Failure, Json, ResourceContents, Result, Value, instance,
    json, log, notify, plugin, resource, tool,
};

plugin!(
    tools: [rename],
    resources: [logo, note, search, file, report, several, counter, r#type],
    subscriptions: [note, counter],
    completions: [note, search],
);

/// The logo of the plugin.
#[resource("notes:logo", name = "logo.png", title = "Logo", mime_type = "image/png", size = 3)]
async fn logo() -> Vec<u8> {
    vec![1, 2, 3]
}

/// A note.
///
/// There are two.
#[resource("notes://{name}", list = notes)]
async fn note(#[complete("shopping", "Sheep")] name: String, context: &Context) -> Result<String> {
    log::info(context.call_id());
    match name.as_str() {
        "shopping" | "to do" => Ok(format!("note of {name}")),
        "broken" => Err(Failure::message("it is broken")),
        _ => Err(Error::not_found(format!("there is no note \"{name}\"")).into()),
    }
}

async fn notes(context: &Context) -> Result<Vec<ListedResource>> {
    assert!(context.call_id().starts_with("call-"));
    Ok(vec![
        ListedResource::of([("name", "shopping")]),
        ListedResource::at("notes://to%20do").name("todo").title("To do").size(4),
        ListedResource::at("elsewhere://x"),
        ListedResource::of([("name", "")]),
        ListedResource::of([("names", "x")]),
    ])
}

/// Finds notes.
#[resource("find:{?q,page,tag*}", mime_type = "application/vnd.notes+json")]
async fn search(
    q: String,
    #[complete(pages)] page: Option<u32>,
    tag: Vec<String>,
    #[argument(name = "page")] same: Option<u8>,
) -> Json<Value> {
    Json(json!({ "q": q, "page": page, "tag": tag, "same": same }))
}

async fn pages(typed: &str, others: &Arguments, context: &Context) -> Result<Vec<String>> {
    let q = others.get("q").unwrap_or_default();
    Ok((0..150).map(|n| format!("{typed}{n} {q} {}", context.call_id())).collect())
}

/// A file.
#[resource("file:{/folder*}:{name}{#line}")]
async fn file(folder: Vec<String>, name: String, line: Option<u32>) -> String {
    format!("{folder:?} {name} {line:?}")
}

/// Says as which type it came.
#[resource("report:{ok}", title = "Report")]
async fn report(ok: bool) -> Result<ResourceContents> {
    Ok(ResourceContents::text("report:part", ok.to_string()).with_mime_type("text/markdown"))
}

/// Has two parts.
#[resource("several:all", mime_type = "text/plain")]
async fn several() -> Vec<ResourceContents> {
    vec![ResourceContents::text("several:1", "one"), ResourceContents::blob("several:2", vec![2])]
}

/// How often something happened.
#[resource("counter:value")]
async fn counter() -> String {
    instance::with(|count: &mut u32| count.to_string())
}

/// Has a name that is a word of Rust's.
#[resource("type:{in}")]
async fn r#type(r#in: String) -> String {
    r#in
}

/// Changes what there is.
#[tool]
async fn rename() {
    instance::with(|count: &mut u32| *count += 1);
    notify::resource_updated("counter:value");
    notify::contributions_changed();
}

fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> (ErrorCode, String) {
    let error = result.unwrap_err();
    (error.code, error.message)
}

fn text(contents: &[ResourceContents]) -> (&str, Option<&str>, &str) {
    match contents {
        [ResourceContents { uri, mime_type, body: ResourceBody::Text(text), .. }] => {
            (uri, mime_type.as_deref(), text)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_resource_without_variables_is_listed_and_read() {
    let host = Host::new();
    let listed = host.list_resources::<logo>().unwrap();
    let [logo_link] = &listed[..] else { panic!("{listed:?}") };
    assert_eq!((logo_link.uri.as_str(), logo_link.name.as_str()), ("notes:logo", "logo.png"));
    assert_eq!(logo_link.title.as_deref(), Some("Logo"));
    assert_eq!(logo_link.description.as_deref(), Some("The logo of the plugin."));
    assert_eq!((logo_link.mime_type.as_deref(), logo_link.size), (Some("image/png"), Some(3)));
    assert_eq!(host.template::<logo>(), None);
    let read = host.read_resource::<logo>("notes:logo").unwrap();
    assert_eq!(
        read,
        [ResourceContents::blob("notes:logo", vec![1, 2, 3]).with_mime_type("image/png")]
    );
    assert_eq!(code(host.read_resource::<logo>("notes:logo2")).0, ErrorCode::NotFound);
    let error = host.read_resource::<logo>("notes:logo2").unwrap_err();
    assert_eq!(error.data.as_deref(), Some(r#"{"uri":"notes:logo2"}"#));
}

#[test]
fn a_template_lists_what_there_is_now() {
    let host = Host::new();
    let template = host.template::<note>().unwrap();
    assert_eq!(
        (template.uri_template.as_str(), template.name.as_str()),
        ("notes://{name}", "note")
    );
    assert_eq!(template.description.as_deref(), Some("A note.\n\nThere are two."));
    assert_eq!(template.mime_type.as_deref(), Some("text/plain"));
    let listed = host.list_resources::<note>().unwrap();
    let [shopping, to_do] = &listed[..] else { panic!("{listed:?}") };
    assert_eq!((shopping.uri.as_str(), shopping.name.as_str()), ("notes://shopping", "shopping"));
    assert_eq!(shopping.mime_type.as_deref(), Some("text/plain"));
    assert_eq!((to_do.uri.as_str(), to_do.name.as_str()), ("notes://to%20do", "todo"));
    assert_eq!((to_do.title.as_deref(), to_do.size), (Some("To do"), Some(4)));
    for link in &listed {
        host.read_resource::<note>(&link.uri).unwrap();
    }
    assert!(host.list_resources::<search>().unwrap().is_empty());
}

#[test]
fn what_is_listed_and_could_not_be_read_is_left_out() {
    let host = Host::new();
    host.list_resources::<note>().unwrap();
    let logged: Vec<_> = host.logged().into_iter().map(|line| line.message).collect();
    assert_eq!(
        logged,
        [
            "a resource is not listed: notes://{name} does not match elsewhere://x",
            "a resource is not listed: notes://{name} does not match notes://",
            "a resource is not listed: notes://{name} has no variable for each of these values",
        ]
    );
}

#[test]
fn variables_become_parameters() {
    let host = Host::new();
    let read = host.read_resource::<note>("notes://to%20do").unwrap();
    assert_eq!(text(&read), ("notes://to%20do", Some("text/plain"), "note of to do"));
    assert_eq!(host.logged()[0].message, "call-1");
    let read = host.read_resource::<search>("find:?q=a%26b&page=2&tag=x&tag=y").unwrap();
    let (_, mime_type, found) = text(&read);
    assert_eq!(mime_type, Some("application/vnd.notes+json"));
    let expected = json!({ "q": "a&b", "page": 2, "tag": ["x", "y"], "same": 2 });
    assert_eq!(serde_json::from_str::<Value>(found).unwrap(), expected);
    let read = host.read_resource::<file>("file:/a/b%2Fc:d#7").unwrap();
    assert_eq!(text(&read).2, r#"["a", "b/c"] d Some(7)"#);
    let read = host.read_resource::<file>("file::d").unwrap();
    assert_eq!(text(&read).2, "[] d None");
    let read = host.read_resource::<r#type>("type:x").unwrap();
    assert_eq!(text(&read).2, "x");
}

#[test]
fn what_does_not_fit_is_refused() {
    let host = Host::new();
    let check = |result, expected, message: &str| {
        let (code, said) = code::<Vec<ResourceContents>>(result);
        assert_eq!(code, expected, "{said}");
        assert!(said.contains(message), "{said}");
    };
    use ErrorCode::{Failed, InvalidInput, NotFound};
    check(host.read_resource::<note>("notes://a/b"), NotFound, "no resource \"notes://a/b\"");
    check(host.read_resource::<note>("notes://other"), NotFound, "no note \"other\"");
    check(host.read_resource::<note>("notes://broken"), Failed, "it is broken");
    check(host.read_resource::<search>("find:?q=a&page=b"), InvalidInput, "argument \"page\": ");
    check(host.read_resource::<search>("find:?q=a&page=300"), InvalidInput, "argument \"page\": ");
    check(host.read_resource::<search>("find:?page=2"), NotFound, "");
    check(host.read_resource::<report>("report:maybe"), InvalidInput, "argument \"ok\": ");
}

#[test]
fn contents_are_of_their_own_types_or_of_the_attributes() {
    let host = Host::new();
    let read = host.read_resource::<report>("report:true").unwrap();
    assert_eq!(text(&read), ("report:part", Some("text/markdown"), "true"));
    let read = host.read_resource::<several>("several:all").unwrap();
    assert_eq!(read[0], ResourceContents::text("several:1", "one"));
    assert_eq!(read[1].body, ResourceBody::Blob(vec![2]));
    assert_eq!(host.template::<report>().unwrap().mime_type, None);
}

#[test]
fn uris_are_made_of_values() {
    assert_eq!(resource::uri::<note>([("name", "to do")]).unwrap(), "notes://to%20do");
    let values = [("folder", "a/b"), ("folder", "c"), ("name", "d"), ("line", "1")];
    assert_eq!(resource::uri::<file>(values).unwrap(), "file:/a%2Fb/c:d#1");
    assert_eq!(code(resource::uri::<note>([("name", "")])).0, ErrorCode::InvalidInput);
    assert_eq!(code(resource::uri::<note>([("other", "x")])).0, ErrorCode::InvalidInput);
}

#[test]
fn who_subscribes_is_told() {
    let host = Host::new();
    host.subscribe::<counter>("counter:value").unwrap();
    host.subscribe::<note>("notes://shopping").unwrap();
    assert_eq!(host.run(async { subscribed() }), ["counter:value", "notes://shopping"]);
    host.unsubscribe("notes://shopping");
    assert!(!host.run(async { is_subscribed("notes://shopping") }));
    assert_eq!(code(host.subscribe::<note>("notes://a/b")).0, ErrorCode::NotFound);
    host.call_tool::<rename>(json!({})).unwrap();
    assert_eq!(host.resource_updates(), ["counter:value"]);
    assert_eq!(host.contribution_changes(), 1);
    assert_eq!(text(&host.read_resource::<counter>("counter:value").unwrap()).2, "1");
    host.restart();
    assert!(!host.run(async { is_subscribed("counter:value") }));
}

#[test]
fn variables_are_completed() {
    let host = Host::new();
    let suggested = host.complete_argument::<note>("name", "sh", &[]).unwrap();
    assert_eq!(suggested.values, ["shopping", "Sheep"]);
    assert_eq!((suggested.total, suggested.has_more), (Some(2), false));
    let suggested = host.complete_argument::<search>("page", "x", &[("q", "y")]).unwrap();
    assert_eq!(suggested.values.len(), 100);
    assert!(suggested.values[99].starts_with("x99 y call-"), "{suggested:?}");
    assert_eq!((suggested.total, suggested.has_more), (Some(150), true));
    assert!(host.complete_argument::<search>("q", "x", &[]).unwrap().values.is_empty());
    let unknown = host.complete_argument::<search>("other", "x", &[]);
    assert_eq!(code(unknown).0, ErrorCode::InvalidInput);
}
