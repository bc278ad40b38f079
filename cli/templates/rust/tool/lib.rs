//! {{description}}.

use tenon_sdk::{Failure, Result, plugin, tool};

plugin!(tools: [greet]);

/// Greets somebody.
#[tool(read_only, idempotent)]
pub async fn greet(
    /// Whom to greet.
    name: String,
) -> Result<String> {
    let name = name.trim();
    if name.is_empty() {
        // The model reads this, and may do better.
        return Err(Failure::message("`name` is empty: say whom to greet"));
    }
    Ok(format!("Hello, {name}!"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_sdk::json;
    use tenon_sdk::testing::Host;

    #[test]
    fn somebody_is_greeted() {
        let answer = Host::new().run(greet(" Ada ".into()));
        assert_eq!(answer.unwrap(), "Hello, Ada!");
    }

    #[test]
    fn nobody_is_not_greeted() {
        // As the host calls it: by JSON.
        let result = Host::new().call_tool::<greet>(json!({ "name": "" })).unwrap();
        assert!(result.is_error);
    }
}
