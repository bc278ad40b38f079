//! The `tenon` command. Here arguments are read and handed to a verb; each verb is a file in
//! [`commands`].

mod access_recording;
#[cfg(not(fuzzing))]
mod allocator;
mod approval;
mod builder_report;
mod call_approval;
mod client;
mod client_config;
mod commands;
mod component;
mod component_build;
mod content;
mod dev;
mod error;
mod event_text;
mod fetch;
mod fetch_error;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod harness;
mod hint;
mod installed;
mod interrupt;
mod issuer;
mod keychain;
mod listed_by_plugin;
mod login;
mod metrics;
mod new_folder;
mod open;
mod output;
mod paused_run;
mod pins;
mod plugin_code;
mod plugin_in_folder;
mod progress;
mod project_folder;
mod source_snapshot;
mod stdio;
mod store;
mod templates;
mod test_cases;
mod tokens;
mod tool_arguments;
mod web;

use clap::{Parser, Subcommand};
use std::io::IsTerminal;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;
use tenon_host::types::text::one_line;
use tokio::sync::oneshot;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::fmt::format;

use error::Error;
use interrupt::Interrupts;

/// Run plugins of every kind: WebAssembly components, MCP servers and Rhai scripts.
#[derive(Parser)]
#[command(name = "tenon", version, arg_required_else_help = true, after_help = error::EXIT_CODES, max_term_width = 100)]
struct Arguments {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    verb: Verb,
}

/// What is the same for every verb.
#[derive(Clone, clap::Args)]
struct Common {
    /// Read only this configuration file
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Look for `tenon.toml` in this folder [default: this folder, or the nearest above it that has one]
    #[arg(long = "project", global = true, value_name = "DIR")]
    named_project: Option<PathBuf>,
    /// The folder of the project.
    #[arg(skip)]
    project: PathBuf,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    /// Trust the project, for this run only
    #[arg(long, global = true)]
    trust: bool,
    /// Answer the questions of plugins from this JSON file
    #[arg(long, global = true, value_name = "FILE")]
    answers: Option<PathBuf>,
    /// Load only plugins that are in the lock file, unmodified
    #[arg(long, global = true)]
    locked: bool,
}

impl Common {
    /// Whether a command is for the plugins of the project and of the user, with nothing said about them: those that a
    /// `tenon dev` of the project has.
    fn is_of_project(&self) -> bool {
        let Self { config, locked, answers: _, named_project: _, project: _, json: _, trust: _ } =
            self;
        config.is_none() && !locked
    }
}

/// Reads a time such as `500ms`. There is none in which nothing can be done.
fn duration(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(Duration::ZERO) => Err("it must be greater than zero".into()),
        Ok(duration) => Ok(duration),
        Err(error) => Err(error.to_string()),
    }
}

#[derive(Subcommand)]
enum Verb {
    Plugins(commands::plugins::Args),
    Install(commands::install::Args),
    Uninstall(commands::uninstall::Args),
    Publish(commands::publish::Args),
    Trust(commands::trust::Args),
    Approve(commands::approve::Args),
    Pending(commands::pending::Args),
    Deny(commands::deny::Args),
    Policy(commands::policy::Args),
    Revoke(commands::revoke::Args),
    Tools(commands::tools::Args),
    Call(commands::call::Args),
    Run(commands::run::Args),
    Runs(commands::runs::Args),
    Hook(commands::hook::Args),
    Eval(commands::eval::Args),
    Complete(commands::complete::Args),
    Resources(commands::resources::Args),
    Prompts(commands::prompts::Args),
    Skills(commands::skills::Args),
    History(commands::history::Args),
    State(commands::state::Args),
    Inspect(commands::inspect::Args),
    Doctor(commands::doctor::Args),
    Confine(commands::confine::Args),
    Serve(commands::serve::Args),
    Token(commands::token::Args),
    Secret(commands::secret::Args),
    Login(commands::login::Args),
    Logout(commands::logout::Args),
    Watch(commands::watch::Args),
    New(commands::new::Args),
    Dev(commands::dev::Args),
    Test(commands::test::Args),
    Build(commands::build::Args),
    Check(commands::check::Args),
    Schema(commands::schema::Args),
    Completions(commands::completions::Args),
    /// Host a plugin for a test that is written with the crate `tenon-harness`
    #[command(hide = true)]
    Harness,
}

impl Verb {
    /// What it logs, where nothing else is asked for.
    fn log_level(&self) -> tracing::Level {
        match self {
            // Its user wants to see what plugins log.
            Self::Dev(_) => tracing::Level::INFO,
            _ => tracing::Level::WARN,
        }
    }

    /// Whether it is for the project that the current folder lies in.
    fn is_for_a_project(&self) -> bool {
        !matches!(self, Self::New(_) | Self::Completions(_) | Self::Harness)
    }

