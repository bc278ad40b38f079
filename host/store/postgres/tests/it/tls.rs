//! Which servers are believed, and what is said of the others.

use postgres::{Client, NoTls};
use std::error::Error;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::iter::successors;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use tenon_store::{Bucket, LockStore, Quota, StateStore, StoreError};
use tenon_store_postgres::PostgresStore;

use crate::Test;
use crate::server::{PASSWORD, Server, new_authority};

pub(crate) const TESTS: &[(&str, Test)] = &[
    (
        "a_server_whose_authority_is_known_is_believed",
        a_server_whose_authority_is_known_is_believed,
    ),
    ("a_server_that_others_vouch_for_is_refused", a_server_that_others_vouch_for_is_refused),
    ("a_server_of_another_name_is_refused", a_server_of_another_name_is_refused),
    (
        "a_server_that_wants_tls_refuses_who_has_it_disabled",
        a_server_that_wants_tls_refuses_who_has_it_disabled,
    ),
    (
        "a_server_without_tls_is_refused_where_it_is_required",
        a_server_without_tls_is_refused_where_it_is_required,
    ),
    ("a_socket_has_no_tls", a_socket_has_no_tls),
    ("authorities_that_cannot_be_read_are_refused", authorities_that_cannot_be_read_are_refused),
    ("no_error_has_the_password_in_it", no_error_has_the_password_in_it),
];

/// The address of a database on a port of this machine.
fn address(port: u16, database: &str, options: &str) -> String {
    format!("postgresql://tenon:{PASSWORD}@127.0.0.1:{port}/{database}{options}")
}

/// The error of a connection, with its causes, after it was checked that no password is in it.
fn refusal(address: &str, authorities: Option<&Path>) -> (StoreError, String) {
    let error = PostgresStore::connect(address, authorities).expect_err("it is refused");
    let causes = successors(error.source(), |&error| error.source());
    let causes: Vec<_> = causes.map(ToString::to_string).collect();
    let text = format!("{error}: {}", causes.join(": "));
    assert!(!format!("{text} {error:?}").contains("SECRET"), "{text} {error:?}");
    (error, text)
}

/// Checks that a connection is refused with a text.
fn check(address: &str, authorities: Option<&Path>, expected: &str) {
    let (_, text) = refusal(address, authorities);
    assert!(text.contains(expected), "{text}");
}

/// A file in a folder of its own.
fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("authorities.pem");
    fs::write(&path, text).expect("there is room");
    (folder, path)
}

fn a_server_whose_authority_is_known_is_believed(server: &Server) {
    let binding = "?sslmode=require&channel_binding=require";
    for options in ["", "?sslmode=prefer", "?sslmode=require", binding] {
        let database = server.new_database();
        let address = address(server.port(), &database, options);
        let store = PostgresStore::connect(&address, Some(&server.authority())).expect(options);
        let (bucket, quota) = (Bucket::user("a"), Quota { keys: 1, bytes: 9 });
        store.set(&bucket, "key", b"value", quota).expect("there is room");
        let held = store.hold_lock("a").expect("it is tried");
        let select = "SELECT count(*), count(*) FILTER (WHERE ssl) FROM pg_stat_ssl
            JOIN pg_stat_activity USING (pid) WHERE datname = $1";
        let mut client = Client::connect(&server.database(), NoTls).expect("it answers");
        let row = client.query_one(select, &[&database]).expect("they are counted");
        // One for what is stored, and one for locks.
        assert_eq!((row.get(0), row.get(1)), (2_i64, 2_i64), "{options}");
        assert!(held.is_some());
    }
}

fn a_server_that_others_vouch_for_is_refused(server: &Server) {
    let database = server.new_database();
    let (_folder, other) = file(&new_authority("others").pem());
    for authorities in [None, Some(&*other)] {
        for options in ["", "?sslmode=prefer", "?sslmode=require"] {
            let address = address(server.port(), &database, options);
            let (error, text) = refusal(&address, authorities);
            assert!(matches!(error, StoreError::Io(..)), "{error:?}");
            assert!(text.contains("name the file with the authority that signed it"), "{text}");
            assert!(text.contains("UnknownIssuer"), "{text}");
        }
    }
}

