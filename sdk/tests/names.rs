//! An author's items may have the names that `plugin!` could have for its own.

use tenon_sdk::provider::{Completion, CompletionRequest, ModelInfo, Provider};
use tenon_sdk::testing::Host;
use tenon_sdk::{Context, Error, Result, plugin};

mod types {
    use tenon_sdk::{Result, tool};

    /// Greets somebody.
    #[tool]
    pub(super) async fn greet(name: String) -> Result<String> {
        Ok(format!("hello {name}"))
    }
}

struct Plugin;

impl Provider for Plugin {
    const NAME: &'static str = "own";
    const DESCRIPTION: &'static str = "Says nothing";

    async fn models() -> Result<Vec<ModelInfo>> {
        Ok(Vec::new())
    }

    async fn complete(_: CompletionRequest, _: Context) -> Result<Completion> {
        Err(Error::NotFound("there is no model".into()).into())
    }
}

plugin!(tools: [types::greet], provider: Plugin);

#[test]
fn they_are_the_authors_own() {
    let greeting = Host::new().run(types::greet("Ada".into()));
    assert_eq!(greeting.unwrap(), "hello Ada");
    assert_eq!(<Plugin as Provider>::NAME, "own");
}
