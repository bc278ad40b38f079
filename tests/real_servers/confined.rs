//! Real servers in a sandbox, with the grants that they need and without.

use serde_json::json;
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tempfile::TempDir;
use tenon_host::Platform;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::{NoFeatures, Servers, call};

/// What an entry says of a server that is confined to a folder, or to nothing.
fn confined_to(folder: Option<&Path>) -> String {
    let globs: Vec<String> =
        folder.iter().map(|folder| format!("readwrite:{}/**", folder.display())).collect();
    format!(", capabilities = {{ filesystem = {globs:?} }}")
}

fn is_confined(platform: &Platform) -> bool {
    let confinement = platform.server("s").and_then(|server| server.confinement);
    confinement.is_some_and(|confinement| confinement.is_confined)
}

pub(crate) async fn servers_of_node_work_confined(servers: Servers) {
    let entry = servers.node_entry("server-everything", &[], &confined_to(None));
    let platform = servers.platform_of(&entry, NoFeatures).await;
    assert!(is_confined(&platform));
    let echo = call(&platform, "echo", json!({ "message": "hello" })).await;
    assert_eq!(echo.plain_text(), "Echo: hello");
    platform.shutdown().await;

    let folder = TempDir::new().unwrap();
    let root = folder.path().canonicalize().unwrap();
    fs::write(root.join("note.txt"), "räder").unwrap();
    let check = async |granted: Option<&Path>, is_read: bool| {
        let entry = servers.node_entry("server-filesystem", &[&root], &confined_to(granted));
        let platform = servers.platform_of(&entry, NoFeatures).await;
        let path = root.join("note.txt");
        let read = call(&platform, "read_text_file", json!({ "path": path })).await;
        assert_eq!(!read.is_error, is_read, "{}", read.plain_text());
        platform.shutdown().await;
    };
    check(Some(&root), true).await;
    // What it is told to serve it may not read for that.
    let other = TempDir::new().unwrap();
    check(Some(other.path()), false).await;

    let home = servers.home.path().canonicalize().unwrap();
    let entry = servers.node_entry("server-memory", &[], &confined_to(Some(&home)));
    let platform = servers.platform_of(&entry, NoFeatures).await;
    let entity = json!({ "name": "tenon", "entityType": "joint", "observations": ["fits"] });
    let created = call(&platform, "create_entities", json!({ "entities": [entity] })).await;
    assert!(!created.is_error, "{}", created.plain_text());
    platform.shutdown().await;
}

pub(crate) async fn time_works_confined_to_nothing(servers: Servers) {
    let program = servers.folder.join("python/bin/mcp-server-time");
    let entry = servers.entry(program.to_str().unwrap(), &[], &confined_to(None));
    let platform = servers.platform_of(&entry, NoFeatures).await;
    assert!(is_confined(&platform));
    let now = call(&platform, "get_current_time", json!({ "timezone": "Asia/Tokyo" })).await;
    assert!(now.plain_text().contains("+09:00"), "{}", now.plain_text());
    platform.shutdown().await;
}

pub(crate) async fn git_works_confined_to_one_repository(servers: Servers) {
    let folder = TempDir::new().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let [granted, other] = ["granted", "other"].map(|name| repository(&root.join(name)));
    let program = servers.folder.join("python/bin/mcp-server-git");
    let entry = servers.entry(program.to_str().unwrap(), &[], &confined_to(Some(&granted)));
    let platform = servers.platform_of(&entry, NoFeatures).await;
    assert!(is_confined(&platform));
    let log = call(&platform, "git_log", json!({ "repo_path": granted })).await;
    assert!(log.plain_text().contains("Begin"), "{}", log.plain_text());
    fs::write(granted.join("new.txt"), "new").unwrap();
    let add = json!({ "repo_path": granted, "files": ["new.txt"] });
    let added = call(&platform, "git_add", add).await;
    assert!(!added.is_error, "{}", added.plain_text());
    let log = call(&platform, "git_log", json!({ "repo_path": other })).await;
    assert!(log.is_error && !log.plain_text().contains("Begin"), "{}", log.plain_text());
    platform.shutdown().await;
}