    /// Whether it sees to interruptions itself: what holds a platform ends it then, see
    /// [`open::with`].
    fn ends_itself(&self) -> bool {
        match self {
            Self::Tools(_)
            | Self::Call(_)
            | Self::Run(_)
            | Self::Hook(_)
            | Self::Eval(_)
            | Self::Complete(_)
            | Self::Resources(_)
            | Self::Prompts(_)
            | Self::Policy(_)
            | Self::Doctor(_)
            | Self::Confine(_)
            | Self::Serve(_)
            | Self::Watch(_)
            | Self::Dev(_) => true,
            Self::Token(_)
            | Self::Secret(_)
            | Self::Login(_)
            | Self::Logout(_)
            | Self::Plugins(_)
            | Self::Install(_)
            | Self::Uninstall(_)
            | Self::Publish(_)
            | Self::Trust(_)
            | Self::Approve(_)
            | Self::Pending(_)
            | Self::Runs(_)
            | Self::Deny(_)
            | Self::Revoke(_)
            | Self::History(_)
            | Self::Skills(_)
            | Self::State(_)
            | Self::Inspect(_)
            | Self::New(_)
            | Self::Test(_)
            | Self::Build(_)
            | Self::Check(_)
            | Self::Schema(_)
            | Self::Completions(_)
            | Self::Harness => false,
        }
    }
}

fn main() -> ExitCode {
    // Where the smaller program for it is missing, a server in a sandbox is started by this executable.
    if let Some(code) = tenon_host::run_launcher(std::env::args_os().skip(1)) {
        return code;
    }
    #[cfg(not(fuzzing))]
    tenon_host::count_thread_memory(allocator::held_by_thread);
    let Arguments { mut common, verb } = arguments();
    common.project = match &common.named_project {
        Some(named) => named.clone(),
        None if verb.is_for_a_project() => project_folder::nearest_project(),
        None => ".".into(),
    };
    hint::note(&common);
    log_to_stderr(verb.log_level());
    let json = common.json;
    let result = match verb.ends_itself() {
        true => match verb {
            // It has many things to do at once.
            Verb::Serve(_) | Verb::Dev(_) => block_on_all(run(&common, verb)),
            _ => block_on(run(&common, verb)),
        },
        false => run_interruptible(common, verb),
    };
    match result {
        Ok(code) => code,
        Err(error) => output::report(&error, json),
    }
}

/// Runs what waits for the store, on a thread that may.
async fn blocking<A: Send + 'static, T: Send + 'static>(
    common: &Common,
    args: A,
    run: fn(&Common, A) -> Result<T, Error>,
) -> Result<T, Error> {
    let common = common.clone();
    let ran = tokio::task::spawn_blocking(move || run(&common, args)).await;
    ran.unwrap_or_else(|broken| Err(Error::Host(broken.to_string())))
}

async fn run(common: &Common, verb: Verb) -> Result<ExitCode, Error> {
    match verb {
        Verb::Plugins(args) => commands::plugins::run(common, args).await,
        Verb::Install(args) => commands::install::run(common, args).await,
        Verb::Uninstall(args) => commands::uninstall::run(common, args).await,
        Verb::Publish(args) => commands::publish::run(common, args).await,
        Verb::Trust(args) => commands::trust::run(common, args).await,
        Verb::Approve(args) => commands::approve::run(common, args).await,
        Verb::Pending(args) => blocking(common, args, commands::pending::run).await,
        Verb::Deny(args) => blocking(common, args, commands::deny::run).await,
        Verb::Policy(args) => commands::policy::run(common, args).await,
        Verb::Revoke(args) => commands::revoke::run(common, args),
        Verb::Tools(args) => commands::tools::run(common, args).await,
        Verb::Run(args) => commands::run::run(common, args).await,
        Verb::Runs(args) => commands::runs::run(common, args).await,
        Verb::Call(args) => commands::call::run(common, args).await,
        Verb::Hook(args) => commands::hook::run(common, args).await,
        Verb::Eval(args) => commands::eval::run(common, args).await,
        Verb::Complete(args) => commands::complete::run(common, args).await,
        Verb::Resources(args) => commands::resources::run(common, args).await,
        Verb::Prompts(args) => commands::prompts::run(common, args).await,
        Verb::Skills(args) => commands::skills::run(common, args).await,
        Verb::History(args) => blocking(common, args, commands::history::run).await,
        Verb::State(args) => blocking(common, args, commands::state::run).await,
        Verb::Inspect(args) => commands::inspect::run(common, args),
        Verb::Doctor(args) => commands::doctor::run(common, args).await,
        Verb::Confine(args) => commands::confine::run(common, args).await,
        Verb::Serve(args) => commands::serve::run(common, args).await,
        Verb::Token(args) => blocking(common, args, commands::token::run).await,
        Verb::Secret(args) => commands::secret::run(common, args),
        Verb::Login(args) => commands::login::run(common, args).await,
        Verb::Logout(args) => commands::logout::run(common, args),
        Verb::Watch(args) => commands::watch::run(common, args).await,
        Verb::New(args) => commands::new::run(common, args),
        Verb::Dev(args) => commands::dev::run(common, args).await,
        Verb::Test(args) => commands::test::run(common, args).await,
        Verb::Build(args) => commands::build::run(common, args).await,
        Verb::Check(args) => commands::check::run(common, args).await,
        Verb::Schema(args) => commands::schema::run(common, args),
        Verb::Completions(args) => commands::completions::run(common, args),
        Verb::Harness => harness::run().await,
    }
}

