//! The list of models that an endpoint gives. OpenAI's tells ids only; others tell more, each under
//! names of its own.

use serde_json::Value;
use tenon_sdk::provider::{ModelFeatures, ModelInfo};

use crate::settings::{USUAL_FEATURES, info};

/// Reads a list. Entries without an id and models that are said not to chat are left out.
///
/// # Errors
///
/// What is wrong with it.
pub fn read(body: &[u8]) -> Result<Vec<ModelInfo>, &'static str> {
    let value: Value =
        serde_json::from_slice(body).map_err(|_| "the list of models is no valid JSON")?;
    let list = match &value {
        Value::Array(list) => list,
        Value::Object(members) => ["data", "models"]
            .iter()
            .find_map(|key| members.get(*key)?.as_array())
            .ok_or("the list of models has no \"data\"")?,
        _ => return Err("the list of models is no list"),
    };
    Ok(list.iter().filter_map(model).collect())
}

fn model(value: &Value) -> Option<ModelInfo> {
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str);
    let number = |pointer: &&str| value.pointer(pointer).and_then(Value::as_u64);
    let id = text("/id").or_else(|| text("/name")).filter(|id| !id.is_empty())?;
    // Together and LM Studio say what a model is for; OpenAI says "model" of everything.
    let other = ["embedding", "embeddings", "image", "audio", "rerank", "moderation", "transcribe"];
    if text("/type").is_some_and(|kind| other.contains(&kind)) {
        return None;
    }
    let title = text("/display_name").or_else(|| text("/name")).filter(|title| *title != id);
    let context = ["/context_window", "/context_length", "/max_context_length", "/max_model_len"];
    let context = context.iter().find_map(number).or_else(|| number(&"/meta/n_ctx_train"));
    let output =
        ["/max_completion_tokens", "/max_output_tokens", "/top_provider/max_completion_tokens"];
    Some(ModelInfo {
        title: title.map(str::to_string),
        context_window: context,
        max_output_tokens: output.iter().find_map(number),
        features: features(value),
        ..info(id)
    })
}

/// What a model does, where the endpoint says: Mistral by `capabilities`, OpenRouter by
/// `architecture` and `supported_parameters`.
fn features(value: &Value) -> ModelFeatures {
    let mut features = USUAL_FEATURES;
    let mut set = |flag, on: Option<bool>| {
        if let Some(on) = on {
            features.set(flag, on);
        }
    };
    let capability =
        |name: &str| value.pointer(&format!("/capabilities/{name}")).and_then(Value::as_bool);
    set(ModelFeatures::TOOLS, capability("function_calling"));
    set(ModelFeatures::IMAGES, capability("vision"));
    set(ModelFeatures::AUDIO, capability("audio"));

    let lists = |pointer: &str, words: &[&str]| {
        let list = value.pointer(pointer)?.as_array()?;
        Some(list.iter().any(|item| item.as_str().is_some_and(|item| words.contains(&item))))
    };
    set(ModelFeatures::IMAGES, lists("/architecture/input_modalities", &["image"]));
    set(ModelFeatures::AUDIO, lists("/architecture/input_modalities", &["audio"]));
    set(ModelFeatures::TOOLS, lists("/supported_parameters", &["tools"]));
    let schema = lists("/supported_parameters", &["structured_outputs", "response_format"]);
    set(ModelFeatures::RESPONSE_SCHEMA, schema);
    features
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, expected: &[ModelInfo]) {
        assert_eq!(read(json.as_bytes()), Ok(expected.to_vec()), "{json}");
    }

    #[test]
    fn every_dialect_is_read() {
        check(
            r#"{"object":"list","data":[{"id":"gpt-x","object":"model","owned_by":"openai"}]}"#,
            &[info("gpt-x")],
        );
        check(
            r#"{"data":[{"id":"v","max_model_len":4096}]}"#,
            &[ModelInfo { context_window: Some(4096), ..info("v") }],
        );
        check(
            r#"{"models":[{"name":"l"}],"data":[{"id":"l","meta":{"n_ctx_train":8}}]}"#,
            &[ModelInfo { context_window: Some(8), ..info("l") }],
        );
        check(
            r#"[{"id":"t","type":"chat","display_name":"T","context_length":9},
                {"id":"e","type":"embedding"}]"#,
            &[ModelInfo { title: Some("T".into()), context_window: Some(9), ..info("t") }],
        );
        check(
            r#"{"data":[{"id":"o/r","name":"OR","context_length":7,
                "top_provider":{"max_completion_tokens":3},
                "architecture":{"input_modalities":["text","image"]},
                "supported_parameters":["tools","seed"]}]}"#,
            &[ModelInfo {
                title: Some("OR".into()),
                context_window: Some(7),
                max_output_tokens: Some(3),
                features: ModelFeatures::TOOLS | ModelFeatures::IMAGES,
                ..info("o/r")
            }],
        );
        check(
            r#"{"data":[{"id":"m","max_context_length":6,
                "capabilities":{"function_calling":false,"vision":true}}]}"#,
            &[ModelInfo {
                context_window: Some(6),
                features: ModelFeatures::IMAGES | ModelFeatures::RESPONSE_SCHEMA,
                ..info("m")
            }],
        );
    }

    #[test]
    fn what_is_odd_is_left_out() {
        check(
            r#"{"data":[{"id":""},{"object":"model"},7,{"id":"a","context_window":"big"}]}"#,
            &[info("a")],
        );
        check(r#"{"data":[]}"#, &[]);
    }

    #[test]
    fn what_is_no_list_is_told() {
        let check = |body: &str, expected| assert_eq!(read(body.as_bytes()), Err(expected));
        check("<html>", "the list of models is no valid JSON");
        check("{}", "the list of models has no \"data\"");
        check("7", "the list of models is no list");
    }
}
