//! What a component says of itself to those who only look at it: metadata, and documentation.
//!
//! Both are custom sections. The metadata is that of `wasm-tools metadata`. The documentation is that
//! of the component's world, which decoders of WIT show: a component has the types of interfaces,
//! and none of their comments.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use wasm_metadata::{
    AddMetadata, AddMetadataField, Authors, Description, Homepage, Licenses, Revision, Source,
    Version,
};
use wit_component::DecodedWasm;

/// What is said of a plugin where it is made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PluginMetadata {
    /// Its name.
    pub name: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// What it is for, in a sentence.
    pub description: Option<String>,
    /// Who wrote it, each as `Name <address>` or by name alone.
    pub authors: Vec<String>,
    /// Its licence, as an SPDX expression.
    pub licenses: Option<String>,
    /// Where its source is: a URL.
    pub source: Option<String>,
    /// Where it is presented: a URL.
    pub homepage: Option<String>,
    /// The commit that it was built from.
    pub revision: Option<String>,
}

impl PluginMetadata {
    /// What `cargo metadata` says of a package: an object of its `packages`.
    #[must_use]
    pub fn of_package(package: &Value) -> Self {
        let text = |key: &str| {
            let text = package[key].as_str()?.trim();
            (!text.is_empty()).then(|| text.to_string())
        };
        let authors = package["authors"].as_array().into_iter().flatten();
        Self {
            name: text("name"),
            version: text("version"),
            description: text("description"),
            authors: authors.filter_map(Value::as_str).map(str::to_string).collect(),
            // What it was before there were expressions.
            licenses: text("license").map(|licenses| licenses.replace('/', " OR ")),
            source: text("repository"),
            homepage: text("homepage"),
            revision: None,
        }
    }

    /// What `cargo metadata` says of all packages of a workspace, by their names.
    ///
    /// # Errors
    ///
    /// Where the text is no JSON.
    pub fn of_packages(metadata: &str) -> Result<BTreeMap<String, Self>, serde_json::Error> {
        let metadata: Value = serde_json::from_str(metadata)?;
        let packages = metadata["packages"].as_array().into_iter().flatten().map(Self::of_package);
        let named = packages.filter_map(|about| Some((about.name.clone()?, about)));
        Ok(named.collect())
    }

    /// The same, with what another says where this says nothing.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            name: self.name.or(other.name),
            version: self.version.or(other.version),
            description: self.description.or(other.description),
            authors: if self.authors.is_empty() { other.authors } else { self.authors },
            licenses: self.licenses.or(other.licenses),
            source: self.source.or(other.source),
            homepage: self.homepage.or(other.homepage),
            revision: self.revision.or(other.revision),
        }
    }

    /// The names of the custom sections that say what this says.
    fn sections(&self) -> Vec<&'static str> {
        let said = [
            (true, DOCUMENTATION),
            (self.version.is_some(), "version"),
            (self.description.is_some(), "description"),
            (!self.authors.is_empty(), "authors"),
            (self.licenses.is_some(), "licenses"),
            (self.source.is_some(), "source"),
            (self.homepage.is_some(), "homepage"),
            (self.revision.is_some(), "revision"),
        ];
        said.iter().filter(|(is_said, _)| *is_said).map(|(_, name)| *name).collect()
    }
}

/// Why a component is not described.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DescribeError {
    /// What is said to be its licence is none that can be told.
    #[error("the licence \"{0}\" is no SPDX expression")]
    Licence(String),
    /// What is said to be an address is none.
    #[error("\"{0}\" is no URL")]
    Address(String),
    /// The bytes are no component, or one that cannot be read.
    #[error("what was built is no component: {0}")]
    Component(String),
}

/// The custom section that decoders of WIT take documentation from.
const DOCUMENTATION: &str = "package-docs";

/// A component with metadata and documentation. What it says already and nobody says now, stays.
///
/// # Errors
///
/// Where something that is said cannot be, or the bytes are no component.
pub fn describe(component: &[u8], about: &PluginMetadata) -> Result<Vec<u8>, DescribeError> {
    // A section that is there already would be there twice.
    let cleared = without(component, &about.sections())
        .ok_or_else(|| DescribeError::Component("a section of it is cut off".into()))?;
    let documentation = documentation(component, about)?;
    let mut described = metadata(about)?
        .to_wasm(&cleared)
        .map_err(|error| DescribeError::Component(format!("{error:#}")))?;
    // The first format, of world and nothing else: what is newer, older tools refuse.
    let mut section = vec![0];
    section.extend(json!({ "worlds": { "root": { "docs": documentation } } }).to_string().bytes());
    append(&mut described, DOCUMENTATION, &section);
    Ok(described)
}

