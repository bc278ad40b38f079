//! The user and the default model of a test.

use async_trait::async_trait;
use std::sync::{Arc, Mutex, PoisonError};
use tenon_host::services::{AskingPlugin, ClientFeature, ClientFeatures, Offers};
use tenon_host::types::{
    Completion, CompletionRequest, Error, FormAnswer, FormRequest, UrlAnswer, UrlRequest,
};

type Forms = Box<dyn Fn(&FormRequest) -> FormAnswer + Send + Sync>;
type Pages = Box<dyn Fn(&UrlRequest) -> UrlAnswer + Send + Sync>;
type Model = Box<dyn Fn(&CompletionRequest) -> Result<Completion, Error> + Send + Sync>;

/// Answers as the test says, and remembers what was asked.
#[derive(Default)]
pub(crate) struct Client {
    pub(crate) forms: Option<Forms>,
    pub(crate) pages: Option<Pages>,
    pub(crate) model: Option<Model>,
    pub(crate) asked: Arc<ClientRequestLogs>,
}

/// What was asked so far, in its order.
#[derive(Default)]
pub(crate) struct ClientRequestLogs {
    pub(crate) forms: RequestLog<FormRequest>,
    pub(crate) pages: RequestLog<UrlRequest>,
    pub(crate) model: RequestLog<CompletionRequest>,
}

pub(crate) struct RequestLog<T>(Mutex<Vec<T>>);

impl<T> Default for RequestLog<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> RequestLog<T> {
    pub(crate) fn all(&self) -> Vec<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn push(&self, request: &T) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
    }
}

#[async_trait]
impl ClientFeatures for Client {
    fn offers(&self) -> Offers {
        Offers {
            forms: self.forms.is_some(),
            pages: self.pages.is_some(),
            sampling: self.model.is_some(),
            roots: false,
        }
    }

    fn remedy(&self, missing: ClientFeature) -> String {
        let method = match missing {
            ClientFeature::Forms => "user",
            ClientFeature::Pages => "pages",
            _ => "model",
        };
        format!("the test answers with `{method}`")
    }

    async fn ask(&self, _: &AskingPlugin, form: FormRequest) -> Result<FormAnswer, Error> {
        let answer = self.forms.as_ref().ok_or_else(not_offered)?;
        self.asked.forms.push(&form);
        Ok(answer(&form))
    }

    async fn ask_url(&self, _: &AskingPlugin, page: UrlRequest) -> Result<UrlAnswer, Error> {
        let answer = self.pages.as_ref().ok_or_else(not_offered)?;
        self.asked.pages.push(&page);
        Ok(answer(&page))
    }

    async fn complete(
        &self,
        _: &AskingPlugin,
        request: CompletionRequest,
    ) -> Result<Completion, Error> {
        let answer = self.model.as_ref().ok_or_else(not_offered)?;
        self.asked.model.push(&request);
        answer(&request)
    }
}

/// The host asks only for what is offered.
fn not_offered() -> Error {
    Error::denied("the test does not answer this")
}
