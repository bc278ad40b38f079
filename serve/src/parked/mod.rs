//! Calls that wait for their client: a modern client answers a question with another request, and until then the call
//! rests where it is. Nothing that it did is done again.
//!
//! What the client gets for a waiting call is sealed: it is good for the same client, the same request and once.

mod directory;

pub(crate) use directory::ParkedCallDirectory;

use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::client::{Question, RequestClient};
use crate::lock;
use crate::protocol::error::{INTERNAL, RpcError};
use crate::seal::{SealError, SealId, Sealer};
use directory::ParkedCallLocation;

/// How long calls may take that get no answers any more, when the server ends.
const ENDING_TIME: Duration = Duration::from_secs(2);

/// How long concurrent questions of one call wait for each other, so that the client gets them together. Nothing for
/// who answers them, and longer than a busy machine keeps a thread that asks several from running.
const GATHERING_TIME: Duration = Duration::from_millis(50);

/// The most questions of one call at a time.
const MAX_QUESTIONS: usize = 16;

/// The bounds of calls that wait.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ParkingLimits {
    /// The most calls.
    pub(crate) calls: usize,
    /// The most bytes of their questions, together.
    pub(crate) bytes: usize,
    /// How long a call waits.
    pub(crate) time: Duration,
}

/// A call that has begun.
pub(crate) struct RunningCall {
    pub(crate) work: BoxFuture<'static, Result<String, RpcError>>,
    pub(crate) client: Arc<RequestClient>,
    pub(crate) questions: mpsc::UnboundedReceiver<Question>,
    /// What the client was asked and has not answered.
    pub(crate) asked: BTreeMap<String, Question>,
}

/// How far a call has come.
pub(crate) enum Progressed {
    /// It is over.
    Done(Result<String, RpcError>),
    /// It waits for answers.
    Waits(RunningCall),
}

impl RunningCall {
    pub(crate) fn new(
        work: BoxFuture<'static, Result<String, RpcError>>,
        client: Arc<RequestClient>,
        questions: mpsc::UnboundedReceiver<Question>,
    ) -> Self {
        Self { work, client, questions, asked: BTreeMap::new() }
    }

    /// Gives the call what the client answers. What is no answer to a question may be to one that comes.
    pub(crate) fn take_answers(&mut self, answers: Map<String, Value>) {
        let mut early = Map::new();
        for (key, answer) in answers {
            match self.asked.remove(&key) {
                // The call is given up if nobody takes it.
                Some(question) => drop(question.answer.send(answer)),
                None => drop(early.insert(key, answer)),
            }
        }
        self.client.add_early(early);
    }

    /// Goes on without answers until the call is over.
    pub(crate) async fn end(self) -> Result<String, RpcError> {
        let Self { work, client: _, questions, asked } = self;
        drop((questions, asked));
        work.await
    }

    /// Goes on until the call is over or waits for answers.
    pub(crate) async fn go_on(mut self) -> Progressed {
        if !self.asked.is_empty() {
            return Progressed::Waits(self);
        }
        let question = tokio::select! {
            biased;
            done = &mut self.work => return Progressed::Done(done),
            question = self.questions.recv() => question,
        };
        match question {
            Some(question) => self.note(question),
            // The call has let go of its client, so it asks nothing any more.
            None => return Progressed::Done(self.work.await),
        }
        while self.asked.len() < MAX_QUESTIONS {
            tokio::select! {
                biased;
                done = &mut self.work => return Progressed::Done(done),
                question = self.questions.recv() => match question {
                    Some(question) => self.note(question),
                    None => break,
                },
                () = tokio::time::sleep(GATHERING_TIME) => break,
            }
        }
        Progressed::Waits(self)
    }

    fn note(&mut self, mut question: Question) {
        let mut count = 1;
        let key = question.key.clone();
        while self.asked.contains_key(&question.key) {
            count += 1;
            question.key = format!("{key}-{count}");
        }
        self.asked.insert(question.key.clone(), question);
    }

    /// The result that asks the client.
    fn questions(&self) -> Value {
        let asked = self.asked.iter().map(|(key, Question { method, params, .. })| {
            (key.clone(), json!({ "method": method, "params": params }))
        });
        Value::Object(asked.collect())
    }
}

struct Parked {
    call: RunningCall,
    bytes: usize,
    /// Ends the wait.
    timer: AbortHandle,
}