fn a_server_of_another_name_is_refused(server: &Server) {
    let (port, database) = (server.port(), server.new_database());
    let address = |host: &str| {
        format!(
            "host={host} hostaddr=127.0.0.1 port={port} user=tenon password={PASSWORD} dbname={database}"
        )
    };
    let authority = Some(server.authority());
    check(&address("localhost"), authority.as_deref(), "not valid for name");
    PostgresStore::connect(&address("127.0.0.1"), authority.as_deref()).expect("it has this one");
}

fn a_server_that_wants_tls_refuses_who_has_it_disabled(server: &Server) {
    let address = address(server.port(), &server.new_database(), "?sslmode=disable");
    let (error, text) = refusal(&address, Some(&server.authority()));
    assert!(matches!(error, StoreError::Database(..)), "{error:?}");
    assert!(text.contains("no pg_hba.conf entry") && text.contains("no encryption"), "{text}");
}

/// Something on a port that has no TLS, and passes on what else it gets. It ends with the process.
fn start_without_tls(socket: PathBuf) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    let port = listener.local_addr().expect("it has one").port();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            // Where one of both is gone, so is the other.
            let _ = refuse_tls(client, &socket);
        }
    });
    port
}

fn refuse_tls(mut client: TcpStream, socket: &Path) -> io::Result<()> {
    let mut first = [0; 8];
    client.read_exact(&mut first)?;
    let mut server = UnixStream::connect(socket)?;
    // The request for TLS has this code.
    match first[4..] == 80_877_103_u32.to_be_bytes() {
        true => client.write_all(b"N")?,
        false => server.write_all(&first)?,
    }
    let (mut from_client, mut to_client) = (client.try_clone()?, client);
    let (mut from_server, mut to_server) = (server.try_clone()?, server);
    thread::spawn(move || {
        let _ = io::copy(&mut from_client, &mut to_server);
        let _ = to_server.shutdown(Shutdown::Both);
    });
    thread::spawn(move || {
        let _ = io::copy(&mut from_server, &mut to_client);
        let _ = to_client.shutdown(Shutdown::Both);
    });
    Ok(())
}

fn a_server_without_tls_is_refused_where_it_is_required(server: &Server) {
    let (port, database) = (start_without_tls(server.socket()), server.new_database());
    let authority = Some(server.authority());
    for options in ["", "?sslmode=prefer", "?sslmode=disable"] {
        let address = address(port, &database, options);
        PostgresStore::connect(&address, authority.as_deref()).expect(options);
    }
    let address = address(port, &database, "?sslmode=require");
    check(&address, authority.as_deref(), "server does not support TLS");
}

fn a_socket_has_no_tls(server: &Server) {
    let address = format!("{}?sslmode=require", server.database());
    PostgresStore::connect(&address, None).expect("the mode is about networks");
}

fn authorities_that_cannot_be_read_are_refused(server: &Server) {
    let address = address(server.port(), &server.new_database(), "?sslmode=require");
    let check_file = |text: &str, expected: &str| {
        let (_folder, path) = file(text);
        check(&address, Some(&path), &format!("{expected} {}", path.display()));
    };
    check_file("", "there is no certificate of an authority in");
    check_file("a text\n", "there is no certificate of an authority in");
    let wrong = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    check_file(wrong, "the authorities in");
    check_file("-----BEGIN CERTIFICATE-----\nAAAA\n", "the authorities in");
    let missing = Path::new("/no/such/file.pem");
    check(&address, Some(missing), "the authorities in /no/such/file.pem cannot be read");
}

fn no_error_has_the_password_in_it(server: &Server) {
    let (port, database) = (server.port(), server.new_database());
    let authority = Some(server.authority());
    let check = |address: &str, expected: &str| check(address, authority.as_deref(), expected);
    let wrong = format!("postgresql://tenon:another-SECRET@127.0.0.1:{port}/{database}");
    check(&wrong, "password authentication failed");
    check(&address(port, "none", ""), "does not exist");
    check(&address(1, &database, ""), "Connection refused");
    check(&address(port, &database, "?sslmode=SECRET"), "invalid value for option `sslmode`");
    check(&address(port, &database, "?SECRET=1"), "an option that is not known");
    check(&format!("{wrong}?password=x@SECRET"), "percent-encoded");
    let store = PostgresStore::connect(&address(port, &database, ""), authority.as_deref());
    let store = store.expect("the password is right");
    assert_eq!(
        format!("{store:?}"),
        format!("PostgresStore {{ name: \"the database \\\"{database}\\\"\", .. }}")
    );
}
