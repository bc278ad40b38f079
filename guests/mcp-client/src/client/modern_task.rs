//! Calls that the server makes tasks of, in the newer era: it answers that there is a task, and is
//! asked again and again how it stands. What it needs meanwhile is sent to it.

use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::server_requests::ServerRequestDecision;
use super::{
    Client, Error, InFlight, OperationId, Outcome, PendingServerRequest, Purpose, rpc_error,
};
use crate::message::{JsonSlice, read_error};
use crate::raw_json::{Json, Members};

/// How long to wait before a server is asked again that does not say, in milliseconds.
const DEFAULT_POLL_MILLIS: u64 = 1_000;

/// The least of it, whatever a server says.
const MIN_POLL_MILLIS: u64 = 50;

/// The most that a server can ask for one task, one after the other.
const MAX_INPUT_REQUESTS: usize = 64;

/// A task of the server's.
#[derive(Debug)]
pub(super) struct PolledTask {
    pub(super) task: String,
    /// What the server has asked for it, which it repeats until it has the answer.
    asked: BTreeSet<String>,
    /// How long to wait before it is asked again, in milliseconds.
    interval: u64,
}

/// What a server says of a task.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Task<'a> {
    #[serde(borrow)]
    task_id: Cow<'a, str>,
    #[serde(borrow, default)]
    status: Cow<'a, str>,
    #[serde(default)]
    status_message: Option<String>,
    #[serde(default)]
    poll_interval_ms: Option<f64>,
    #[serde(borrow, default)]
    input_requests: Option<BTreeMap<String, InputRequest<'a>>>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// What a server needs, by a key of its own.
#[derive(Deserialize)]
struct InputRequest<'a> {
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

/// How a task stands.
enum TaskPoll {
    Over(Result<JsonSlice, Error>),
    Working { interval: Option<u64>, needs: Vec<(String, String, String)> },
}

