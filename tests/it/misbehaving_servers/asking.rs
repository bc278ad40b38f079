//! What servers ask of the host.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenon_host::services::{AskingPlugin, ClientFeatures, GrantAll, Offers};
use tenon_host::types::{
    Completion, CompletionRequest, Error, FormAnswer, FormRequest, UrlAnswer, UrlRequest,
};
use tokio::sync::Notify;

use super::{among, configuration, echoes};
use crate::support::{Project, RunningPlatform, eventually, text};

/// What somebody was asked.
#[derive(Debug, Clone, PartialEq)]
enum Asked {
    Form(FormRequest),
    Page(UrlRequest),
    Model(CompletionRequest),
}

/// An embedder with somebody to ask, who says no to everything but forms and pages.
#[derive(Clone, Default)]
struct Somebody {
    asked: Arc<Mutex<Vec<(AskingPlugin, Asked)>>>,
    opens_pages: bool,
}

#[async_trait]
impl ClientFeatures for Somebody {
    fn offers(&self) -> Offers {
        Offers { forms: true, pages: self.opens_pages, sampling: true, roots: false }
    }

    async fn ask(&self, requester: &AskingPlugin, form: FormRequest) -> Result<FormAnswer, Error> {
        self.note(requester, Asked::Form(form));
        Ok(FormAnswer::Accepted([("name".to_string(), json!("n"))].into_iter().collect()))
    }

    async fn ask_url(
        &self,
        requester: &AskingPlugin,
        page: UrlRequest,
    ) -> Result<UrlAnswer, Error> {
        self.note(requester, Asked::Page(page));
        Ok(UrlAnswer::Accepted)
    }

    async fn complete(
        &self,
        requester: &AskingPlugin,
        request: CompletionRequest,
    ) -> Result<Completion, Error> {
        self.note(requester, Asked::Model(request));
        Err(Error::denied("not that"))
    }
}

impl Somebody {
    fn note(&self, requester: &AskingPlugin, asked: Asked) {
        self.asked.lock().unwrap().push((requester.clone(), asked));
    }
}

/// A platform of an embedder, with servers of these habits.
async fn offering(features: impl ClientFeatures, habits: &[&str]) -> RunningPlatform {
    let project = Project::new(&configuration(habits, ""));
    let platform = project.builder().client_features(features).build().await.unwrap();
    RunningPlatform::new(platform, project)
}

/// What came of asking for everything, in the order of asking.
async fn answers(platform: &RunningPlatform) -> Value {
    serde_json::from_str(&text(platform, "asks__rude", json!({})).await).unwrap()
}

// MCP.md: B6, G1, G3, G4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_asks_a_host_that_offers_nothing_gets_nothing() {
    let platform = among(&["asks"]).await;
    let nobody = json!({ "action": "cancel" });
    let expected = json!([{}, -32601, nobody, nobody, -32601, -32601]);
    assert_eq!(answers(&platform).await, expected);
    echoes(&platform, "asks").await;
    platform.clone().shutdown().await;
}

// MCP.md: G3, G4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asks_is_said_and_gets_the_answer() {
    let somebody = Somebody::default();
    let platform = offering(somebody.clone(), &["asks"]).await;
    let accepted = json!({ "action": "accept", "content": { "name": "n" } });
    let expected = json!([{}, -32601, accepted, -32602, -1, -32601]);
    assert_eq!(answers(&platform).await, expected);
    let asked = somebody.asked.lock().unwrap().clone();
    let [(one, Asked::Form(form)), (other, Asked::Model(request))] = &asked[..] else {
        panic!("{asked:?}")
    };
    assert_eq!((&*one.plugin, &*other.plugin), ("asks", "asks"));
    assert_eq!(form.message, "who?");
    assert_eq!(request.sampling.max_tokens, Some(5));
    assert!(one.call_id.is_some() && one.call_id == other.call_id);
    platform.clone().shutdown().await;
}

// MCP.md: E13
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_of_the_newer_era_gets_what_it_needs_before_it_answers() {
    let somebody = Somebody::default();
    let platform = offering(somebody.clone(), &["modern"]).await;
    let said: Value =
        serde_json::from_str(&text(&platform, "modern__ask", json!({})).await).unwrap();
    assert_eq!(said, json!([{ "action": "accept", "content": { "name": "n" } }, true]));
    assert_eq!(somebody.asked.lock().unwrap()[0].0.plugin, "modern");
    // Also for what it makes a task of.
    let said: Value =
        serde_json::from_str(&text(&platform, "modern__slow", json!({})).await).unwrap();
    assert_eq!(said, json!({ "who": { "action": "accept", "content": { "name": "n" } } }));
    assert_eq!(somebody.asked.lock().unwrap().len(), 2);
    let refused = crate::support::failure(&platform, "modern__sample", json!({})).await;
    assert!(refused.to_string().contains("not that"), "{refused}");
    echoes(&platform, "modern").await;
    platform.clone().shutdown().await;
}

