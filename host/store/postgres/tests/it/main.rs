//! What every store does, and what only this one does, with a server of PostgreSQL that the tests start.
//!
//! `cargo xtask test` says in `TENON_POSTGRES` where the packages of Debian are unpacked. Without it the tests are listed as
//! ignored.
#![cfg(unix)]

mod locks;
mod server;
mod sessions;
mod tls;

use libtest_mimic::{Arguments, Trial};
use std::env;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use tenon_store::expectations::{ALL, Expectation};
use tenon_store_postgres::PostgresStore;

use server::Server;

/// A test, with the server that all of them share.
type Test = fn(&Server);

fn main() -> ExitCode {
    if locks::is_child() {
        return ExitCode::SUCCESS;
    }
    let arguments = Arguments::from_args();
    let packages = env::var_os("TENON_POSTGRES").map(PathBuf::from);
    let server = packages
        .as_deref()
        .filter(|_| !arguments.list)
        .map(|packages| Arc::new(Server::start(packages)));
    let trial = |name: &str, test: Box<dyn Fn(&Server) + Send>| {
        let server = server.clone();
        let run = move || {
            test(&*server.ok_or("there is no server")?);
            Ok(())
        };
        Trial::test(name, run).with_ignored_flag(packages.is_none())
    };
    let expectations = ALL.iter().map(|(name, expectation)| trial(name, expect(*expectation)));
    let own = [locks::TESTS, tls::TESTS, sessions::TESTS].concat();
    let own = own.iter().map(|(name, test)| trial(name, Box::new(*test)));
    let code = libtest_mimic::run(&arguments, expectations.chain(own).collect()).exit_code();
    // The last to have it ends it.
    drop(server);
    code
}

fn expect(expectation: Expectation) -> Box<dyn Fn(&Server) + Send> {
    Box::new(move |server| expectation(&connect(&server.database())))
}

fn connect(url: &str) -> PostgresStore {
    PostgresStore::connect(url, None).expect("the server answers")
}
