//! What is known of a server that is not started.

use serde_json::Value;
use tenon_config::discover::{Candidate, CodeSource};
use tenon_config::host_environment::HostEnvironment;
use tenon_types::ToolDefinition;

use super::operation_tools;
use crate::capability::server::ListingCache;
use crate::capability::services::Offers;
use crate::runtime::schema::{self, nulls};

/// What a server had when it was last asked. Nothing is started to know it.
#[derive(Debug, Clone)]
pub struct CachedServer {
    tools: Vec<ToolDefinition>,
}

impl CachedServer {
    /// What is kept of the server that a candidate is; nothing where it is none, or was never asked
    /// as it is now, by a client that offers this. It blocks.
    pub fn of(
        candidate: &Candidate,
        host_environment: &HostEnvironment,
        offers: Offers,
    ) -> Option<Self> {
        let CodeSource::Mcp(server) = &candidate.source else { return None };
        let known = ListingCache::of(server, candidate.named_in(), host_environment, offers, true)?
            .stand_in()?;
        let of_host = operation_tools::on(known.resources, known.prompts);
        let of_host = of_host.map(|(_, offered)| ToolDefinition::clone(&offered.definition));
        Some(Self { tools: known.tools.into_iter().chain(of_host).collect() })
    }

    /// Its tools, by the names that it has for them, and those that a host may have for its resources
    /// and prompts.
    pub fn tools(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.name.as_str())
    }

    /// The JSON Schema of the arguments of one of its tools.
    pub fn input_schema(&self, tool: &str) -> Option<&str> {
        let known = self.tools.iter().find(|known| known.name == tool);
        known.map(|known| known.input_schema.as_str())
    }

    /// What is wrong with arguments for one of its tools; nothing where that is not known.
    pub fn problems(&self, tool: &str, arguments: &Value) -> Vec<String> {
        let schema = self.input_schema(tool).and_then(schema::compile_if_plain);
        let Some(schema) = schema else { return Vec::new() };
        let mut arguments = arguments.clone();
        nulls::leave_out(&schema, &mut arguments);
        schema.problems(&arguments).unwrap_or_default()
    }
}
