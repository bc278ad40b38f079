//! Tools that the server does as tasks, in the older era: it answers at once that it has begun, and
//! the result is asked for.

use serde::Deserialize;

use super::modern_task::of_task;
use super::{Client, Error, OperationId, Purpose};
use crate::message::JsonSlice;
use crate::raw_json::Members;

impl Client {
    pub(super) fn task_begun(
        &mut self,
        operation: OperationId,
        deadline: u64,
        result: Result<JsonSlice, Error>,
    ) {
        #[derive(Deserialize)]
        struct Created {
            task: CreatedTask,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct CreatedTask {
            task_id: String,
        }
        let created = result.and_then(|payload| {
            serde_json::from_str(payload.get()).map_err(|error| {
                Error::Protocol(format!("the server was to begin a task, and did not: {error}"))
            })
        });
        let Created { task: CreatedTask { task_id: task } } = match created {
            Ok(created) => created,
            Err(error) => return self.finish(operation, Err(error)),
        };
        // It is answered when the task is over.
        let params = of_task(&task);
        let purpose = Purpose::TaskResult { task };
        self.send_request(
            operation,
            "tasks/result",
            &params,
            &Members::new(),
            false,
            deadline,
            purpose,
        );
    }

    pub(super) fn cancel_task(&mut self, task: &str) {
        self.send_aside("tasks/cancel", &of_task(task));
        self.name_last(Some(task.into()));
    }
}