fn metadata(about: &PluginMetadata) -> Result<AddMetadata, DescribeError> {
    fn field<T: std::fmt::Debug + Clone>(value: Option<T>) -> AddMetadataField<T> {
        value.map_or(AddMetadataField::Keep, AddMetadataField::Set)
    }
    let PluginMetadata {
        name,
        version,
        description,
        authors,
        licenses,
        source,
        homepage,
        revision,
    } = about;
    let licenses = licenses.as_ref().map(|licenses| {
        Licenses::new(licenses).map_err(|_| DescribeError::Licence(licenses.clone()))
    });
    let source = source
        .as_ref()
        .map(|url| Source::new(url).map_err(|_| DescribeError::Address(url.clone())));
    let homepage = homepage
        .as_ref()
        .map(|url| Homepage::new(url).map_err(|_| DescribeError::Address(url.clone())));
    let authors = (!authors.is_empty()).then(|| authors.join(", "));
    let mut metadata = AddMetadata::default();
    metadata.name = field(name.clone());
    metadata.processed_by = vec![("tenon".into(), env!("CARGO_PKG_VERSION").into())];
    metadata.version = field(version.clone().map(Version::new));
    metadata.description = field(description.clone().map(Description::new));
    metadata.authors = field(authors.map(Authors::new));
    metadata.licenses = field(licenses.transpose()?);
    metadata.source = field(source.transpose()?);
    metadata.homepage = field(homepage.transpose()?);
    metadata.revision = field(revision.clone().map(Revision::new));
    Ok(metadata)
}

/// What there is to read of the world of a component.
fn documentation(component: &[u8], about: &PluginMetadata) -> Result<String, DescribeError> {
    let decoded = wit_component::decode(component)
        .map_err(|error| DescribeError::Component(format!("{error:#}")))?;
    let DecodedWasm::Component(resolve, world) = decoded else {
        return Err(DescribeError::Component("it is a WIT package".into()));
    };
    let world = &resolve.worlds[world];
    let names = |keys: Vec<&wit_parser::WorldKey>| -> Vec<String> {
        let mut names: Vec<_> = keys.iter().map(|key| resolve.name_world_key(key)).collect();
        names.sort_unstable();
        names
    };
    let title: Vec<&str> =
        [&about.name, &about.version].into_iter().flatten().map(|s| &**s).collect();
    let mut text = match (title.is_empty(), &about.description) {
        (false, Some(description)) => format!("{}: {description}", title.join(" ")),
        (false, None) => title.join(" "),
        (true, description) => description.clone().unwrap_or_default(),
    };
    list(&mut text, "It exports:", &names(world.exports.keys().collect()));
    list(&mut text, "It imports:", &names(world.imports.keys().collect()));
    Ok(text.trim_start().to_string())
}

/// Lists interfaces: those of the contract with what it says of them, those of WASI by package.
fn list(text: &mut String, heading: &str, interfaces: &[String]) {
    let sentences = crate::sentences();
    let mut lines: Vec<String> = Vec::new();
    for interface in interfaces {
        let (name, version) = interface.split_once('@').unwrap_or((interface, ""));
        let line = match (sentences.get(name), name.split_once('/')) {
            (Some(sentence), _) => format!("- `{interface}`: {sentence}"),
            (None, Some((package, _))) if package.starts_with("wasi:") => {
                format!("- `{package}@{version}`, as far as its host lends it")
            }
            (None, _) => format!("- `{interface}`"),
        };
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    if !lines.is_empty() {
        let _ = write!(text, "\n\n{heading}\n\n{}", lines.join("\n"));
    }
}

/// The length of what a component begins with: what it is, and the version of the format.
const PREAMBLE: usize = 8;

/// Whether all of a component is there that its sections say they have. Decoders make room for as
/// much as a section claims before they look for it, and so are not given one that claims more. What
/// is inside of a section they hold to its length.
#[must_use]
pub fn is_whole(component: &[u8]) -> bool {
    component.len() >= PREAMBLE && sections(component).all(|section| section.is_some())
}

/// A section of a component.
struct Section<'a> {
    /// Its name, where it is a custom one.
    name: Option<&'a [u8]>,
    /// All of it, with its head.
    bytes: &'a [u8],
}

/// The sections of a component. Where one is cut off, nothing stands for it and the rest.
fn sections(component: &[u8]) -> impl Iterator<Item = Option<Section<'_>>> {
    let mut rest = component.get(PREAMBLE..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (&id, after_id) = rest.split_first()?;
        let section = std::mem::take(&mut rest);
        let read = read_number(after_id);
        let read = read.and_then(|(length, content)| content.split_at_checked(length));
        let Some((content, next)) = read else { return Some(None) };
        rest = next;
        let name = if id == 0 { name_of(content) } else { None };
        Some(Some(Section { name, bytes: &section[..section.len() - next.len()] }))
    })
}

/// A component without the custom sections of these names; nothing where it is cut off.
fn without(component: &[u8], names: &[&str]) -> Option<Vec<u8>> {
    let mut written = component.get(..PREAMBLE)?.to_vec();
    for section in sections(component) {
        let Section { name, bytes } = section?;
        if !names.iter().any(|unwanted| name == Some(unwanted.as_bytes())) {
            written.extend(bytes);
        }
    }
    Some(written)
}

/// Appends a custom section.
fn append(component: &mut Vec<u8>, name: &str, data: &[u8]) {
    let mut content = Vec::new();
    write_number(&mut content, name.len());
    content.extend(name.as_bytes());
    content.extend(data);
    component.push(0);
    write_number(component, content.len());
    component.extend(content);
}

