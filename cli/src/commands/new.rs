//! `tenon new`

use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::error::Error;
use crate::new_folder::{NewFolder, check_id};
use crate::open::trust;
use crate::templates::{Language, Made, ProjectSpec, SdkSource, World, files};
use crate::{Common, output};

/// Create the project of a new plugin
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tenon new hello
  tenon new shortness --world eval --lang python
  tenon new notes --world resource --lang typescript
  tenon new hello --sdk ../tenon/sdk

The folder gets a plugin that builds, a test that passes, and a README.md with the commands. Existing \
files are not overwritten.")]
pub(crate) struct Args {
    /// The plugin's id, and the name of the new folder
    name: String,
    /// What the plugin contributes
    #[arg(long, value_name = "WORLD", default_value = "tool")]
    world: World,
    /// The language
    #[arg(long, value_name = "LANGUAGE", default_value = "rust")]
    lang: Language,
    /// The folder `sdk` of a checkout of Tenon, in place of the package in a registry; the variable TENON_SDK
    /// means the same
    #[arg(long, value_name = "PATH")]
    sdk: Option<PathBuf>,
}

pub(crate) fn run(common: &Common, args: Args) -> Result<ExitCode, Error> {
    let Args { name, world, lang, sdk } = args;
    check_name(&name, lang)?;
    let sdk = match (lang, sdk) {
        (Language::Rhai | Language::Other, None) => SdkSource::Registry,
        (Language::Rhai | Language::Other, Some(_)) => {
            return Err(Error::Input(format!("--sdk: there is no SDK for {lang}")));
        }
        (_, sdk) => sdk_source(sdk)?,
    };
    let folder = NewFolder::of(common, &name)?;
    let is_nested = lang == Language::Rust && lies_in_package(folder.path());
    let order = ProjectSpec { name: &name, world, language: lang, sdk: &sdk, is_nested };
    let Some(files) = files(&order) else {
        let problem =
            "a script cannot provide language models; choose another language with --lang";
        return Err(Error::Input(problem.into()));
    };
    folder.write(&files)?;
    trust::trust_new(common, folder.path())?;
    show(common, folder.path(), &files, &order)
}

fn show(
    common: &Common,
    folder: &Path,
    files: &[Made],
    order: &ProjectSpec<'_>,
) -> Result<ExitCode, Error> {
    let paths: Vec<&str> = files.iter().map(|(path, _)| path.as_str()).collect();
    if common.json {
        output::json(&json!({
            "folder": folder.to_string_lossy(),
            "files": paths,
            "commands": order.commands(),
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    // The contract is many files of which nobody writes one.
    let contract = paths.iter().filter(|path| path.starts_with("wit/deps/")).count();
    for path in paths.iter().filter(|path| !path.starts_with("wit/deps/")) {
        output::line(folder.join(path).display())?;
    }
    if contract > 0 {
        output::line(format!("{} ({contract} files)", folder.join("wit/deps").display()))?;
    }
    output::line(format!("\nIn {}:", folder.display()))?;
    if let Some((package, registry)) = order.registry_package() {
        output::line(format!(
            "  ({package} is taken from {registry}; `--sdk`, or TENON_SDK, names the folder of one)"
        ))?;
    }
    for command in order.commands() {
        output::line(format!("  {command}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Names that Cargo or Rust have a meaning of their own for.
const TAKEN: [&str; 59] = [
    "abstract",
    "alloc",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "build",
    "const",
    "continue",
    "core",
    "crate",
    "deps",
    "do",
    "dyn",
    "else",
    "enum",
    "examples",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "incremental",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "proc-macro",
    "proc_macro",
    "pub",
    "ref",
    "return",
    "self",
    "static",
    "std",
    "struct",
    "super",
    "tenon-sdk",
    "tenon_sdk",
    "test",
    "trait",
    "true",
    "try",
    "type",
    "unsafe",
    "use",
    "where",
    "while",
];

fn check_name(name: &str, language: Language) -> Result<(), Error> {
    check_id(name)?;
    let is_crate = !name.starts_with(|c: char| c.is_ascii_digit()) && !TAKEN.contains(&name);
    match language == Language::Rust && !is_crate {
        true => Err(Error::Input(format!(
            "`{name}` is not a valid crate name: it must begin with a letter, and not be a Rust keyword or a standard crate"
        ))),
        false => Ok(()),
    }
}

/// Where the SDK is taken from: the folder that is named, or else the registry.
fn sdk_source(sdk: Option<PathBuf>) -> Result<SdkSource, Error> {
    let named = std::env::var_os("TENON_SDK").filter(|path| !path.is_empty()).map(PathBuf::from);
    let Some(folder) = sdk.or(named) else { return Ok(SdkSource::Registry) };
    let folder = folder.canonicalize().map_err(|error| Error::Read(folder, error))?;
    if !is_sdk(&folder) {
        let meant = folder.join("sdk");
        let meant = match is_sdk(&meant) {
            true => format!("; did you mean {}?", meant.display()),
            false => String::new(),
        };
        let problem = format!("{} is not the folder `sdk` of a checkout{meant}", folder.display());
        return Err(Error::Input(problem));
    }
    Ok(SdkSource::Checkout(folder))
}

/// Whether a folder is that of the SDK's crate.
fn is_sdk(folder: &Path) -> bool {
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).ok();
    let manifest = manifest.and_then(|text| text.parse::<toml::Table>().ok());
    let name = manifest.as_ref().and_then(|manifest| manifest.get("package")?.get("name"));
    name.and_then(toml::Value::as_str) == Some("tenon-sdk")
}

/// Whether a folder lies in that of a package or workspace.
fn lies_in_package(folder: &Path) -> bool {
    let Ok(folder) = std::path::absolute(folder) else { return false };
    folder.ancestors().skip(1).any(|folder| folder.join("Cargo.toml").exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let check = |name: &str, language, expected: Option<&str>| {
            let error = check_name(name, language).err().map(|error| error.to_string());
            let said = error.as_deref().unwrap_or_default();
            assert_eq!(error.is_some(), expected.is_some(), "{name}");
            assert!(said.contains(expected.unwrap_or_default()), "{said}");
        };
        check("hello-world_2", Language::Rust, None);
        check("Hello", Language::Rust, Some("begin with a letter or digit"));
        check("../x", Language::Python, Some("invalid plugin id"));
        check("", Language::Rhai, Some("invalid plugin id"));
        check("2fast", Language::Rust, Some("not a valid crate name"));
        check("match", Language::Rust, Some("not a valid crate name"));
        check("2fast", Language::Python, None);
        check("match", Language::JavaScript, None);
    }
}
