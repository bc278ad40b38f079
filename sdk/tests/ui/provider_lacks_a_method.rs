use tenon_sdk::Result;
use tenon_sdk::plugin;
use tenon_sdk::provider::{ModelInfo, Provider};

plugin!(provider: Silent);

struct Silent;

impl Provider for Silent {
    const NAME: &'static str = "silent";
    const DESCRIPTION: &'static str = "Says nothing";

    async fn models() -> Result<Vec<ModelInfo>> {
        Ok(Vec::new())
    }
}

fn main() {}
