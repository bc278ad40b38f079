//! Plugins in Rust, which Cargo makes.

use serde_json::Value;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use tenon_config::files::{self, MAX_COMPONENT_BYTES};
use tokio::process::Command;

use super::{BuildProfile, BuildTool, run, run_to_end, text};
use crate::error::Error;
use tenon_contract::PluginMetadata;

const TARGET: &str = "wasm32-wasip2";

const CARGO: BuildTool<'_> = BuildTool {
    name: "cargo",
    program: "cargo",
    install: "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh",
};

/// A setting of one of Cargo's profiles: its key, the variable that sets it, and its value.
type ProfileSetting = (&'static str, &'static str, &'static str);

/// What makes components small.
const RELEASE: &[ProfileSetting] = &[
    ("opt-level", "CARGO_PROFILE_RELEASE_OPT_LEVEL", "s"),
    ("lto", "CARGO_PROFILE_RELEASE_LTO", "true"),
    ("codegen-units", "CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1"),
    ("panic", "CARGO_PROFILE_RELEASE_PANIC", "abort"),
    ("strip", "CARGO_PROFILE_RELEASE_STRIP", "symbols"),
];

/// What makes builds fast, and lets a backtrace have lines. Without any optimization a component is so large that the host
/// takes longer to compile it than Cargo to build it.
const DEBUG: &[ProfileSetting] = &[
    ("opt-level", "CARGO_PROFILE_DEV_OPT_LEVEL", "1"),
    ("debug", "CARGO_PROFILE_DEV_DEBUG", "line-tables-only"),
    ("panic", "CARGO_PROFILE_DEV_PANIC", "abort"),
];

impl BuildProfile {
    /// The name of Cargo's profile in manifests, its option for the command, and its settings.
    fn of_cargo(self) -> (&'static str, &'static str, &'static [ProfileSetting]) {
        match self {
            Self::Release => ("release", "--release", RELEASE),
            Self::Debug => ("dev", "--profile=dev", DEBUG),
        }
    }
}

pub(super) async fn build(
    folder: &Path,
    profile: BuildProfile,
) -> Result<(Vec<u8>, PluginMetadata), Error> {
    let folder = &folder.canonicalize().map_err(|error| Error::Read(folder.into(), error))?;
    let manifest = folder.join("Cargo.toml");
    let metadata = metadata(folder).await?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let is_it = |package: &&Value| {
        text(package, "manifest_path").map(PathBuf::from) == Some(manifest.clone())
    };
    let Some(package) = { packages }.find(is_it) else {
        return Err(Error::Input(format!("{} has no package", manifest.display())));
    };
    let root = text(&metadata, "workspace_root").map_or_else(|| folder.clone(), PathBuf::from);
    let mut command = cargo(folder);
    let (name, option, settings) = profile.of_cargo();
    command.args(["build", option, "--target", TARGET, "--lib"]);
    command.arg(match io::stderr().is_terminal() {
        true => "--message-format=json-diagnostic-rendered-ansi",
        false => "--message-format=json",
    });
    let own = own_profile(&root, name)?;
    for &(key, variable, value) in settings {
        // What the project says itself holds, and so does what the user says.
        if own.get(key).is_none() && std::env::var_os(variable).is_none() {
            command.env(variable, value);
        }
    }
    let (status, said) = run_to_end(&CARGO, command).await?;
    if !status.success() && !has_target(folder).await {
        let install = format!("rustup target add {TARGET}");
        return Err(Error::Missing { tool: format!("the target {TARGET} of Rust"), install });
    }
    let messages = cargo_messages(&said);
    for message in &messages {
        // Where standard error is closed there is nobody to tell.
        let rendered = message["message"]["rendered"].as_str().unwrap_or_default();
        let _ = crate::progress::stderr().write_all(rendered.as_bytes());
    }
    if !status.success() {
        return Err(first_error(&messages).map_or_else(|| CARGO.failed(status), Error::NotBuilt));
    }
    let component = component(&messages, text(package, "id").as_deref()).ok_or_else(|| {
        let wanted = "a library whose crate-type is \"cdylib\"";
        Error::Input(format!("{} makes no component: it needs {wanted}", manifest.display()))
    })?;
    let bytes = files::read(&component, MAX_COMPONENT_BYTES);
    let bytes = bytes.map_err(|error| Error::Read(component, error))?;
    Ok((bytes, PluginMetadata::of_package(package)))
}

/// Cargo in a folder: the one that runs us, or else that of `PATH`.
pub(crate) fn cargo(folder: &Path) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from(CARGO.program));
    let mut command = Command::new(program);
    command.current_dir(folder);
    command
}

