//! Locks end with their connection, and with their process.

use postgres::{Client, NoTls};
use std::env;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use tenon_store::expectations::a_lock_holds_for_every_store_of_a_database;
use tenon_store::{HeldLock, LockStore};
use tenon_store_postgres::PostgresStore;

use crate::server::Server;
use crate::{Test, connect};

/// Says to a child in which database it holds a lock.
const CHILD: &str = "TENON_POSTGRES_CHILD";

pub(crate) const TESTS: &[(&str, Test)] = &[
    ("a_lock_holds_for_every_store", a_lock_holds_for_every_store),
    ("databases_have_locks_of_their_own", databases_have_locks_of_their_own),
    ("advisory_locks_of_others_are_no_locks", advisory_locks_of_others_are_no_locks),
    ("a_lock_is_lost_with_its_connection", a_lock_is_lost_with_its_connection),
    ("a_lost_lock_that_is_dropped_lets_no_other_go", a_lost_lock_that_is_dropped_lets_no_other_go),
    (
        "locks_stay_where_a_server_ends_idle_connections",
        locks_stay_where_a_server_ends_idle_connections,
    ),
    ("a_lock_outlives_its_store", a_lock_outlives_its_store),
    ("locks_and_stores_are_dropped_on_any_thread", locks_and_stores_are_dropped_on_any_thread),
    ("a_killed_process_holds_no_lock", a_killed_process_holds_no_lock),
];

fn hold(store: &PostgresStore, name: &str) -> Option<Box<dyn HeldLock>> {
    store.hold_lock(name).expect("the lock is tried")
}

fn is_locked(store: &PostgresStore, name: &str) -> bool {
    store.is_locked(name).expect("the lock is seen")
}

fn client(url: &str) -> Client {
    let mut client = Client::connect(url, NoTls).expect("the server answers");
    // What waits for something that does not come fails.
    client.batch_execute("SET statement_timeout = '60s'").expect("it is set");
    client
}

/// The locks of a database that are held, as the server shows them.
const LOCKS: &str = "pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database
    WHERE datname = current_database() AND locktype = 'advisory'";

/// The two numbers of the only lock that is held.
fn numbers(client: &mut Client) -> (i32, i32) {
    let select = format!("SELECT classid, objid FROM {LOCKS} AND granted");
    let lock = client.query_one(&select, &[]).expect("there is one lock");
    (lock.get::<_, u32>(0).cast_signed(), lock.get::<_, u32>(1).cast_signed())
}

/// Ends the connections that hold locks in a database, and waits until the server has ended them. Says how many.
fn end_connections(url: &str) -> usize {
    let end = format!("SELECT pg_terminate_backend(pid, 60000) FROM {LOCKS} GROUP BY pid");
    let ended = client(url).query(&end, &[]).expect("they end");
    ended.iter().filter(|row| row.get(0)).count()
}

fn a_lock_holds_for_every_store(server: &Server) {
    let url = server.database();
    a_lock_holds_for_every_store_of_a_database(&connect(&url), &connect(&url));
}

fn databases_have_locks_of_their_own(server: &Server) {
    let (one, other) = (connect(&server.database()), connect(&server.database()));
    let held = hold(&one, "a");
    assert!(held.is_some() && !is_locked(&other, "a"));
    assert!(hold(&other, "a").is_some());
}

fn advisory_locks_of_others_are_no_locks(server: &Server) {
    let url = server.database();
    let (store, mut client) = (connect(&url), client(&url));
    let held = hold(&store, "a");
    let (first, second) = numbers(&mut client);
    drop(held);
    let lock = "SELECT pg_advisory_lock($1, $2 # 1), pg_advisory_lock($1 # 1, $2),
        pg_advisory_lock(($1::bigint << 32) | ($2::bigint & 4294967295))";
    client.execute(lock, &[&first, &second]).expect("they are free");
    assert!(!is_locked(&store, "a"));
    assert!(hold(&store, "a").is_some());
}

