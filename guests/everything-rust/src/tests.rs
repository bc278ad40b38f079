use tenon_sdk::json;
use tenon_sdk::resource::ResourceBody;
use tenon_sdk::testing::Host;

use super::*;
use crate::sample_media::PNG;

#[test]
fn tools_say_what_they_do() {
    let host = Host::new();
    assert!(host.call_tool::<test_error_handling>(json!({})).unwrap().is_error);
    host.call_tool::<test_tool_with_logging>(json!({})).unwrap();
    assert_eq!(host.logged().len(), 3);
    host.call_tool::<test_tool_with_progress>(json!({})).unwrap();
    let progress: Vec<_> = host.progress().iter().map(|report| report.progress).collect();
    assert_eq!(progress, [0.0, 50.0, 100.0]);
    let mixed = host.call_tool::<test_multiple_content_types>(json!({})).unwrap();
    assert_eq!(mixed.content.len(), 3);
}

#[test]
fn resources_are_listed_and_read() {
    let host = Host::new();
    let [text] = &host.list_resources::<static_text>().unwrap()[..] else { panic!() };
    assert_eq!((text.uri.as_str(), text.name.as_str()), ("test://static-text", "static-text"));
    let read = host.read_resource::<static_binary>("test://static-binary").unwrap();
    assert_eq!(read[0].body, ResourceBody::Blob(PNG.to_vec()));
    let read = host.read_resource::<template>("test://template/123/data").unwrap();
    assert_eq!(read[0].mime_type.as_deref(), Some("application/json"));
    assert!(matches!(&read[0].body, ResourceBody::Text(text) if text.contains("\"id\":\"123\"")));
}

#[test]
fn who_watches_is_told() {
    let host = Host::new();
    host.subscribe::<watched_resource>("test://watched-resource").unwrap();
    host.call_tool::<test_update_watched_resource>(json!({})).unwrap();
    assert_eq!(host.resource_updates(), ["test://watched-resource"]);
}

#[test]
fn prompts_take_the_arguments_that_the_suite_names() {
    let host = Host::new();
    let arguments = [("arg1", "testValue1"), ("arg2", "testValue2")];
    assert_eq!(
        host.get_prompt::<test_prompt_with_arguments>(&arguments).unwrap().messages.len(),
        1
    );
    let arguments = [("resourceUri", "test://x")];
    let embedded = host.get_prompt::<test_prompt_with_embedded_resource>(&arguments).unwrap();
    assert_eq!(embedded.messages.len(), 2);
    let suggested = host.complete_argument::<test_prompt_with_arguments>("arg1", "par", &[]);
    assert_eq!(suggested.unwrap().values, ["paris", "park", "party"]);
}