/// What Cargo knows of the package, with what its workspace says of it.
async fn metadata(folder: &Path) -> Result<Value, Error> {
    let mut command = cargo(folder);
    command.args(["metadata", "--no-deps", "--format-version", "1"]);
    let said = run(&CARGO, command).await?;
    serde_json::from_slice(&said)
        .map_err(|error| Error::Host(format!("the answer of cargo metadata: {error}")))
}

/// What a workspace says of a profile.
fn own_profile(root: &Path, name: &str) -> Result<toml::Table, Error> {
    let file = root.join("Cargo.toml");
    let text = std::fs::read_to_string(&file).map_err(|error| Error::Read(file.clone(), error))?;
    let manifest: toml::Table = toml::from_str(&text)
        .map_err(|error| Error::Input(format!("{}: {error}", file.display())))?;
    let profile = manifest.get("profile").and_then(|profiles| profiles.get(name));
    Ok(profile.and_then(toml::Value::as_table).cloned().unwrap_or_default())
}

/// What Cargo prints, in the form of its
/// [external tools](https://doc.rust-lang.org/cargo/reference/external-tools.html#json-messages).
fn cargo_messages(said: &[u8]) -> Vec<Value> {
    let lines = said.split(|byte| *byte == b'\n');
    lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// The first error of the compiler, with its place, and how many others there are.
fn first_error(messages: &[Value]) -> Option<String> {
    let errors = messages.iter().map(|message| &message["message"]);
    // The last of them only counts them.
    let mut errors = errors.filter(|error| {
        let spans = error["spans"].as_array();
        error["level"] == "error" && spans.is_some_and(|spans| !spans.is_empty())
    });
    let first = errors.next()?;
    let span = first["spans"].as_array()?.iter().find(|span| span["is_primary"] == true)?;
    let file = span["file_name"].as_str()?;
    let (line, column) = (&span["line_start"], &span["column_start"]);
    let others = match errors.count() {
        0 => String::new(),
        1 => "; there is 1 more error".to_string(),
        others => format!("; there are {others} more errors"),
    };
    Some(format!("{file}:{line}:{column}: {}{others}", first["message"].as_str()?))
}

/// The component among what Cargo has made: that of the package itself.
fn component(messages: &[Value], package: Option<&str>) -> Option<PathBuf> {
    let mut made = messages.iter().filter(|message| {
        message["reason"] == "compiler-artifact" && message["package_id"].as_str() == package
    });
    made.find_map(|message| {
        let files = message["filenames"].as_array()?.iter().filter_map(Value::as_str);
        { files }
            .map(PathBuf::from)
            .find(|file| file.extension().is_some_and(|kind| kind == "wasm"))
    })
}

/// Whether there is a standard library to compile with, as far as that can be told.
async fn has_target(folder: &Path) -> bool {
    let mut command = Command::new("rustc");
    command.args(["--print", "target-libdir", "--target", TARGET]).current_dir(folder);
    match command.output().await {
        Ok(output) => Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir(),
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_error_is_told_with_its_place() {
        let message = |level: &str, text: &str, line: u32| {
            let span = json!({ "file_name": "src/lib.rs", "is_primary": true, "line_start": line, "column_start": 5 });
            json!({ "reason": "compiler-message", "message": { "level": level, "message": text, "spans": [span] } })
        };
        let count = json!({ "reason": "compiler-message", "message": { "level": "error", "message": "aborting", "spans": [] } });
        let check = |messages: &[Value], expected: Option<&str>| {
            let said = messages.iter().map(|message| format!("{message}\n")).collect::<String>();
            assert_eq!(first_error(&cargo_messages(said.as_bytes())).as_deref(), expected);
        };
        let (warning, first) = (message("warning", "unused", 1), message("error", "no `x`", 3));
        check(&[warning.clone(), first.clone(), count.clone()], Some("src/lib.rs:3:5: no `x`"));
        let more = "src/lib.rs:3:5: no `x`; there is 1 more error";
        check(&[first.clone(), message("error", "no `y`", 4)], Some(more));
        check(&[warning, count], None);
    }
}
