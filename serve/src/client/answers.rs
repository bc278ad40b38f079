//! Requests of the server's to a legacy client, and its answers.

use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenon_host::types::Error;
use tokio::sync::oneshot;

use super::Outlet;
use crate::lock;
use crate::protocol::message::RequestId;
use crate::protocol::write;

type Answer = Result<Value, String>;

/// The bounds of questions that wait for legacy clients, of all of them together.
#[derive(Debug)]
pub(crate) struct QuestionLimits {
    open: AtomicUsize,
    most: usize,
    time: Duration,
}

impl QuestionLimits {
    /// So many questions, each for so long.
    pub(crate) fn new(most: usize, time: Duration) -> Arc<Self> {
        Arc::new(Self { open: AtomicUsize::new(0), most, time })
    }

    fn begin(self: &Arc<Self>) -> Option<QuestionPermit> {
        let more = |open: usize| (open < self.most).then_some(open + 1);
        self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(QuestionPermit(self.clone()))
    }
}

/// A question that counts as long as it waits.
struct QuestionPermit(Arc<QuestionLimits>);

impl Drop for QuestionPermit {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a client was asked and has not answered. Dropping a question withdraws it.
#[derive(Debug)]
pub(crate) struct PendingAnswers {
    limits: Arc<QuestionLimits>,
    next: AtomicU64,
    /// Nothing once the client is gone.
    waiting: Mutex<Option<HashMap<u64, oneshot::Sender<Answer>>>>,
}

/// The most questions that wait for one client.
const MAX_WAITING: usize = 64;

/// Forgets a question that nobody waits for any more, and says so to the client.
struct QuestionGuard<'a> {
    pending: &'a PendingAnswers,
    outlet: &'a Outlet,
    id: u64,
}

impl Drop for QuestionGuard<'_> {
    fn drop(&mut self) {
        let waiting = lock(&self.pending.waiting).as_mut().and_then(|all| all.remove(&self.id));
        if waiting.is_some() {
            let params = format!(r#"{{"requestId":{}}}"#, self.id);
            self.outlet.tell(write::notification("notifications/cancelled", Some(&params)));
        }
    }
}

impl PendingAnswers {
    /// None so far.
    pub(crate) fn new(limits: Arc<QuestionLimits>) -> Self {
        Self { limits, next: AtomicU64::new(0), waiting: Mutex::new(Some(HashMap::new())) }
    }

