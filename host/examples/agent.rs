//! A small agent: it plans with a language model, calls a tool, has the output evaluated, and
//! refines its goal until the evaluation passes. Plugins have their say at every hook point.
//!
//! ```console
//! $ cargo run --package tenon-host --example agent -- PROJECT 'say hello' politely
//! ```
//!
//! The project has to bring a provider named `echo_provider`, an eval named `checks` and a tool
//! `demo__echo`, each of whatever kind of plugin; `cargo xtask demo` writes one and runs this.

#![allow(clippy::print_stdout)]

use serde_json::{Map, Value, json};
use std::error::Error;
use tenon_host::services::GrantAll;
use tenon_host::types::{
    CompletionRequest, HookPoint, ModelTool, Part, ToolChoice, Verdict, mcp_json,
};
use tenon_host::{
    Call, CallKind, Caller, Event, HandlerReport, HookOutcome, Platform, Step, Subscription,
};

/// How often the goal is refined.
const ROUNDS: usize = 3;

type Failed = Box<dyn Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
#[allow(dead_code)]
async fn main() -> Result<(), Failed> {
    let mut arguments = std::env::args().skip(1);
    let (Some(project), Some(goal)) = (arguments.next(), arguments.next()) else {
        return Err("usage: agent PROJECT GOAL [WORD…]".into());
    };
    // This host trusts its plugins; others ask somebody.
    let platform = Platform::builder().project(project)?.approver(GrantAll).build().await?;
    let agent = Agent::new(platform.clone(), arguments.collect());
    let finished = agent.work(&goal).await;
    platform.shutdown().await;
    let GoalResult { answer, log } = finished?;
    for line in log {
        println!("{line}");
    }
    println!("\n{answer}");
    Ok(())
}

/// An agent with one goal.
pub struct Agent {
    platform: Platform,
    caller: Caller,
    events: Subscription,
    /// What the output must contain.
    wanted: Vec<String>,
    log: Vec<String>,
}

/// What came of a goal.
pub struct GoalResult {
    /// What the agent has to say.
    pub answer: String,
    /// A line for each hook point that was reached: who was asked there, what they did, and the
    /// context as they left it.
    pub log: Vec<String>,
}

impl Agent {
    /// An agent whose output must contain these words.
    pub fn new(platform: Platform, wanted: Vec<String>) -> Self {
        let caller = Caller {
            agent_id: Some("example".into()),
            session_id: Some("one".into()),
            ..Caller::default()
        };
        let events = platform.events();
        Self { platform, caller, events, wanted, log: Vec::new() }
    }

    /// Works on a goal until the output is good.
    ///
    /// # Errors
    ///
    /// Where a plugin stops the work, or a part of it fails.
    pub async fn work(mut self, message: &str) -> Result<GoalResult, Failed> {
        let received = json!({ "message": message, "channel": "console", "sender": "user" });
        let received = self.fire(HookPoint::MessageReceived, received).await?;
        let mut goal = text(&received["message"]);
        let mut output = String::new();
        for _ in 0..ROUNDS {
            output = self.round(&goal).await?;
            let missing = self.evaluate(&output).await?;
            if missing.is_empty() {
                let learning = json!({ "goal": goal, "worked": true });
                self.fire(HookPoint::OnLearning, json!({ "learning": learning })).await?;
                break;
            }
            let pattern = json!({ "missing": missing });
            self.fire(HookPoint::OnPattern, json!({ "pattern": pattern })).await?;
            goal = format!("{goal} {}", missing.join(" "));
        }
        let sending = json!({ "message": output, "channel": "console", "recipient": "user" });
        let sent = self.fire(HookPoint::MessageSending, sending).await?;
        Ok(GoalResult { answer: text(&sent["message"]), log: self.log })
    }

    /// Plans, and does what was planned.
    async fn round(&mut self, goal: &str) -> Result<String, Failed> {
        let context = self.fire(HookPoint::BeforePlan, json!({ "goal": goal })).await?;
        let goal = text(&context["goal"]);
        let plan = self.plan(&goal).await?;
        let context =
            self.fire(HookPoint::AfterPlan, json!({ "goal": goal, "plan": plan })).await?;
        let mut outputs = Vec::new();
        for step in context["plan"].as_array().cloned().unwrap_or_default() {
            outputs.push(self.execute(step).await?);
        }
        Ok(outputs.join("\n"))
    }

