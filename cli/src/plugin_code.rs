//! The code of a plugin that is published or installed, looked at and not run.

use std::path::Path;
use tenon_host::{Limits, PluginKind, check_script};

use crate::component::Component;

/// What the code of a plugin is.
pub(crate) enum PluginCode {
    /// A component that exports a world of the contract.
    Component(Box<Component>),
    /// A script that compiles.
    Script,
}

impl PluginCode {
    /// Reads code; the name of its file says whether it is a script.
    pub(crate) fn read(file: &Path, code: &[u8]) -> Result<Self, String> {
        if code.starts_with(b"\0asm") {
            let component = Component::read(code)?;
            return match component.worlds.is_empty() {
                true => {
                    Err("it is not a plugin: it exports no world of the package tenon:plugin"
                        .into())
                }
                false => Ok(Self::Component(component.into())),
            };
        }
        if file.extension().is_none_or(|kind| kind != "rhai") {
            return Err("it is neither a component nor a script".into());
        }
        check_script(file, code.to_vec(), &Limits::default()).map_err(|error| error.to_string())?;
        Ok(Self::Script)
    }

    /// The component, where it is one.
    pub(crate) fn component(&self) -> Option<&Component> {
        match self {
            Self::Component(component) => Some(component),
            Self::Script => None,
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
