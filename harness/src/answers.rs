//! The user and the default model of a test: what the test answers, and what was asked.

use serde_json::{Value, json};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tenon_types::{FormAnswer, FormRequest, UrlAnswer, UrlRequest};

use crate::protocol::{CallError, Question};

type Forms = Box<dyn Fn(&FormRequest) -> FormAnswer + Send + Sync>;
type Pages = Box<dyn Fn(&UrlRequest) -> UrlAnswer + Send + Sync>;
type Model = Box<dyn Fn(&Value) -> Result<String, String> + Send + Sync>;

/// Answers as the test says, and remembers what was asked.
#[derive(Default)]
pub(crate) struct Answers {
    pub(crate) forms: Option<Forms>,
    pub(crate) pages: Option<Pages>,
    pub(crate) model: Option<Model>,
    asked: Mutex<Asked>,
}

/// What was asked so far, in its order.
#[derive(Default)]
pub(crate) struct Asked {
    pub(crate) forms: Vec<FormRequest>,
    pub(crate) pages: Vec<UrlRequest>,
    pub(crate) model: Vec<Value>,
}

impl Answers {
    pub(crate) fn asked(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a question of the command, in the form that the protocol has for it.
    pub(crate) fn answer(&self, question: Question) -> Result<Value, CallError> {
        match question {
            Question::Form { message, schema } => {
                let answer = self.forms.as_ref().ok_or_else(not_offered)?;
                let form = FormRequest::new(message, schema);
                self.asked().forms.push(form.clone());
                Ok(match answer(&form) {
                    FormAnswer::Accepted(content) => {
                        json!({ "action": "accept", "content": content })
                    }
                    FormAnswer::Declined => json!({ "action": "decline" }),
                    FormAnswer::Cancelled => json!({ "action": "cancel" }),
                })
            }
            Question::Page { message, url } => {
                let answer = self.pages.as_ref().ok_or_else(not_offered)?;
                let page = UrlRequest::new(message, url);
                self.asked().pages.push(page.clone());
                Ok(json!({ "action": match answer(&page) {
                    UrlAnswer::Accepted => "accept",
                    UrlAnswer::Declined => "decline",
                    UrlAnswer::Cancelled => "cancel",
                } }))
            }
            Question::Model(request) => {
                let answer = self.model.as_ref().ok_or_else(not_offered)?;
                self.asked().model.push(request.clone());
                answer(&request).map(Value::from).map_err(|why| CallError::new("denied", why))
            }
        }
    }
}

/// The command asks only for what is offered.
fn not_offered() -> CallError {
    CallError::new("unsupported", "the test does not answer this")
}
