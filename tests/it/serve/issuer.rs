//! JSON Web Tokens of an issuer, as `tenon serve --http` takes them.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;

use super::command::{Serving, approved, exchange_as};
use super::modern;
use crate::support::{Project, stderr};

/// The name of the server for clients and the issuer; nobody connects to it.
const AUDIENCE: &str = "https://tools.example/mcp";

fn base64(bytes: impl AsRef<[u8]>) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// An authorization server, as far as one that takes its tokens sees it.
struct Issuer {
    url: String,
    key: Ed25519KeyPair,
}

impl Issuer {
    /// One that publishes its metadata and its key until the test ends.
    fn start() -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let key = Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let metadata = json!({ "issuer": url, "jwks_uri": format!("{url}/keys") });
        let x = base64(key.public_key().as_ref());
        let keys = json!({ "keys": [{ "kty": "OKP", "crv": "Ed25519", "kid": "k", "x": x }] });
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let _ = stream.and_then(|stream| publish(stream, &metadata, &keys));
            }
        });
        Self { url, key }
    }

    fn token(&self, audience: &str, profile: &str) -> String {
        let header = base64(json!({ "alg": "EdDSA", "kid": "k" }).to_string());
        let claims = json!({
            "iss": self.url, "aud": audience, "sub": "ada", "exp": 4_102_444_800_u64, "scope": "tools",
            "profile": profile,
        });
        let message = format!("{header}.{}", base64(claims.to_string()));
        format!("{message}.{}", base64(self.key.sign(message.as_bytes())))
    }
}

fn publish(mut stream: TcpStream, metadata: &Value, keys: &Value) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let request = lines.next().unwrap_or(Ok(String::new()))?;
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let document = match request.split(' ').nth(1) {
        Some("/.well-known/openid-configuration") => metadata,
        Some("/keys") => keys,
        _ => return write!(stream, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
    };
    let body = document.to_string();
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// The response to GET of a path, from the server under its public name.
fn get(address: &str, path: &str, headers: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: tools.example\r\nConnection: close\r\n{headers}\r\n"
    )
    .unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

fn configure(project: &Project, issuer: &str, more: &str) {
    let text = format!(
        "[issuer]\nurl = {issuer:?}\naudience = {AUDIENCE:?}\nscopes = [\"tools\"]\n{more}\n\
         [profiles.texts]\ntools = [\"*_text\"]"
    );
    project.write("tenon/config.toml", text);
}

#[test]
fn tokens_of_the_configured_issuer_are_taken_for_what_they_are_good_for() {
    let project = approved();
    let issuer = Issuer::start();
    configure(&project, &issuer.url, "profile_claim = \"profile\"");
    let mut serving = Serving::start(project.command(&["serve", "--http", "127.0.0.1:0"]));
    let (address, said) = serving.address();
    assert!(said.contains(&format!("tokens of {} for {AUDIENCE}", issuer.url)), "{said}");
    // A client without a token learns where to get one.
    let list = modern(1, "tools/list", json!({})).to_string();
    let refused = exchange_as(&address, "tools/list", "", &list);
    let metadata = "https://tools.example/.well-known/oauth-protected-resource/mcp";
    assert!(refused.starts_with("HTTP/1.1 401 "), "{refused}");
    let challenge = format!("Bearer resource_metadata=\"{metadata}\", scope=\"tools\"");
    assert!(refused.contains(&challenge), "{refused}");
    let path = metadata.trim_start_matches("https://tools.example");
    let response = get(&address, path, "");
    let (_, body) = response.split_once("\r\n\r\n").unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(body).expect(&response),
        json!({
            "resource": AUDIENCE,
            "authorization_servers": [issuer.url],
            "bearer_methods_supported": ["header"],
            "resource_name": "Tenon",
            "scopes_supported": ["tools"],
        })
    );
    let with = |token: &str| {
        let header = format!("Authorization: Bearer {token}\r\n");
        exchange_as(&address, "tools/list", &header, &list)
    };
    let texts = with(&issuer.token(AUDIENCE, "texts"));
    assert!(texts.starts_with("HTTP/1.1 200 ") && texts.contains("test_simple_text"), "{texts}");
    assert!(!texts.contains("test_image_content"), "{texts}");
    let all = with(&issuer.token(AUDIENCE, "default"));
    assert!(all.contains("test_image_content"), "{all}");
    let check = |token: &str, status: &str, words: &str| {
        let refused = with(token);
        assert!(refused.starts_with(&format!("HTTP/1.1 {status} ")), "{refused}");
        assert!(refused.contains(words), "{refused}");
    };
    check(&issuer.token("https://other.example/mcp", "texts"), "401", "for another audience");
    check(&issuer.token(AUDIENCE, "none"), "404", "there is no profile \"none\"");
    check(
        &Issuer::start().token(AUDIENCE, "texts"),
        "401",
        "it was signed by no key of its issuer",
    );
    // A token of one profile is good for no other, and measures name all.
    let header = format!("Authorization: Bearer {}\r\n", issuer.token(AUDIENCE, "texts"));
    for path in ["/mcp/p/default", "/metrics"] {
        let refused = get(&address, path, &header);
        assert!(refused.starts_with("HTTP/1.1 403 "), "{path}: {refused}");
    }
    // The user's own token is good as before.
    let own = std::fs::read_to_string(project.path("state/tenon/serve-token")).unwrap();
    assert!(with(own.trim()).starts_with("HTTP/1.1 200 "));
    assert_eq!(serving.end(), Some(0));
}

#[test]
fn an_issuer_whose_profile_is_not_there_is_a_mistake() {
    let project = approved();
    configure(&project, "https://id.example", "profile = \"none\"");
    let mut command = project.command(&["serve", "--http", "127.0.0.1:0"]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("`[issuer]` names the profile \"none\""),
        "{}",
        stderr(&output)
    );
}
