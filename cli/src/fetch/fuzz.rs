//! References, challenges and manifests of any text.

use super::reference::Reference;
use super::registry::{CodeLayer, ImageManifest, parameters};

/// Any text: on the first line a reference, on the second a challenge, and then a manifest. A reference and a
/// manifest are the same when they are written and read again, and a reference leads to no other host
/// than the one that it names.
pub fn oci_manifest(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let (second, manifest) = rest.split_once('\n').unwrap_or((rest, ""));
    match first.parse::<Reference>() {
        Ok(reference) => {
            assert_eq!(reference.to_string(), first);
            let Reference { registry, repository, .. } = &reference;
            let text =
                format!("https://{registry}/v2/{repository}/manifests/{}", reference.wanted());
            let url = url::Url::parse(&text).expect("it makes a URL");
            let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
            let host = format!("{}{port}", url.host_str().unwrap_or_default());
            assert!(*registry == host || *registry == format!("{host}:443"), "{url}");
            let path = format!("/v2/{repository}/manifests/{}", reference.wanted());
            assert_eq!((url.path(), url.query(), url.fragment()), (&*path, None, None));
            assert_eq!((url.username(), url.password()), ("", None));
        }
        Err(problem) => assert!(!problem.trim().is_empty(), "it is none for no reason"),
    }
    for (name, value) in parameters(second) {
        assert_eq!(name, name.to_ascii_lowercase());
        assert_eq!(value, value.trim());
    }
    if let Ok(manifest) = serde_json::from_str::<ImageManifest>(manifest) {
        let written = serde_json::to_string(&manifest).expect("what was read can be written");
        let again: ImageManifest = serde_json::from_str(&written).expect("it can be read again");
        assert_eq!(serde_json::to_string(&again).expect("it was written"), written);
        // What is fetched is what the one layer says: the digest becomes part of a URL and of a file's name.
        if let Ok(CodeLayer { digest, size, .. }) = manifest.code() {
            let tree: serde_json::Value = serde_json::from_str(&written).expect("it is JSON");
            let layers = tree["layers"].as_array().expect("there are layers");
            assert_eq!(layers.len(), 1);
            assert_eq!(layers[0]["digest"], digest.named());
            assert_eq!(layers[0]["size"], size);
            let named = digest.named();
            let (algorithm, digits) = named.split_at("sha256:".len());
            assert!(algorithm == "sha256:" && digits.len() == 64, "{algorithm}{digits}");
            assert!(digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')));
        }
    }
}