/// Runs a command to its end. One thread: it has one thing to do, and the host itself uses others for
/// what takes long.
fn block_on(command: impl Future<Output = Result<ExitCode, Error>>) -> Result<ExitCode, Error> {
    block_on_runtime(tokio::runtime::Builder::new_current_thread(), command)
}

/// The same on a thread for each processor.
fn block_on_all(command: impl Future<Output = Result<ExitCode, Error>>) -> Result<ExitCode, Error> {
    block_on_runtime(tokio::runtime::Builder::new_multi_thread(), command)
}

fn block_on_runtime(
    mut builder: tokio::runtime::Builder,
    command: impl Future<Output = Result<ExitCode, Error>>,
) -> Result<ExitCode, Error> {
    let runtime = builder.enable_all().build();
    let runtime =
        runtime.map_err(|error| Error::Host(format!("the runtime cannot start: {error}")))?;
    let result = runtime.block_on(command);
    // A script that was given up may still be on its thread; nobody waits for it.
    runtime.shutdown_background();
    result
}

/// The stack of the thread that a command is run on: what it reads was made by others, and may be deep.
const STACK_BYTES: usize = 64 << 20;

/// How long a command that was interrupted may take to clean up.
const CLEANUP_TIMEOUT: Duration = Duration::from_secs(1);

/// Runs a command on a thread of its own, so that it can be interrupted while it computes.
fn run_interruptible(common: Common, verb: Verb) -> Result<ExitCode, Error> {
    let (interrupt, interrupted) = oneshot::channel();
    let (done, mut result) = oneshot::channel();
    let work = move || {
        let command = async {
            tokio::select! {
                // What is dropped then takes its children and what it has half written with it.
                Ok(()) = interrupted => Err(Error::Interrupted),
                result = run(&common, verb) => result,
            }
        };
        // Who does not wait any more has told already.
        let _ = done.send(block_on(command));
    };
    block_on(async {
        let mut interrupts = Interrupts::listen();
        let thread = thread::Builder::new().name("tenon-command".into()).stack_size(STACK_BYTES);
        let thread = thread.spawn(work);
        let thread =
            thread.map_err(|error| Error::Host(format!("cannot start a thread: {error}")))?;
        tokio::select! {
            ended = &mut result => match ended {
                Ok(result) => result,
                // It panicked, and has said so.
                Err(_) => resume_unwind(thread.join().err().unwrap_or(Box::new(()))),
            },
            () = interrupts.next() => {
                let _ = interrupt.send(());
                match tokio::time::timeout(CLEANUP_TIMEOUT, result).await {
                    Ok(Ok(result)) => result,
                    Ok(Err(_)) | Err(_) => Err(Error::Interrupted),
                }
            }
        }
    })
}

/// Reads the arguments, or ends with what is wrong with them.
fn arguments() -> Arguments {
    Arguments::try_parse().unwrap_or_else(|error| {
        let mut options = std::env::args_os().take_while(|argument| argument != "--");
        if error.use_stderr() && options.any(|argument| argument == "--json") {
            let text = error.render().to_string();
            let text = text.strip_prefix("error: ").unwrap_or(&text).trim_end();
            // Where standard output is closed there is nobody to tell.
            let _ = output::json(&Error::Input(text.into()).to_json());
        }
        error.exit()
    })
}

/// Logs go to standard error: what is at least as grave as a level, or what `TENON_LOG` asks for. Plugins have a say in the
/// values of fields, and none of them ends a line or is obeyed by a terminal.
fn log_to_stderr(level: tracing::Level) {
    let filter = tracing_subscriber::EnvFilter::builder()
        .with_env_var("TENON_LOG")
        .with_default_directive(level.into())
        .from_env_lossy();
    let color = std::env::var_os("NO_COLOR").is_none() && std::io::stderr().is_terminal();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(color)
        .without_time()
        .with_target(false)
        .log_internal_errors(false)
        .with_writer(progress::stderr)
        .fmt_fields(
            format::debug_fn(|writer, field, value| {
                let value = format!("{value:?}");
                match field.name() {
                    "message" => write!(writer, "{}", one_line(&hint::as_typed(&value))),
                    name => write!(writer, "{name}={}", one_line(&value)),
                }
            })
            .delimited(" "),
        )
        .init();
}
