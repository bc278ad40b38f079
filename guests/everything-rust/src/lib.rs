//! Has what the conformance suite of MCP asks a server for, as far as the contract can say it: tools,
//! resources, prompts and the completion of arguments, under the names that the suite knows.

mod prompts;
mod resources;
mod sample_media;
mod schema;
mod tools;

use prompts::{
    test_prompt_with_arguments, test_prompt_with_embedded_resource, test_prompt_with_image,
    test_simple_prompt,
};
use resources::{static_binary, static_text, template, watched_resource};
use schema::DialectTool;
use tools::{
    test_audio_content, test_elicitation, test_embedded_resource, test_error_handling,
    test_image_content, test_logging_tool, test_multiple_content_types, test_remember,
    test_sampling, test_simple_text, test_tool_with_logging, test_tool_with_progress,
    test_trigger_tool_change, test_update_watched_resource, test_wait,
};

tenon_sdk::plugin!(
    tools: [
        test_simple_text, test_image_content, test_audio_content, test_embedded_resource,
        test_multiple_content_types, test_tool_with_logging, test_tool_with_progress,
        test_error_handling, test_logging_tool, test_update_watched_resource, test_trigger_tool_change, test_sampling,
        test_elicitation, test_remember, test_wait, DialectTool,
    ],
    resources: [static_text, static_binary, template, watched_resource],
    subscriptions: [watched_resource],
    prompts: [
        test_simple_prompt, test_prompt_with_arguments, test_prompt_with_embedded_resource,
        test_prompt_with_image,
    ],
    completions: [test_prompt_with_arguments, template],
);

#[cfg(test)]
mod tests;