/// The calls that wait.
pub(crate) struct ParkingLot {
    handles: Arc<ParkedCallDirectory>,
    limits: ParkingLimits,
    calls: Mutex<HashMap<SealId, Parked>>,
}

impl ParkingLot {
    pub(crate) fn new(handles: Arc<ParkedCallDirectory>, limits: ParkingLimits) -> Arc<Self> {
        Arc::new(Self { handles, limits, calls: Mutex::default() })
    }

    async fn seal(&self) -> Result<Arc<Sealer>, RpcError> {
        self.handles.seal().await.ok_or_else(no_random_numbers)
    }

    fn calls(&self) -> std::sync::MutexGuard<'_, HashMap<SealId, Parked>> {
        lock(&self.calls)
    }

    /// Lets a call wait. Gives the result for its client, a JSON object. Where too many wait already, the call goes on as one whose
    /// client answers nothing: what has to be approved waits for somebody else then.
    pub(crate) async fn park(
        self: &Arc<Self>,
        call: RunningCall,
        bound: &[&[u8]],
    ) -> Result<String, RpcError> {
        let questions = call.questions().to_string();
        let seal = self.seal().await?;
        let id = seal.id().ok_or_else(no_random_numbers)?;
        let until = SystemTime::now() + self.limits.time;
        if let Err(call) = self.insert(id, call, questions.len()) {
            return call.end().await;
        }
        // Nobody has the state of a call whose client leaves now.
        let mut parking = ParkingGuard { lot: self, id: Some(id) };
        self.handles.note(id, until).await;
        parking.id = None;
        let state = seal.seal(id, until, bound);
        Ok(format!(
            r#"{{"resultType":"input_required","inputRequests":{questions},"requestState":{}}}"#,
            json!(state)
        ))
    }

    /// Keeps a call, as long as it may wait. Gives it back where there is no room.
    fn insert(
        self: &Arc<Self>,
        id: SealId,
        call: RunningCall,
        bytes: usize,
    ) -> Result<(), Box<RunningCall>> {
        let mut calls = self.calls();
        let all = calls.values().map(|parked| parked.bytes).sum::<usize>() + bytes;
        if calls.len() >= self.limits.calls || all > self.limits.bytes {
            return Err(call.into());
        }
        let (lot, time) = (Arc::downgrade(self), self.limits.time);
        let timer = tokio::spawn(async move {
            tokio::time::sleep(time).await;
            let parked = lot.upgrade().and_then(|lot| lot.calls().remove(&id));
            if let Some(parked) = parked {
                let _ = parked.call.end().await;
            }
        });
        calls.insert(id, Parked { call, bytes, timer: timer.abort_handle() });
        Ok(())
    }

    /// Takes a call back that waits, by the state that its client was given.
    ///
    /// # Errors
    ///
    /// Says what is known of what was done.
    pub(crate) async fn take(&self, state: &str, bound: &[&[u8]]) -> Result<RunningCall, RpcError> {
        let id = self.handles.open(state, bound).await.map_err(|error| match error {
            SealError::Forged => RpcError::invalid_params(
                "`requestState` is not one of this server's for this request: it was changed, belongs to another \
                 request or client, or this server shares no store with the one that gave it. Nothing was done now; what the call had \
                 done before it asked stays done",
            ),
            SealError::Expired => lost(),
        })?;
        let parked = self.calls().remove(&id);
        let Some(parked) = parked else {
            return Err(match self.handles.find(id).await {
                ParkedCallLocation::Unknown => lost(),
                ParkedCallLocation::OtherServer => RpcError::invalid_params(
                    "the call that `requestState` is of waits at another server of the same store, and has to be \
                     answered there. Nothing was done now",
                ),
                ParkedCallLocation::EndedServer => RpcError::invalid_params(
                    "the server that held this call has stopped, as far as its store knows, and the call ended with it. \
                     Nothing was done now; what the call had done before it asked stays done",
                ),
            });
        };
        parked.timer.abort();
        self.handles.forget(id);
        Ok(parked.call)
    }

    /// How many calls wait.
    pub(crate) fn count(&self) -> usize {
        self.calls().len()
    }

    /// Ends all that wait: they get no answers any more. What each comes to then, such as a run that pauses, is done when this
    /// returns, unless it takes too long. Their handles stay: clients learn at other servers that this one has stopped.
    pub(crate) async fn end(&self) {
        let calls: Vec<Parked> = self.calls().drain().map(|(_, parked)| parked).collect();
        let ends = calls.into_iter().map(|parked| {
            parked.timer.abort();
            parked.call.end()
        });
        let _ = tokio::time::timeout(ENDING_TIME, futures::future::join_all(ends)).await;
    }
}

