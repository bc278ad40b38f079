//! The code of a plugin that is published or installed, looked at and not run.

use std::path::Path;
use tenon_host::{Limits, PluginKind, check_script};

use crate::component::Component;
use crate::fetch::FetchedPlugin;

/// What the code of a plugin is.
pub(crate) enum CheckedCode {
    /// A component that exports a world of the contract.
    Component(Box<Component>),
    /// A script that compiles.
    Script,
}

impl CheckedCode {
    /// Reads the code of a plugin that was fetched. It is what its source says that it is.
    pub(crate) fn read(fetched: &FetchedPlugin) -> Result<Self, String> {
        let FetchedPlugin { file, code, kind, .. } = fetched;
        let is_component = code.starts_with(b"\0asm");
        let is_script = match kind {
            Some(kind) => *kind == PluginKind::Rhai,
            None => !is_component && file.extension().is_some_and(|kind| kind == "rhai"),
        };
        match (is_script, is_component) {
            (true, true) => Err("it is said to be a script, and is a component".into()),
            (true, false) => script(file, code),
            (false, true) => component(code),
            (false, false) if kind.is_some() => {
                Err("it is said to be a component, and is none".into())
            }
            (false, false) => Err("it is neither a component nor a script".into()),
        }
    }

    /// The component, where it is one.
    pub(crate) fn component(&self) -> Option<&Component> {
        match self {
            Self::Component(component) => Some(component),
            Self::Script => None,
        }
    }

    /// Says that it is a build to find mistakes with. What others install is smaller without that.
    pub(crate) fn warn_of_debug_build(&self, path: &str) {
        if self.component().is_some_and(|component| component.has_debug_info) {
            tracing::warn!(
                "{path} has debug information; `tenon build` makes it without, and smaller"
            );
        }
    }

    /// The kind of the plugin.
    pub(crate) fn kind(&self) -> PluginKind {
        match self {
            Self::Component(_) => PluginKind::Wasm,
            Self::Script => PluginKind::Rhai,
        }
    }
}

fn component(code: &[u8]) -> Result<CheckedCode, String> {
    let component = Component::read(code)?;
    match component.worlds.is_empty() {
        true => Err("it is not a plugin: it exports no world of the package tenon:plugin".into()),
        false => Ok(CheckedCode::Component(component.into())),
    }
}

fn script(file: &Path, code: &[u8]) -> Result<CheckedCode, String> {
    check_script(file, code.to_vec(), &Limits::default()).map_err(|error| error.to_string())?;
    Ok(CheckedCode::Script)
}
