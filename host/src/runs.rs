//! Runs of scripts that call tools as functions: what [`Platform::runner`](crate::Platform::runner) takes and gives.

pub use crate::platform::{RunOutcome, RunReport, RunUsage, ScriptRunner, ToolCallCount};
pub use crate::register::{CatalogFilter, CatalogTool, PromptFilter, ToolCatalog};
pub use crate::runtime::{MAX_RUN_DATA_BYTES, MAX_RUN_SCRIPT_BYTES, PromotedScript, RunLimits};
pub use tenon_runs::{JournalAnswer, JournalEntry, JsonDigest, NewRun, Run, RunError, RunState};