/// A call that is being parked. Dropping this takes it back, unless its client gets its state.
struct ParkingGuard<'a> {
    lot: &'a ParkingLot,
    id: Option<SealId>,
}

impl Drop for ParkingGuard<'_> {
    fn drop(&mut self) {
        if let Some(parked) = self.id.and_then(|id| self.lot.calls().remove(&id)) {
            parked.timer.abort();
        }
    }
}

fn no_random_numbers() -> RpcError {
    RpcError::new(INTERNAL, "the system has no random numbers")
}

fn lost() -> RpcError {
    RpcError::invalid_params(
        "the call that `requestState` is of waits no longer: it was answered already, or has waited too long. Nothing \
         was done now; what the call had done before it asked stays done",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Outlet;
    use crate::protocol::capabilities::ClientCapabilities;
    use tenon_host::services::{AskingPlugin, ClientFeatures};
    use tenon_host::types::{FormAnswer, FormRequest};
    use tenon_store::{LazyStore, SqliteStore, Store};

    const LIMITS: ParkingLimits =
        ParkingLimits { calls: 2, bytes: 10_000, time: Duration::from_secs(60) };

    fn new_lot(limits: ParkingLimits) -> Arc<ParkingLot> {
        ParkingLot::new(ParkedCallDirectory::new(Arc::default()), limits)
    }

    /// The state that a client is given for a call.
    async fn park(lot: &Arc<ParkingLot>, bound: &[&[u8]]) -> String {
        let result = lot.park(waits(call(&["a"])).await, bound).await.unwrap();
        let result: Value = serde_json::from_str(&result).unwrap();
        result["requestState"].as_str().unwrap().to_string()
    }

    async fn refusal(lot: &ParkingLot, state: &str, bound: &[&[u8]]) -> String {
        lot.take(state, bound).await.err().expect("it is refused").message.to_string()
    }

    /// A call that asks its user these questions at once, and answers with what they come to.
    fn call(questions: &'static [&'static str]) -> RunningCall {
        let (outlet, _) = Outlet::new(1);
        let capabilities = ClientCapabilities { forms: true, ..Default::default() };
        let (client, receiver) =
            RequestClient::modern(capabilities, outlet, None, None, Map::new());
        let client = Arc::new(client);
        let asked = client.clone();
        let work = async move {
            let ask = |question: &&'static str| {
                let client = asked.clone();
                let form = FormRequest::new(*question, json!({}));
                let mut requester = AskingPlugin::default();
                requester.plugin = "asker".into();
                async move { client.ask(&requester, form).await }
            };
            let answers = futures::future::join_all(questions.iter().map(ask)).await;
            let accepted =
                answers.into_iter().filter(|answer| matches!(answer, Ok(FormAnswer::Accepted(_))));
            Ok(format!(r#"{{"accepted":{}}}"#, accepted.count()))
        };
        RunningCall::new(Box::pin(work), client, receiver)
    }

    async fn waits(call: RunningCall) -> RunningCall {
        match call.go_on().await {
            Progressed::Waits(call) => call,
            Progressed::Done(done) => panic!("{done:?}"),
        }
    }

    async fn done(call: RunningCall) -> String {
        match call.go_on().await {
            Progressed::Done(done) => done.unwrap(),
            Progressed::Waits(_) => panic!("it waits"),
        }
    }

    fn accept(keys: &[&str]) -> Map<String, Value> {
        keys.iter().map(|key| (key.to_string(), json!({ "action": "accept" }))).collect()
    }

    #[tokio::test]
    async fn a_call_waits_for_all_that_it_asked_and_goes_on_once() {
        let lot = new_lot(LIMITS);
        let bound: &[&[u8]] = &[b"ada"];
        let result = lot.park(waits(call(&["a", "b"])).await, bound).await.unwrap();
        let result: Value = serde_json::from_str(&result).unwrap();
        assert_eq!(result["resultType"], "input_required");
        let questions = result["inputRequests"].as_object().unwrap();
        assert_eq!(questions.keys().collect::<Vec<_>>(), ["question-1", "question-2"]);
        assert_eq!(questions["question-2"]["params"]["message"], r#"The plugin "asker" asks: b"#);
        let state = result["requestState"].as_str().unwrap();
        assert!(refusal(&lot, state, &[b"bob"]).await.contains("not one of this server's"));
        let mut resumed = lot.take(state, bound).await.unwrap();
        assert!(refusal(&lot, state, bound).await.contains("answered already"));
        // One answer is not enough: it waits for the other.
        resumed.take_answers(accept(&["question-1", "unknown"]));
        let mut resumed = waits(resumed).await;
        assert_eq!(resumed.asked.keys().collect::<Vec<_>>(), ["question-2"]);
        resumed.take_answers(accept(&["question-2"]));
        assert_eq!(done(resumed).await, r#"{"accepted":2}"#);
        assert_eq!(lot.count(), 0);
    }

    #[tokio::test]
    async fn what_waits_is_bounded() {
        let lot = new_lot(LIMITS);
        for _ in 0..2 {
            park(&lot, &[]).await;
        }
        // It ends without an answer.
        let unanswered = lot.park(waits(call(&["a"])).await, &[]).await.unwrap();
        assert_eq!(unanswered, r#"{"accepted":0}"#);
        lot.end().await;
        assert_eq!(lot.count(), 0);
        let small = new_lot(ParkingLimits { bytes: 10, ..LIMITS });
        assert_eq!(small.park(waits(call(&["a"])).await, &[]).await.unwrap(), unanswered);
        assert_eq!(small.count(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_does_not_wait_for_ever() {
        let lot = new_lot(LIMITS);
        let state = park(&lot, &[]).await;
        tokio::time::sleep(LIMITS.time + Duration::from_secs(1)).await;
        assert_eq!(lot.count(), 0);
        assert!(refusal(&lot, &state, &[]).await.contains("stays done"));
    }

    #[tokio::test]
    async fn who_comes_to_another_server_of_the_store_learns_where_the_call_waits() {
        let store: Arc<dyn Store> = Arc::new(SqliteStore::in_memory().unwrap());
        let lot_of_store = || {
            let store = Arc::new(LazyStore::from(store.clone()));
            ParkingLot::new(ParkedCallDirectory::new(store), LIMITS)
        };
        let (one, other) = (lot_of_store(), lot_of_store());
        let bound: &[&[u8]] = &[b"ada"];
        let (state, second) = (park(&one, bound).await, park(&one, bound).await);
        assert!(refusal(&other, &state, bound).await.contains("waits at another server"));
        // Others learn nothing.
        assert!(refusal(&other, &state, &[b"bob"]).await.contains("not one of this server's"));
        assert!(one.take(&state, bound).await.is_ok());
        assert!(refusal(&one, &state, bound).await.contains("answered already"));
        // What is being forgotten needs the lock that says that the server lives.
        while Arc::strong_count(&one.handles) > 1 {
            tokio::task::yield_now().await;
        }
        drop(one);
        assert!(refusal(&other, &second, bound).await.contains("held this call has stopped"));
        // A store of its own has another key.
        let stranger = new_lot(LIMITS);
        assert!(refusal(&stranger, &second, bound).await.contains("not one of this server's"));
    }

    #[tokio::test]
    async fn a_call_whose_client_leaves_before_it_has_the_state_is_taken_back() {
        let lot = new_lot(LIMITS);
        assert!(lot.handles.seal().await.is_some());
        let mut parking = Box::pin(lot.park(waits(call(&["a"])).await, &[]));
        let is_parked = futures::poll!(parking.as_mut()).is_ready();
        assert_eq!(lot.count(), 1);
        drop(parking);
        // Where the store was faster than this, the client has the state.
        assert_eq!(lot.count(), usize::from(is_parked));
    }

    #[tokio::test]
    async fn calls_wait_without_a_store_that_fails() {
        let folder = std::path::PathBuf::from("/dev/null/none/state.sqlite");
        let store = Arc::new(LazyStore::new(Some(folder)));
        let lot = ParkingLot::new(ParkedCallDirectory::new(store), LIMITS);
        let state = park(&lot, &[]).await;
        assert!(lot.take(&state, &[]).await.is_ok());
        assert!(refusal(&lot, &state, &[]).await.contains("answered already"));
    }

    #[tokio::test]
    async fn a_call_without_questions_is_over_at_once() {
        assert_eq!(done(call(&[])).await, r#"{"accepted":0}"#);
    }
}
