//! Where plugins come from: servers and registries, and what they are believed.

use std::fs;
use std::sync::Arc;

use serde_json::{Value, json};
use tenon_config::files::Digest;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use super::web::Web;
use super::{AUTHORITIES, InstallProject, component};
use crate::support::{stderr, stdout};

#[tokio::test]
async fn a_component_is_downloaded_once() {
    let (home, web) = (InstallProject::new(), Web::start().await);
    web.put("/t.wasm", 200, &[], component());
    web.put("/old", 302, &[("location", "/t.wasm")], "");
    let digest = Digest::of(component()).named();
    home.install(&web.url("/old"), &["--as", "t"]).await;
    assert_eq!(web.heard(), ["GET /old", "GET /t.wasm"]);
    home.slug("t", 0).await;
    home.install(&web.url("/old"), &["--as", "u", "--digest", &digest]).await;
    fs::remove_dir_all(home.0.path(".tenon/plugins/t")).unwrap();
    home.run(&["install"], 0).await;
    assert!(web.heard().is_empty());
    home.slug("t", 0).await;
    // What is in the cache and is not what it was is not taken.
    fs::remove_dir_all(home.0.path(".tenon/plugins/t")).unwrap();
    let cached = format!("cache/tenon/downloads/sha256/{}", &digest[7..]);
    home.tamper(&cached);
    home.run(&["install"], 0).await;
    assert_eq!(web.heard(), ["GET /old", "GET /t.wasm"]);
    assert_eq!(home.read(&cached), component());
    // And one that has changed there is none.
    home.tamper(".tenon/plugins/t/t.wasm");
    fs::remove_file(home.0.path(&cached)).unwrap();
    let mut other = component();
    other.extend([0, 2, 1, b'y']);
    web.put("/t.wasm", 200, &[], other);
    home.refused(&["install"], "has the wrong digest").await;
    home.slug("t", 3).await;
}

#[tokio::test]
async fn downloads_are_bounded_and_not_in_plain_text() {
    let (home, web) = (InstallProject::new(), Web::start().await);
    let check = async |source: &str, code: i32, because: &str| {
        let said = home.run(&["install", source], code).await;
        assert!(said.contains(because), "{source}: {said}");
    };
    check("http://example.com/x.wasm", 3, "refusing to contact").await;
    check(
        "http://user:word@localhost/x.wasm",
        2,
        "http://localhost/x.wasm: the URL has a user in it",
    )
    .await;
    check("oci://localhost:1/a", 5, "localhost:1/v2/a/manifests/latest").await;
    check(&web.url("/none"), 5, "responded with 404").await;
    web.put("/away", 302, &[("location", "http://example.com/x.wasm")], "");
    check(&web.url("/away"), 3, "refusing to contact http://example.com/x.wasm over plain HTTP")
        .await;
    web.put("/loop", 302, &[("location", "/loop")], "");
    check(&web.url("/loop"), 5, "leads on more than 5 times").await;
    web.put("/page", 200, &[], "<html>");
    check(&web.url("/page"), 2, "neither a component nor a script").await;
    assert!(!home.0.path("tenon.lock").exists());
}

#[tokio::test]
async fn a_server_is_believed_if_an_authority_is_that_is_trusted() {
    let (home, (tls, proof)) = (InstallProject::new(), proof_for("localhost"));
    let web = Web::start_over(Some(tls)).await;
    web.put("/t.wasm", 200, &[], component());
    let url = format!("https://localhost:{}/t.wasm", web.address.port());
    let check = async |code: i32, because: &str| {
        let said = home.run(&["install", &url], code).await;
        assert!(said.contains(because), "{said}");
    };
    check(5, "invalid peer certificate: UnknownIssuer").await;
    home.0.write(AUTHORITIES, "no certificate");
    check(5, "it contains no certificate").await;
    assert!(web.heard().is_empty());
    home.0.write(AUTHORITIES, proof_for("localhost").1);
    check(5, "invalid peer certificate: ").await;
    home.0.write(AUTHORITIES, proof);
    check(0, "t  ").await;
    assert_eq!(web.heard(), ["GET /t.wasm"]);
    home.slug("t", 0).await;
    // It has to be who it is asked as.
    let elsewhere = format!("https://127.0.0.1:{}/t.wasm", web.address.port());
    let said = home.run(&["install", &elsewhere, "--as", "u"], 5).await;
    assert!(said.contains("invalid peer certificate"), "{said}");
}