fn a_lock_is_lost_with_its_connection(server: &Server) {
    let url = server.database();
    let (one, other) = (connect(&url), connect(&url));
    let held = (hold(&one, "a"), hold(&one, "b"));
    assert!(held.0.is_some() && held.1.is_some());
    assert!(is_locked(&other, "a") && is_locked(&other, "b"));
    assert_eq!(end_connections(&url), 1, "all locks of a store have the same");
    for store in [&one, &other] {
        assert!(!is_locked(store, "a") && !is_locked(store, "b"));
    }
    let held = hold(&other, "a");
    assert!(held.is_some());
    assert!(hold(&one, "a").is_none());
    assert!(hold(&one, "b").is_some());
}

fn a_lost_lock_that_is_dropped_lets_no_other_go(server: &Server) {
    let url = server.database();
    let store = connect(&url);
    let lost = hold(&store, "a");
    assert_eq!(end_connections(&url), 1);
    let held = hold(&store, "a");
    assert!(lost.is_some() && held.is_some());
    drop(lost);
    assert!(is_locked(&store, "a"));
    assert!(hold(&store, "a").is_none());
    drop(held);
    assert!(!is_locked(&store, "a"));
}

fn locks_stay_where_a_server_ends_idle_connections(server: &Server) {
    let url = server.database();
    let store = connect(&url);
    let mut client = client(&url);
    let alter = "DO $$ BEGIN
        EXECUTE format('ALTER DATABASE %I SET idle_session_timeout = 50', current_database());
    END $$";
    client.batch_execute(alter).expect("it is set for new connections");
    let held = hold(&store, "a");
    assert!(held.is_some());
    // It is idle for several times as long.
    client.execute("SELECT pg_sleep(0.3)", &[]).expect("time passes");
    let count = client.query_one(&format!("SELECT count(*) FROM {LOCKS}"), &[]);
    assert_eq!(count.expect("they are counted").get::<_, i64>(0), 1);
}

fn a_lock_outlives_its_store(server: &Server) {
    let url = server.database();
    let held = hold(&connect(&url), "a");
    let other = connect(&url);
    assert!(held.is_some() && is_locked(&other, "a"));
    drop(held);
    assert!(!is_locked(&other, "a"));
}

/// Also on one of an executor, where nothing may block that has an executor itself.
fn locks_and_stores_are_dropped_on_any_thread(server: &Server) {
    let url = server.database();
    let store = connect(&url);
    let (first, second) = (hold(&store, "a"), hold(&store, "b"));
    let other = connect(&url);
    assert!(is_locked(&other, "a") && is_locked(&other, "b"));
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("it starts");
    runtime.block_on(async { drop(first) });
    assert!(!is_locked(&other, "a") && is_locked(&other, "b"));
    runtime.block_on(async {
        drop(store);
        drop(second);
    });
    assert!(!is_locked(&other, "b"));
}

/// A child, which does not outlive its test.
struct OwnedChild(Child);

impl Drop for OwnedChild {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Holds a lock until the input ends, if this process is a child.
pub(crate) fn is_child() -> bool {
    let Ok(url) = env::var(CHILD) else { return false };
    let held = hold(&connect(&url), "a");
    writeln!(io::stdout(), "{}", held.is_some()).expect("the parent listens");
    io::copy(&mut io::stdin(), &mut io::sink()).expect("the parent says nothing");
    true
}

fn a_killed_process_holds_no_lock(server: &Server) {
    let url = server.database();
    let store = connect(&url);
    let mut command = Command::new(env::current_exe().expect("this is a program"));
    command.env(CHILD, &url).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = OwnedChild(command.spawn().expect("this program starts again"));
    let mut line = String::new();
    let output = child.0.stdout.take().expect("it is a pipe");
    BufReader::new(output).read_line(&mut line).expect("the child says so");
    assert_eq!(line, "true\n");
    assert!(is_locked(&store, "a") && hold(&store, "a").is_none());

    let mut client = client(&url);
    let (first, second) = numbers(&mut client);
    drop(child);
    // It waits until the server has seen that the child is gone.
    let wait = "SELECT pg_advisory_lock($1, $2), pg_advisory_unlock($1, $2)";
    client.execute(wait, &[&first, &second]).expect("the lock is let go");
    assert!(!is_locked(&store, "a"));
    assert!(hold(&store, "a").is_some());
}
