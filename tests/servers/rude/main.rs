//! An MCP server without manners. Its first argument names the bad habit that it has; without one
//! it behaves. Whatever the habit, it has a tool `echo` that behaves as well, so that a test can see
//! what the habit has cost. Most habits show in calls of a tool `rude`.

#![allow(clippy::print_stderr, clippy::print_stdout)]

mod asking;
mod bad_lines;
mod ending;
mod messages;
mod one_era;
mod server;

/// A habit, by its name.
type Habit = (&'static str, fn());

fn main() {
    let name = std::env::args().nth(1).unwrap_or_default();
    let tables =
        [bad_lines::HABITS, messages::HABITS, asking::HABITS, ending::HABITS, one_era::HABITS];
    match tables.into_iter().flatten().find(|(known, _)| *known == name) {
        Some((_, live)) => live(),
        None => server::serve(|_| false),
    }
}
