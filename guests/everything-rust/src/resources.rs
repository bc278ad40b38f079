//! The resources.

use tenon_sdk::{Json, Value, instance, json, resource};

use crate::sample_media::PNG;

/// The URI of the resource that changes.
pub(crate) const WATCHED: &str = "test://watched-resource";

/// How often it has changed.
#[derive(Default)]
struct UpdateCount(u32);

/// Changes it.
pub(crate) fn update() {
    instance::with(|updates: &mut UpdateCount| updates.0 += 1);
}

/// A static text resource for testing
#[resource("test://static-text", name = "static-text", title = "Static Text Resource")]
pub(crate) async fn static_text() -> String {
    "This is the content of the static text resource.".to_string()
}

/// A static binary resource (image) for testing
#[resource(
    "test://static-binary",
    name = "static-binary",
    title = "Static Binary Resource",
    mime_type = "image/png"
)]
pub(crate) async fn static_binary() -> Vec<u8> {
    PNG.to_vec()
}

/// A resource template with parameter substitution
#[resource("test://template/{id}/data", title = "Resource Template")]
pub(crate) async fn template(#[complete("123", "124", "200")] id: String) -> Json<Value> {
    let data = format!("Data for ID: {id}");
    Json(json!({ "id": id, "templateTest": true, "data": data }))
}

/// A resource that a tool changes
#[resource("test://watched-resource", name = "watched-resource", title = "Watched Resource")]
pub(crate) async fn watched_resource() -> String {
    match instance::with(|updates: &mut UpdateCount| updates.0) {
        0 => "Watched resource content".to_string(),
        updates => format!("Watched resource content, changed {updates} times"),
    }
}