/// The name of a custom section.
fn name_of(content: &[u8]) -> Option<&[u8]> {
    let (length, rest) = read_number(content)?;
    rest.get(..length)
}

/// Reads a number in LEB128, of 32 bits.
fn read_number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut number = 0;
    for (i, byte) in bytes.iter().enumerate().take(5) {
        number |= usize::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            return Some((number, &bytes[i + 1..]));
        }
    }
    None
}

fn write_number(bytes: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A component with nothing in it.
    const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

    #[test]
    fn packages_say_what_they_are() {
        let metadata = r#"{"packages":[{"name":"hello","version":"1.2.3","description":"Greets",
            "authors":["Ada","Charles"],"license":"MIT/Apache-2.0",
            "repository":"https://example.com/hello","homepage":""},{"version":"0.1.0"}]}"#;
        let packages = PluginMetadata::of_packages(metadata).unwrap();
        let expected = PluginMetadata { revision: None, ..about() };
        assert_eq!(packages, BTreeMap::from([("hello".to_string(), expected)]));
        assert!(PluginMetadata::of_packages("no").is_err());
    }

    fn about() -> PluginMetadata {
        PluginMetadata {
            name: Some("hello".into()),
            version: Some("1.2.3".into()),
            description: Some("Greets".into()),
            authors: vec!["Ada".into(), "Charles".into()],
            licenses: Some("MIT OR Apache-2.0".into()),
            source: Some("https://example.com/hello".into()),
            homepage: None,
            revision: Some("0123abc".into()),
        }
    }

    #[test]
    fn what_is_said_can_be_read() {
        let described = describe(EMPTY, &about()).unwrap();
        let payload = wasm_metadata::Payload::from_binary(&described).unwrap();
        let metadata = payload.metadata();
        let text = |value: Option<&dyn ToString>| value.map(ToString::to_string);
        assert_eq!(metadata.name.as_deref(), Some("hello"));
        assert_eq!(text(metadata.authors.as_ref().map(|a| a as _)).unwrap(), "Ada, Charles");
        assert_eq!(text(metadata.licenses.as_ref().map(|l| l as _)).unwrap(), "MIT OR Apache-2.0");
        assert_eq!(text(metadata.revision.as_ref().map(|r| r as _)).unwrap(), "0123abc");
        let Ok(DecodedWasm::Component(resolve, world)) = wit_component::decode(&described) else {
            panic!("it is a component");
        };
        let docs = resolve.worlds[world].docs.contents.as_deref();
        assert_eq!(docs, Some("hello 1.2.3: Greets"));
    }

    #[test]
    fn who_is_described_again_says_the_same_once() {
        let once = describe(EMPTY, &about()).unwrap();
        assert_eq!(describe(&once, &about()).unwrap(), once);
    }

    #[test]
    fn what_cannot_be_is_named() {
        let check = |about: PluginMetadata, expected: &str| {
            assert_eq!(describe(EMPTY, &about).unwrap_err().to_string(), expected);
        };
        let licenses = Some("my own".into());
        check(
            PluginMetadata { licenses, ..about() },
            "the licence \"my own\" is no SPDX expression",
        );
        check(
            PluginMetadata { homepage: Some("example".into()), ..about() },
            "\"example\" is no URL",
        );
    }

    #[test]
    fn a_component_is_whole_if_its_sections_are() {
        let check = |section: &[u8], expected: bool| {
            let component = [EMPTY, section].concat();
            assert_eq!(is_whole(&component), expected, "{section:?}");
            assert_eq!(describe(&component, &about()).is_ok(), expected, "{section:?}");
        };
        check(b"", true);
        check(b"\0\x03\x01bx", true);
        check(b"\0\x03\x01b", false);
        check(b"\0", false);
        // It claims four gigabytes.
        check(b"\x0a\xff\xff\xff\xff\x0f", false);
        check(b"\0\x03\x01bx\x04\xff\xff\xff\xff\x0f\0asm", false);
        check(b"\x0a\xff\xff\xff\xff\xff\xff", false);
        assert!(!is_whole(b"\0asm"));
        // Decoders hold what is inside of a section to its length.
        let inside = [&b"\x04\x0e"[..], EMPTY, b"\x0a\xff\xff\xff\xff\x0f"].concat();
        let component = [EMPTY, &inside].concat();
        assert!(is_whole(&component) && describe(&component, &about()).is_err());
    }

    #[test]
    fn sections_are_kept_or_left_out() {
        let mut component = EMPTY.to_vec();
        append(&mut component, "a", &[1; 300]);
        append(&mut component, "b", b"x");
        assert!(component.ends_with(b"\0\x03\x01bx"));
        assert_eq!(without(&component, &[]).as_deref(), Some(&component[..]));
        assert_eq!(without(&component, &["a"]).unwrap(), [EMPTY, b"\0\x03\x01bx"].concat());
        assert_eq!(without(&component, &["a", "b"]).unwrap(), EMPTY);
        assert_eq!(without(&component[..component.len() - 1], &["a"]), None);
    }
}
