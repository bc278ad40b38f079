//! Prompts as a host fills them in, and the completion of arguments.

use super::Host;
use crate::bindings::completions::exports::tenon::plugin::completions as completions_wit;
pub use crate::bindings::prompts::exports::tenon::plugin::prompts::{
    Prompt as FilledPrompt, PromptDefinition, PromptMessage,
};
use crate::completion::{self, CompleteArguments, Reference, Suggestions};
use crate::prompt::{self, PromptTemplate};
use crate::{Error, Result};

impl Host {
    /// How a prompt is listed.
    pub fn prompt<P: PromptTemplate>(&self) -> PromptDefinition {
        let page = prompt::list(&[prompt::entry::<P>()], None);
        page.expect("a table of one has a first page").prompts.remove(0)
    }

    /// Fills a prompt in.
    ///
    /// # Errors
    ///
    /// Those of the prompt, and [`ErrorCode::InvalidInput`](crate::ErrorCode::InvalidInput) for arguments
    /// that are not its own, or are missing.
    pub fn get_prompt<P: PromptTemplate>(
        &self,
        arguments: &[(&str, &str)],
    ) -> Result<FilledPrompt, Error> {
        let entries = [prompt::entry::<P>()];
        self.run(prompt::get(&entries, P::NAME, owned(arguments), self.context()))
    }

    /// Has a prompt or a resource suggest values for an argument, after what was typed and with the
    /// arguments that have their values already.
    ///
    /// # Errors
    ///
    /// Those of the function that suggests, and
    /// [`ErrorCode::InvalidInput`](crate::ErrorCode::InvalidInput) for a name that no argument has.
    pub fn complete_argument<C: CompleteArguments>(
        &self,
        name: &str,
        typed: &str,
        others: &[(&str, &str)],
    ) -> Result<Suggestions, Error> {
        let reference = match C::REFERENCE {
            Reference::Prompt(name) => completions_wit::CompletionReference::Prompt(name.into()),
            Reference::ResourceTemplate(text) => {
                completions_wit::CompletionReference::ResourceTemplate(text.into())
            }
        };
        let argument = completions_wit::ArgumentCompletion {
            reference,
            name: name.to_string(),
            value: typed.to_string(),
            others: owned(others),
        };
        let entries = [completion::entry::<C>()];
        self.run(completion::complete(&entries, &[], argument, self.context()))
    }
}

fn owned(arguments: &[(&str, &str)]) -> Vec<(String, String)> {
    arguments.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}