    /// Asks the client, and waits for its answer.
    pub(crate) async fn ask(
        &self,
        outlet: &Outlet,
        method: &str,
        params: &Value,
    ) -> Result<Value, Error> {
        let _open = self.limits.begin().ok_or_else(|| {
            let most = self.limits.most;
            Error::unavailable(format!("{most} questions wait for answers of clients already"))
        })?;
        let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, answer) = oneshot::channel();
        let gone = || Error::cancelled("the client is gone");
        {
            let mut waiting = lock(&self.waiting);
            let waiting = waiting.as_mut().ok_or_else(gone)?;
            if waiting.len() >= MAX_WAITING {
                let message = format!("the client has {MAX_WAITING} questions to answer already");
                return Err(Error::unavailable(message));
            }
            waiting.insert(id, sender);
        }
        let _waiting = QuestionGuard { pending: self, outlet, id };
        if !outlet.send(write::request(id, method, params)).await {
            return Err(gone());
        }
        let answer = tokio::time::timeout(self.limits.time, answer).await.map_err(|_| {
            let seconds = self.limits.time.as_secs();
            Error::timeout(format!("the client has not answered within {seconds} s"))
        })?;
        let answer = answer.map_err(|_| gone())?;
        answer.map_err(|words| Error::denied(format!("the client refuses: {words}")))
    }

    /// The client is gone: nobody answers any more, neither what it was asked nor what it would be.
    pub(crate) fn close(&self) {
        *lock(&self.waiting) = None;
    }

    /// Takes a response of the client's.
    pub(crate) fn receive(&self, id: &RequestId, answer: Result<&RawValue, String>) {
        let Some(id) = id.number() else { return };
        let read = |result: &RawValue| serde_json::from_str(result.get());
        self.answer(id, answer.and_then(|result| read(result).map_err(|error| error.to_string())));
    }

    /// The client answers. One that nobody waits for is ignored.
    fn answer(&self, id: u64, answer: Answer) {
        if let Some(sender) = lock(&self.waiting).as_mut().and_then(|all| all.remove(&id)) {
            let _ = sender.send(answer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pending() -> PendingAnswers {
        PendingAnswers::new(QuestionLimits::new(2, Duration::from_secs(60)))
    }

    #[tokio::test]
    async fn an_answer_finds_its_question() {
        let pending = pending();
        let (outlet, mut sent) = Outlet::new(8);
        let (one, two) = (json!({ "n": 1 }), json!({ "n": 2 }));
        let answers = async {
            for _ in 0..2 {
                let asked: Value = serde_json::from_str(&sent.recv().await.unwrap()).unwrap();
                pending.answer(99, Ok(json!("nobody's")));
                let n = asked["params"]["n"].clone();
                pending.answer(asked["id"].as_u64().unwrap(), Ok(n));
            }
        };
        let (one, two, ()) = tokio::join!(
            pending.ask(&outlet, "a/b", &one),
            pending.ask(&outlet, "a/b", &two),
            answers
        );
        assert_eq!((one.unwrap(), two.unwrap()), (json!(1), json!(2)));
    }

    #[tokio::test]
    async fn a_question_that_is_given_up_is_withdrawn() {
        let pending = pending();
        let (outlet, mut sent) = Outlet::new(8);
        {
            let params = json!({});
            let mut asking = Box::pin(pending.ask(&outlet, "a/b", &params));
            assert!(futures::poll!(&mut asking).is_pending());
        }
        let asked: Value = serde_json::from_str(&sent.recv().await.unwrap()).unwrap();
        let cancelled: Value = serde_json::from_str(&sent.recv().await.unwrap()).unwrap();
        assert_eq!(cancelled["method"], "notifications/cancelled");
        assert_eq!(cancelled["params"]["requestId"], asked["id"]);
        assert!(lock(&pending.waiting).as_ref().unwrap().is_empty());
    }

    #[tokio::test]
    async fn what_cannot_be_asked_is_an_error() {
        let pending = pending();
        let (outlet, sent) = Outlet::new(8);
        drop(sent);
        let error = pending.ask(&outlet, "a/b", &json!({})).await.unwrap_err();
        assert_eq!(error.message, "the client is gone");
        let (outlet, mut sent) = Outlet::new(8);
        let refuse = async {
            let asked: Value = serde_json::from_str(&sent.recv().await.unwrap()).unwrap();
            pending.answer(asked["id"].as_u64().unwrap(), Err("no (-1)".into()));
        };
        let params = json!({});
        let (error, ()) = tokio::join!(pending.ask(&outlet, "a/b", &params), refuse);
        assert_eq!(error.unwrap_err().message, "the client refuses: no (-1)");
        let close = async {
            sent.recv().await.unwrap();
            pending.close();
        };
        let (error, ()) = tokio::join!(pending.ask(&outlet, "a/b", &params), close);
        assert_eq!(error.unwrap_err().message, "the client is gone");
        assert!(pending.ask(&outlet, "a/b", &params).await.is_err());
    }
    #[tokio::test(start_paused = true)]
    async fn questions_of_all_clients_together_are_bounded() {
        let limits = QuestionLimits::new(2, Duration::from_secs(60));
        let (one, other) = (PendingAnswers::new(limits.clone()), PendingAnswers::new(limits));
        let (outlet, _sent) = Outlet::new(8);
        let params = json!({});
        let ask = async |pending: &PendingAnswers| pending.ask(&outlet, "a/b", &params).await;
        let refused = async {
            tokio::task::yield_now().await;
            ask(&other).await.unwrap_err().message
        };
        let (first, second, third) = tokio::join!(ask(&one), ask(&other), refused);
        assert_eq!(third, "2 questions wait for answers of clients already");
        // Nobody has answered the others, and they make room.
        let late = "the client has not answered within 60 s";
        assert_eq!([first, second].map(|asked| asked.unwrap_err().message), [late, late]);
        assert_eq!(ask(&one).await.unwrap_err().message, late);
    }
}