impl Client {
    /// A call was answered with a task.
    pub(super) fn task_made(&mut self, operation: OperationId, deadline: u64, made: &JsonSlice) {
        match serde_json::from_str::<Task<'_>>(made.get()) {
            Ok(task) => {
                let interval = interval(&task).unwrap_or(DEFAULT_POLL_MILLIS);
                let task = task.task_id.into_owned();
                let polled = PolledTask { task, asked: BTreeSet::new(), interval };
                self.poll_later(operation, deadline, polled);
            }
            Err(error) => self.finish(operation, Err(invalid(&error.to_string()))),
        }
    }

    /// Waits before a task is asked about again. Under a number of its own the waiting can be given
    /// up like any request.
    fn poll_later(&mut self, operation: OperationId, deadline: u64, polled: PolledTask) {
        self.ids += 1;
        let id = self.ids;
        self.polls.insert((self.now.saturating_add(polled.interval), id));
        let purpose = Purpose::Task(Box::new(polled));
        let waiting = InFlight {
            operation,
            deadline,
            method: "tasks/get",
            subject: None,
            progressed: None,
            purpose,
        };
        self.wait_for(id, waiting);
    }

    /// Asks about the tasks whose time has come.
    pub(super) fn poll(&mut self) {
        while let Some(&(due, id)) = self.polls.first()
            && due <= self.now
        {
            self.polls.pop_first();
            let Some(InFlight { operation, deadline, purpose: Purpose::Task(polled), .. }) =
                self.forget(id)
            else {
                continue;
            };
            let (params, task) = (of_task(&polled.task), polled.task.clone());
            let purpose = Purpose::TaskStatus(polled);
            self.send_request(
                operation,
                "tasks/get",
                &params,
                &Members::new(),
                false,
                deadline,
                purpose,
            );
            self.name_last(Some(task));
        }
    }

    /// Goes on from what the server says of a task.
    pub(super) fn task_told(
        &mut self,
        operation: OperationId,
        deadline: u64,
        mut polled: PolledTask,
        result: Result<JsonSlice, Error>,
    ) {
        let (interval, needs) = match result.and_then(standing) {
            Ok(TaskPoll::Over(result)) => {
                self.forget_asks_of(&polled.task);
                return self.finish(operation, result.map(Outcome::Result));
            }
            Ok(TaskPoll::Working { interval, needs }) => (interval, needs),
            // It is there, and was not to be reached.
            Err(Error::Unavailable { retry_after, .. }) => (retry_after, Vec::new()),
            Err(error) => {
                self.forget_asks_of(&polled.task);
                // It is not what the caller passed that is invalid then.
                let error = match error {
                    Error::Rpc { code: -32602, message, .. } => {
                        Error::Protocol(format!("the server has lost its task: {message}"))
                    }
                    other => other,
                };
                return self.finish(operation, Err(error));
            }
        };
        polled.interval = interval.unwrap_or(polled.interval).max(MIN_POLL_MILLIS);
        let mut answers = Vec::new();
        for (key, method, params) in needs {
            if polled.asked.contains(&key) {
                continue;
            }
            if polled.asked.len() >= MAX_INPUT_REQUESTS {
                return self.fail_task(operation, &polled.task, "the server asks for ever more");
            }
            polled.asked.insert(key.clone());
            match self.respond(&method, &params) {
                ServerRequestDecision::Answer(answer) => answers.push((key, answer)),
                ServerRequestDecision::Ask(kind) => {
                    let asked =
                        PendingServerRequest::OfTask { operation, task: polled.task.clone(), key };
                    self.ask(kind, &params, asked, Some(operation));
                }
                ServerRequestDecision::Refusal(..) => {
                    let problem = format!("the server asks for {method} before it answers");
                    return self.fail_task(operation, &polled.task, &problem);
                }
            }
        }
        if !answers.is_empty() {
            self.update_task(&polled.task, answers);
        }
        self.poll_later(operation, deadline, polled);
    }

    /// Something that a task needs was answered.
    pub(super) fn task_input(
        &mut self,
        operation: OperationId,
        task: &str,
        key: String,
        result: Result<Json, (i64, String)>,
    ) {
        match result {
            Ok(answer) => self.update_task(task, vec![(key, answer)]),
            Err((_, message)) => {
                let request =
                    self.in_flight.iter().find(|(_, request)| request.operation == operation);
                if let Some((id, _)) = request {
                    self.forget(*id);
                    self.fail_task(operation, task, &message);
                }
            }
        }
    }

    /// Does without a task that needs what it does not get.
    fn fail_task(&mut self, operation: OperationId, task: &str, problem: &str) {
        self.forget_asks_of(task);
        self.cancel_task(task);
        self.finish(operation, Err(Error::Needs(problem.into())));
    }

    /// What a task needs is not wanted any more.
    pub(super) fn forget_asks_of(&mut self, task: &str) {
        self.withdraw_all(
            |asked| matches!(asked, PendingServerRequest::OfTask { task: of, .. } if of == task),
        );
    }

    fn update_task(&mut self, task: &str, answers: Vec<(String, Json)>) {
        let mut params = of_task(task);
        params.push("inputResponses", Json::from(&answers.into_iter().collect::<Members>()));
        self.send_aside("tasks/update", &params);
        self.name_last(Some(task.into()));
    }
}

/// The parameter that names a task.
pub(super) fn of_task(task: &str) -> Members {
    Members::new().with("taskId", task)
}

fn interval(task: &Task<'_>) -> Option<u64> {
    // A float is cut to what there is of numbers.
    task.poll_interval_ms.map(|interval| (interval as u64).max(MIN_POLL_MILLIS))
}

fn invalid(problem: &str) -> Error {
    Error::Protocol(format!("what the server says of a task is invalid: {problem}"))
}

/// Reads how a task stands.
fn standing(told: JsonSlice) -> Result<TaskPoll, Error> {
    let task: Task<'_> =
        serde_json::from_str(told.get()).map_err(|error| invalid(&error.to_string()))?;
    let why = || task.status_message.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    Ok(match (&*task.status, task.result, task.error) {
        ("working" | "input_required", ..) => {
            let interval = interval(&task);
            let needs = task.input_requests.into_iter().flatten().map(
                |(key, InputRequest { method, params })| {
                    (key, method.into_owned(), params.map_or("{}", RawValue::get).to_string())
                },
            );
            TaskPoll::Working { interval, needs: needs.collect() }
        }
        ("completed", Some(result), _) => {
            let place = told.place_of(result.get());
            TaskPoll::Over(Ok(told.part(place)))
        }
        ("failed", _, Some(error)) => TaskPoll::Over(Err(rpc_error(read_error(error.get())))),
        ("cancelled", ..) => {
            let problem = format!("the server has cancelled the task{}", why());
            TaskPoll::Over(Err(Error::Protocol(problem)))
        }
        (status, ..) => return Err(invalid(&format!("it is {status:?}{}", why()))),
    })
}
