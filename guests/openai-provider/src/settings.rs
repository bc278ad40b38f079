//! The configuration: which endpoint, which models, which key.

use std::time::Duration;

use serde::Deserialize;
use tenon_sdk::http::Url;
use tenon_sdk::provider::{ModelFeatures, ModelInfo, Provider as _};
use tenon_sdk::{Error, ErrorCode};

use crate::OpenAi;

/// What the operator wrote.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The URL that `/chat/completions` and `/models` are added to. A query is kept.
    pub base_url: String,
    /// The name of the secret that holds the key; an empty one means that none is sent.
    pub secret: String,
    /// The header `OpenAI-Organization`.
    pub organization: Option<String>,
    /// The header `OpenAI-Project`.
    pub project: Option<String>,
    /// How many seconds the endpoint may be silent.
    pub timeout: u64,
    /// The member that limits the tokens of an answer. OpenAI itself wants
    /// `max_completion_tokens`, and most others know `max_tokens` only.
    pub max_tokens_field: Option<MaxTokensField>,
    /// The models there are; without it the endpoint is asked.
    models: Option<Vec<Model>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            base_url: "https://api.openai.com/v1".into(),
            secret: "openai-api-key".into(),
            organization: None,
            project: None,
            timeout: 600,
            max_tokens_field: None,
            models: None,
        }
    }
}

/// See [`Settings::max_tokens_field`].
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MaxTokensField {
    /// `max_tokens`
    MaxTokens,
    /// `max_completion_tokens`
    MaxCompletionTokens,
}

/// A model that the operator names: its id, or more.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, expecting = "a model is the text of its id, or an object with an `id`")]
enum Model {
    Id(String),
    Described(Described),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Described {
    id: String,
    title: Option<String>,
    context_window: Option<u64>,
    max_output_tokens: Option<u64>,
    features: Option<Vec<Feature>>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Feature {
    Tools,
    Images,
    Audio,
    Schema,
}

/// What a model is taken to do when nobody says.
pub const USUAL_FEATURES: ModelFeatures =
    ModelFeatures::TOOLS.union(ModelFeatures::RESPONSE_SCHEMA);

impl Settings {
    /// The configuration of this plugin.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::Failed`] where it is wrong: the caller of a model cannot mend it.
    pub fn read() -> Result<Self, Error> {
        let settings: Self = tenon_sdk::config::all().map_err(|error| match error.code {
            ErrorCode::InvalidInput => Error::failed(error.message),
            _ => error,
        })?;
        settings.base()?;
        Ok(settings)
    }

    /// The base URL.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::Failed`] where it is none.
    pub fn base(&self) -> Result<Url, Error> {
        tenon_sdk::http::parse(&self.base_url).map_err(|error| match error.code {
            ErrorCode::InvalidInput => {
                Error::failed(format!("configuration \"base_url\": {}", error.message))
            }
            _ => error,
        })
    }

    /// How long the endpoint may be silent.
    pub fn patience(&self) -> Duration {
        Duration::from_secs(self.timeout.max(1))
    }

    /// The models that the operator named.
    pub fn models(&self) -> Option<Vec<ModelInfo>> {
        Some(self.models.as_ref()?.iter().map(Model::info).collect())
    }

    /// Checks that a model may be asked for.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::NotFound`] where the operator named models and this is none of them.
    pub fn require(&self, model: &str) -> Result<(), Error> {
        match &self.models {
            Some(models) if !models.iter().any(|other| other.id() == model) => {
                Err(Error::not_found(format!("no model \"{model}\"")))
            }
            _ => Ok(()),
        }
    }

    /// The member that limits the tokens of an answer.
    pub fn max_tokens_field(&self) -> MaxTokensField {
        self.max_tokens_field.unwrap_or_else(|| {
            let base = self.base().ok();
            match base.as_ref().and_then(Url::host_str) {
                Some(host) if host == "api.openai.com" || host.ends_with(".openai.azure.com") => {
                    MaxTokensField::MaxCompletionTokens
                }
                _ => MaxTokensField::MaxTokens,
            }
        })
    }
}

impl Model {
    fn id(&self) -> &str {
        match self {
            Self::Id(id) => id,
            Self::Described(described) => &described.id,
        }
    }

    fn info(&self) -> ModelInfo {
        let mut info = info(self.id());
        if let Self::Described(described) = self {
            info.title.clone_from(&described.title);
            info.context_window = described.context_window;
            info.max_output_tokens = described.max_output_tokens;
            if let Some(features) = &described.features {
                info.features = features.iter().map(Feature::flag).collect();
            }
        }
        info
    }
}

impl Feature {
    fn flag(&self) -> ModelFeatures {
        match self {
            Self::Tools => ModelFeatures::TOOLS,
            Self::Images => ModelFeatures::IMAGES,
            Self::Audio => ModelFeatures::AUDIO,
            Self::Schema => ModelFeatures::RESPONSE_SCHEMA,
        }
    }
}

/// A model of which only the id is known.
pub fn info(id: &str) -> ModelInfo {
    ModelInfo {
        id: id.into(),
        provider: OpenAi::NAME.into(),
        title: None,
        context_window: None,
        max_output_tokens: None,
        features: USUAL_FEATURES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(json: &str) -> Settings {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn models_are_ids_or_more() {
        let settings = settings(
            r#"{"models": ["a", {"id": "b", "title": "B", "context_window": 8, "features": ["images"]}]}"#,
        );
        let b = ModelInfo {
            title: Some("B".into()),
            context_window: Some(8),
            features: ModelFeatures::IMAGES,
            ..info("b")
        };
        assert_eq!(settings.models(), Some(vec![info("a"), b]));
        assert_eq!(settings.require("b"), Ok(()));
        assert_eq!(settings.require("c"), Err(Error::not_found("no model \"c\"")));
        assert_eq!(self::settings("{}").require("c"), Ok(()));
    }

    #[test]
    fn openai_itself_limits_tokens_by_another_name() {
        let check = |base: &str, expected| {
            let settings = Settings { base_url: base.into(), ..Settings::default() };
            assert_eq!(settings.max_tokens_field(), expected, "{base}");
        };
        check("https://api.openai.com/v1", MaxTokensField::MaxCompletionTokens);
        check("https://x.openai.azure.com/openai/v1", MaxTokensField::MaxCompletionTokens);
        check("http://127.0.0.1:11434/v1", MaxTokensField::MaxTokens);
        let json = r#"{"max_tokens_field": "max_tokens"}"#;
        assert_eq!(settings(json).max_tokens_field(), MaxTokensField::MaxTokens);
    }

    #[test]
    fn what_is_wrong_is_told() {
        let check = |json: &str, expected: &str| {
            let error = serde_json::from_str::<Settings>(json).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        };
        check(r#"{"baseurl": "x"}"#, "unknown field `baseurl`, expected one of `base_url`");
        check(r#"{"models": [1]}"#, "a model is the text of its id, or an object with an `id`");
        let wrong = Settings { base_url: "localhost".into(), ..Settings::default() };
        let expected =
            "configuration \"base_url\": the URL is not valid: relative URL without a base";
        assert_eq!(wrong.base(), Err(Error::failed(expected)));
    }
}