/// Somebody who thinks, until nobody wants to know.
#[derive(Clone, Default)]
struct UnansweringUser {
    thinks: Arc<Notify>,
    /// Whether the thought was broken off.
    disturbed: Arc<Mutex<Option<bool>>>,
}

#[async_trait]
impl ClientFeatures for UnansweringUser {
    fn offers(&self) -> Offers {
        Offers { forms: true, ..Offers::default() }
    }

    async fn ask(&self, _: &AskingPlugin, _: FormRequest) -> Result<FormAnswer, Error> {
        struct SetOnDrop(Arc<Mutex<Option<bool>>>);
        impl Drop for SetOnDrop {
            fn drop(&mut self) {
                *self.0.lock().unwrap() = Some(true);
            }
        }
        let _thought = SetOnDrop(self.disturbed.clone());
        self.thinks.notify_one();
        std::future::pending().await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_server_does_not_want_to_know_any_more_is_not_asked_any_more() {
    let thinker = UnansweringUser::default();
    let platform = offering(thinker.clone(), &["fickle"]).await;
    let gate = platform.project.path("gate");
    let asked = async {
        thinker.thinks.notified().await;
        std::fs::write(&gate, "").unwrap();
    };
    let (said, ()) = tokio::join!(text(&platform, "fickle__rude", json!({ "text": gate })), asked);
    assert_eq!(said, "rude");
    eventually("it is not asked any more", || thinker.disturbed.lock().unwrap().is_some()).await;
    echoes(&platform, "fickle").await;
    platform.clone().shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_who_gives_up_ends_what_the_server_asks_for_the_call() {
    let thinker = UnansweringUser::default();
    let platform = offering(thinker.clone(), &["modern"]).await;
    let timeout = Duration::from_millis(500);
    let given_up = crate::support::call_within(&platform, "modern__ask", json!({}), timeout).await;
    assert!(given_up.unwrap_err().to_string().contains("no answer within"));
    eventually("it is not asked any more", || thinker.disturbed.lock().unwrap().is_some()).await;
    echoes(&platform, "modern").await;
    platform.clone().shutdown().await;
}

/// Somebody who takes as long as this to answer.
#[derive(Clone)]
struct Slow(Duration);

#[async_trait]
impl ClientFeatures for Slow {
    fn offers(&self) -> Offers {
        Offers { forms: true, ..Offers::default() }
    }

    async fn ask(&self, _: &AskingPlugin, _: FormRequest) -> Result<FormAnswer, Error> {
        tokio::time::sleep(self.0).await;
        Ok(FormAnswer::Accepted(Default::default()))
    }
}

/// How long a user thinks is not the server's doing, nor that of the script which calls it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_has_its_time_however_long_the_answer_to_a_form_takes() {
    let wall = Duration::from_secs(4);
    let servers = configuration(&["asks", "asks-for", "modern"], "");
    let script = "{ path = \"asker.rhai\", capabilities = { tools = [\"*__rude\"] } }";
    let project = Project::new(&format!(
        "{servers}\nlimits.wall = \"{wall:?}\"\nplugins.scripts = [{script}]"
    ));
    let script = "tool(#{ name: \"ask\", description: \"d\" }, |a| {
        let form = `[[\"elicitation/create\", { \"message\": \"m\" }]]`;
        call_tool(\"asks-for__rude\", #{ text: form })
    });";
    project.write("asker.rhai", script);
    let builder = project.builder().client_features(Slow(wall + wall / 2)).approver(GrantAll);
    let platform = RunningPlatform::new(builder.build().await.unwrap(), project);
    let calls = ["asker__ask", "asks__rude", "modern__ask"].map(async |tool| {
        let said = text(&platform, tool, json!({})).await;
        assert!(said.contains("accept"), "{tool}: {said}");
    });
    futures::future::join_all(calls).await;
    // But its caller's time is what it is.
    let given_up = crate::support::call_within(&platform, "asks__rude", json!({}), wall / 4).await;
    assert!(given_up.unwrap_err().to_string().contains("no answer within"));
    platform.clone().shutdown().await;
}

// MCP.md: G5
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_that_a_server_wants_opened_first_are_named_and_nobody_is_asked() {
    let somebody = Somebody { opens_pages: true, ..Somebody::default() };
    let platform = offering(somebody.clone(), &["page-first"]).await;
    let error = crate::support::failure(&platform, "page-first__rude", json!({})).await.to_string();
    assert!(error.contains("the user has to do something first: not yet: "), "{error}");
    for url in ["https://example.com/one", "https://example.com/two"] {
        assert!(error.contains(url), "{error}");
    }
    assert!(somebody.asked.lock().unwrap().is_empty());
    echoes(&platform, "page-first").await;
    assert_eq!(platform.server("page-first").unwrap().starts, 1);
    platform.clone().shutdown().await;
}