/// A repository with one commit, `Begin`, at a place where nothing is.
fn repository(folder: &Path) -> PathBuf {
    let git = |arguments: &[&str]| {
        let identity = ["user.name=Ada", "user.email=ada@example.org"];
        let mut command = std::process::Command::new("git");
        command.args(identity.iter().flat_map(|of| ["-c", of])).args(arguments);
        let output = command.env("HOME", folder).output().expect("git is installed");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let path = folder.to_str().unwrap();
    git(&["init", "--quiet", path]);
    git(&["-C", path, "commit", "--quiet", "--allow-empty", "--message=Begin"]);
    folder.to_path_buf()
}

pub(crate) async fn sqlite_works_confined_to_one_folder(servers: Servers) {
    let folder = TempDir::new().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let program = servers.folder.join("python-1/bin/mcp-server-sqlite");
    let path = root.join("notes.db");
    let arguments = [Path::new("--db-path"), &path];
    let entry = servers.entry(program.to_str().unwrap(), &arguments, &confined_to(Some(&root)));
    let platform = servers.platform_of(&entry, NoFeatures).await;
    assert!(is_confined(&platform));
    let query = json!({ "query": "CREATE TABLE notes (text TEXT)" });
    let created = call(&platform, "create_table", query).await;
    assert!(!created.is_error, "{}", created.plain_text());
    let tables = call(&platform, "list_tables", json!({})).await;
    assert!(tables.plain_text().contains("notes"), "{}", tables.plain_text());
    assert!(path.is_file());
    // What has been attached would be made where it is not.
    let outside = TempDir::new().unwrap();
    let outside = outside.path().canonicalize().unwrap().join("outside.db");
    let query = json!({ "query": format!("ATTACH DATABASE '{}' AS outside", outside.display()) });
    let attached = call(&platform, "write_query", query).await;
    assert!(attached.plain_text().contains("unable to open"), "{}", attached.plain_text());
    assert!(!outside.exists());
    platform.shutdown().await;
}

pub(crate) async fn fetch_works_confined_to_one_site(servers: Servers) {
    let (granted, _) = site("Tenon joins wood, and this page says so at some length.").await;
    let (other, asked) = site("NoFeatures may read this page, however long its text is.").await;
    let program = servers.folder.join("python/bin/mcp-server-fetch");
    let entry = format!(
        "command = {program:?}, args = [\"--allow-private-ips\"], \
         capabilities = {{ network = [\"http://127.0.0.1:{granted}/*\"] }}"
    );
    let platform = servers.platform_of(&entry, NoFeatures).await;
    assert!(is_confined(&platform));
    // To make a page simple, it would install packages of Node.js into its own folder, if it found any Node.js.
    let page = |port: u16| json!({ "url": format!("http://127.0.0.1:{port}/"), "raw": true });
    let read = call(&platform, "fetch", page(granted)).await;
    assert!(read.plain_text().contains("joins wood"), "{}", read.plain_text());
    let read = call(&platform, "fetch", page(other)).await;
    assert!(read.is_error, "{}", read.plain_text());
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    platform.shutdown().await;
}

/// A site of one page with a text, at a port of its own, and how often somebody has connected to it.
async fn site(text: &'static str) -> (u16, Arc<AtomicU32>) {
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let connections = Arc::new(AtomicU32::new(0));
    let counted = connections.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(answer_with(stream, text));
        }
    });
    (port, connections)
}

/// Answers one request with a page; with none if it is for rules that robots are to follow.
async fn answer_with(stream: tokio::net::TcpStream, text: &str) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let (mut request, mut header) = (String::new(), String::new());
    stream.read_line(&mut request).await?;
    // An empty line ends them.
    while stream.read_line(&mut header).await? > "\r\n".len() {
        header.clear();
    }
    let body = format!("<html><body><article><p>{text}</p></article></body></html>");
    let status = if request.contains("/robots.txt") { "404 Not Found" } else { "200 OK" };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}
