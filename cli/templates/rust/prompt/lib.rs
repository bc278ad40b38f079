//! {{description}}.

use tenon_sdk::{plugin, prompt};

plugin!(prompts: [explain]);

/// Asks for an explanation.
#[prompt]
pub async fn explain(
    /// What to explain.
    topic: String,
    /// Whom to explain it to.
    audience: Option<String>,
) -> String {
    let audience = audience.unwrap_or_else(|| "a beginner".to_string());
    format!("Explain {topic} to {audience}.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_sdk::ErrorCode;
    use tenon_sdk::testing::Host;

    #[test]
    fn the_audience_may_be_left_out() {
        let message = Host::new().run(explain("tides".into(), None));
        assert_eq!(message, "Explain tides to a beginner.");
    }

    #[test]
    fn the_topic_may_not_be_left_out() {
        // As the host fills it in: by the names of its arguments.
        let error = Host::new().get_prompt::<explain>(&[("audience", "a child")]).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidInput);
    }
}