/// What a server proves itself with, and the certificate of who vouches for it, in PEM.
fn proof_for(name: &str) -> (TlsAcceptor, String) {
    let proof = rcgen::generate_simple_self_signed([name.to_string()]).unwrap();
    let key = PrivateKeyDer::try_from(proof.signing_key.serialize_der()).unwrap();
    let server = ServerConfig::builder().with_no_client_auth();
    let server = server.with_single_cert(vec![proof.cert.der().clone()], key).unwrap();
    (TlsAcceptor::from(Arc::new(server)), proof.cert.pem())
}

#[tokio::test]
async fn a_registry_is_asked_for_a_blob_once() {
    let (home, web) = (InstallProject::new(), Web::start().await);
    let (digest, layer) = web.push("acme/text-tools", "1.0", &component(), &json!({}));
    let manifest = |tag: &str| format!("GET /v2/acme/text-tools/manifests/{tag}");
    let blob = format!("GET /v2/acme/text-tools/blobs/{}", layer.named());
    let row = home.install(&web.oci("acme/text-tools:1.0"), &[]).await;
    assert_eq!(web.heard(), [manifest("1.0"), blob]);
    let bound = web.oci(&format!("acme/text-tools:1.0@{}", digest.named()));
    assert_eq!((&row["plugin"], &row["resolved"]), (&json!("text-tools"), &json!(bound)));
    home.run(&["call", "text-tools__slug", r#"{"text": "A b"}"#], 0).await;
    // What a tag means is asked, and the blob is known.
    home.install(&web.oci("acme/text-tools:1.0"), &[]).await;
    assert_eq!(web.heard(), [manifest("1.0")]);
    // What is bound needs nobody.
    home.install(&web.oci(&format!("acme/text-tools@{}", digest.named())), &["--as", "again"])
        .await;
    fs::remove_dir_all(home.0.path(".tenon/plugins/text-tools")).unwrap();
    home.run(&["install"], 0).await;
    assert!(web.heard().is_empty());
}

#[tokio::test]
async fn a_registry_is_believed_nothing() {
    let (home, web) = (InstallProject::new(), Web::start().await);
    let (digest, layer) = web.push("a", "latest", &component(), &json!({}));
    let blob = format!("/v2/a/blobs/{}", layer.named());
    let manifest = format!("/v2/a/manifests/{}", digest.named());
    let bound = web.oci(&format!("a@{}", digest.named()));
    let mut other = component();
    *other.last_mut().unwrap() ^= 1;
    web.put(&blob, 200, &[], other.clone());
    home.refused(&["install", &web.oci("a")], "the layer of oci://").await;
    other.push(0);
    web.put(&blob, 200, &[], other);
    home.refused(&["install", &web.oci("a")], "is larger than").await;
    web.put(&blob, 200, &[], &component()[..1000]);
    home.refused(&["install", &web.oci("a")], "the layer of oci://").await;
    // From here on what is asked for is not in the cache.
    let fresh = InstallProject::new();
    web.put(&manifest, 200, &[], "{}");
    fresh.refused(&["install", &bound], "the manifest of oci://").await;
    web.put("/v2/a/manifests/latest", 200, &[("docker-content-digest", &digest.named())], "{}");
    fresh.refused(&["install", &web.oci("a")], "the manifest of oci://").await;
    let check = async |manifest: Value, code: i32, because: &str| {
        web.put("/v2/a/manifests/latest", 200, &[], manifest.to_string());
        let said = fresh.run(&["install", &web.oci("a")], code).await;
        assert!(said.contains(because), "{said}");
    };
    let of = |media_type: &str, size: u64| json!({ "mediaType": media_type, "digest": layer.named(), "size": size });
    let wasm = of("application/wasm", 1);
    check(json!({ "schemaVersion": 2, "manifests": [] }), 5, "it has no layer").await;
    check(json!({ "schemaVersion": 2, "layers": [wasm, wasm] }), 5, "it has 2 layers").await;
    let tar = of("application/vnd.oci.image.layer.v1.tar", 1);
    check(json!({ "schemaVersion": 2, "layers": [tar] }), 5, "and no component").await;
    let huge = of("application/wasm", 1 << 40);
    check(json!({ "schemaVersion": 2, "layers": [huge] }), 3, "is larger than 256 MiB").await;
    assert!(!fresh.0.path("tenon.lock").exists());
}

#[tokio::test]
async fn credentials_are_for_their_registry_alone() {
    let (home, web, other) = (InstallProject::new(), Web::start().await, Web::start().await);
    let (_, layer) = web.push("private", "latest", &component(), &json!({}));
    let manifest = web.pages.lock().unwrap().remove("/v2/private/manifests/latest").unwrap();
    let challenge = format!("Bearer realm=\"{}\",service=\"here\"", web.url("/token"));
    web.put("/v2/private/manifests/latest", 401, &[("www-authenticate", &challenge)], "");
    home.run(&["install", &web.oci("private")], 5).await;
    assert!(
        web.heard()
            .iter()
            .any(|line| line
                .starts_with("GET /token?service=here&scope=repository%3Aprivate%3Apull"))
    );
    // Anybody may have a token.
    let token = "/token?service=here&scope=repository%3Aprivate%3Apull";
    web.put(token, 200, &[], r#"{"token":"anybody"}"#);
    web.pages
        .lock()
        .unwrap()
        .insert("/v2/private/manifests/latest Bearer anybody".into(), manifest.clone());
    home.install(&web.oci("private"), &[]).await;
    // And what is elsewhere is told none, nor who asks.
    let fresh = InstallProject::new();
    web.pages.lock().unwrap().insert("/v2/private/manifests/latest Bearer known".into(), manifest);
    let auth = "YWRhOnNlY3JldA==";
    web.put(token, 403, &[], "");
    web.put(&format!("{token} Basic {auth}"), 200, &[], r#"{"access_token":"known"}"#);
    let blob = format!("/v2/private/blobs/{}", layer.named());
    web.put(&blob, 307, &[("location", &other.url("/blob"))], "");
    other.put("/blob", 200, &[], component());
    let config = json!({ "auths": { (web.address.to_string()): { "auth": auth } } });
    fresh.0.write(".docker/config.json", config.to_string());
    let output = fresh.tenon(&["--json", "install", &web.oci("private")]).await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(*other.heard.lock().unwrap(), [("GET /blob".to_string(), None)]);
    let blobs = web.heard.lock().unwrap();
    assert!(
        blobs
            .iter()
            .any(|(line, who)| line.contains("/blobs/") && who.as_deref() == Some("Bearer known"))
    );
    for said in [stdout(&output), stderr(&output), fresh.text("tenon.lock")] {
        assert!(!said.contains(auth) && !said.contains("known\""), "{said}");
    }
}

#[tokio::test]
async fn credentials_are_told_to_nobody_that_the_registry_does_not_name() {
    let auth = "YWRhOnNlY3JldA==";
    let (web, other) = (Web::start().await, Web::start().await);
    let (_, layer) = web.push("a", "latest", &component(), &json!({}));
    let (manifest, blob) = ("/v2/a/manifests/latest", format!("/v2/a/blobs/{}", layer.named()));
    let is_known = |web: &Web| web.heard.lock().unwrap().iter().any(|(_, who)| who.is_some());
    let check = async |arguments: &[&str], code: i32, because: &str| {
        let home = InstallProject::new();
        let config = json!({ "auths": { (web.address.to_string()): { "auth": auth } } });
        home.0.write(".docker/config.json", config.to_string());
        let source = web.oci("a");
        let said = home.run(&[&["install", &source], arguments].concat(), code).await;
        assert!(said.contains(because), "{said}");
    };
    // Where a registry leads to, nobody may ask for them.
    other.put("/token", 200, &[], r#"{"token":"x"}"#);
    for challenge in
        [format!("Bearer realm=\"{}\"", other.url("/token")), "Basic realm=\"x\"".into()]
    {
        web.put(&blob, 307, &[("location", &other.url("/blob"))], "");
        other.put("/blob", 401, &[("www-authenticate", &challenge)], "");
        check(&[], 5, "/blob responded with 401").await;
        assert_eq!(other.heard(), ["GET /blob"]);
        assert!(!is_known(&web));
    }
    // Nor may a registry have them told in plain text elsewhere.
    let page = web.pages.lock().unwrap()[manifest].clone();
    let ask = |realm: &str| {
        web.put(manifest, 401, &[("www-authenticate", &format!("Bearer realm=\"{realm}\""))], "");
    };
    ask("http://example.com/token");
    for arguments in [&[][..], &["--insecure"]] {
        check(
            arguments,
            3,
            "refusing to send credentials to http://example.com/token over plain HTTP",
        )
        .await;
    }
    // Who gives tokens need not be the registry, if that says so itself.
    ask(&other.url("/token"));
    let token = "/token?scope=repository%3Aa%3Apull";
    other.put(&format!("{token} Basic {auth}"), 200, &[], r#"{"token":"known"}"#);
    web.pages.lock().unwrap().insert(format!("{manifest} Bearer known"), page);
    web.put(&blob, 200, &[], component());
    check(&[], 0, "plugin \"a\"").await;
    // It leads nobody elsewhere who says so.
    let third = Web::start().await;
    other.put(&format!("{token} Basic {auth}"), 307, &[("location", &third.url("/token"))], "");
    check(&[], 5, "authentication required").await;
    assert_eq!(*third.heard.lock().unwrap(), [("GET /token".to_string(), None)]);
}
