//! {{description}}.

use tenon_sdk::hook::Outcome;
use tenon_sdk::hook::context::MessageSending;
use tenon_sdk::{Result, config, hook, plugin};

plugin!(hooks: [sign]);

/// Puts a signature below each message: `signature` of the plugin's settings, where there is one.
#[hook(message_sending)]
pub async fn sign(mut context: MessageSending) -> Result<Outcome<MessageSending>> {
    let signature = config::get("signature")?.unwrap_or("Sent with {{name}}".to_string());
    let Some(message) = &mut context.message else { return Ok(Outcome::Continue) };
    message.push('\n');
    message.push_str(&signature);
    Ok(Outcome::Replace(context))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_sdk::json;
    use tenon_sdk::testing::Host;

    #[test]
    fn a_message_is_signed() {
        let host = Host::new().config(json!({ "signature": "Yours, Ada" }));
        let outcome = host.handle::<sign>("message-sending", json!({ "message": "Hi" }));
        assert_eq!(outcome.unwrap(), Outcome::Replace(json!({ "message": "Hi\nYours, Ada" })));
    }

    #[test]
    fn what_is_no_message_is_left_alone() {
        let outcome = Host::new().handle::<sign>("message-sending", json!({}));
        assert_eq!(outcome.unwrap(), Outcome::Continue);
    }
}