    /// Asks the model which tool to call.
    async fn plan(&self, goal: &str) -> Result<Vec<Value>, Failed> {
        let registry = self.platform.registry();
        let tool = registry.tool("demo__echo").ok_or("the project has no tool demo__echo")?.1;
        let mut request = CompletionRequest::new("echo_provider/echo", goal);
        request.tools = vec![ModelTool {
            name: tool.name.to_string(),
            description: tool.definition.description.clone(),
            input_schema: tool.definition.input_schema.clone(),
        }];
        request.tool_choice = ToolChoice::Required;
        request.sampling.seed = Some(1);
        let completion = self.platform.complete(request, &self.caller).await?;
        let steps = completion.parts.into_iter().filter_map(|part| match part {
            Part::ToolCall(call) => {
                let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
                Some(json!({ "tool": call.name, "arguments": arguments }))
            }
            _ => None,
        });
        Ok(steps.collect())
    }

    /// Does one step. The hooks around the call of its tool are the host's doing.
    async fn execute(&mut self, step: Value) -> Result<String, Failed> {
        let context = self.fire(HookPoint::BeforeExecute, json!({ "step": step })).await?;
        let step = context["step"].clone();
        let call = Call {
            name: text(&step["tool"]),
            arguments: step["arguments"].clone(),
            caller: self.caller.clone(),
        };
        let result = self.platform.call(call).await?;
        self.log_hooks();
        let form = mcp_json::tool_result(&result);
        let context = json!({ "step": step, "result": form["content"] });
        let context = self.fire(HookPoint::AfterExecute, context).await?;
        Ok(text(&context["result"][0]["text"]))
    }

    /// Has the output evaluated, and gives the words that it misses. The hooks around it are the host's
    /// doing as well.
    async fn evaluate(&mut self, output: &str) -> Result<Vec<String>, Failed> {
        if self.wanted.is_empty() {
            return Ok(Vec::new());
        }
        let (subject, options) = (json!({ "output": output }), json!({ "all": self.wanted }));
        let strategy = "checks/contains";
        let evaluation = self.platform.evaluate(strategy, subject, options, &self.caller).await?;
        self.log_hooks();
        let missing = self.wanted.iter().zip(&evaluation.findings);
        let missing = missing.filter(|(_, finding)| finding.verdict != Verdict::Pass);
        Ok(missing.map(|(word, _)| word.clone()).collect())
    }

    /// Runs the hooks of a point, and gives the context as they left it.
    async fn fire(
        &mut self,
        point: HookPoint,
        context: Value,
    ) -> Result<Map<String, Value>, Failed> {
        let report = self.platform.fire(&point, context, &self.caller).await?;
        let shown = report.context.to_string();
        self.log.push(line(&point.to_string(), &report.handlers, &shown));
        match report.outcome {
            HookOutcome::Veto { plugin, reason } => Err(format!("{plugin}: {reason}").into()),
            HookOutcome::Stopped { plugin, failure } => Err(format!("{plugin}: {failure}").into()),
            HookOutcome::Continue => Ok(report.context.as_object().cloned().unwrap_or_default()),
        }
    }

    /// Logs the hooks that the host ran around what it was asked.
    fn log_hooks(&mut self) {
        while let Some(event) = self.events.try_next() {
            let Event::Call(event) = event else { continue };
            let what = match event.kind {
                CallKind::Tool => "tool-call",
                CallKind::Evaluation => "evaluate",
                _ => continue,
            };
            let (when, handlers) = match event.step {
                Step::HooksBefore { handlers } => ("before", handlers),
                Step::HooksAfter { handlers } => ("after", handlers),
                _ => continue,
            };
            self.log.push(line(&format!("{when}-{what}"), &handlers, &event.tool));
        }
    }
}

fn line(point: &str, handlers: &[HandlerReport], context: &str) -> String {
    let asked = handlers.iter().map(|handler| format!("{} {}", handler.plugin, handler.outcome));
    format!("{point:16} [{}] {context}", asked.collect::<Vec<_>>().join(", "))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_string()
}
