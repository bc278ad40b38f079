//! What paths in a plugin's manifest and settings are expanded with, and where a plugin keeps data of its own. How a text
//! is expanded is left to [`expand`].

use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

use crate::expand::{self, ExpandError};
use crate::files::Digest;
use crate::host_environment::HostEnvironment;

/// How much of the digest of a project's path names its plugins' data.
const PROJECT_DIGITS: usize = 16;

/// What the paths that a plugin names are expanded with.
#[derive(Debug, Clone, Copy)]
pub struct PathContext<'a> {
    /// The environment, for variables and `~`.
    pub host_environment: &'a HostEnvironment,
    /// The folder in which relative paths begin.
    pub folder: &'a Path,
    /// The plugin's folder for data of its own: `${data}`.
    pub data_folder: Option<&'a Path>,
}

impl<'a> PathContext<'a> {
    /// The context of somebody who has no folder for data.
    pub fn new(host_environment: &'a HostEnvironment, folder: &'a Path) -> Self {
        Self { host_environment, folder, data_folder: None }
    }

    /// The context of relative and absolute paths alone: nothing is known of a home, of variables and of data.
    pub fn in_folder(folder: &'a Path) -> Self {
        static NOTHING: HostEnvironment = HostEnvironment::EMPTY;
        Self::new(&NOTHING, folder)
    }

    /// Expands `~` and `${data}` at the beginning of each text in a plugin's settings.
    ///
    /// # Errors
    ///
    /// Says which setting begins with a folder that is not known.
    pub fn expand_settings(&self, settings: &mut Map<String, Value>) -> Result<(), String> {
        for (key, value) in settings {
            self.expand_setting(value).map_err(|error| format!("its setting `{key}`: {error}"))?;
        }
        Ok(())
    }

    fn expand_setting(&self, value: &mut Value) -> Result<(), ExpandError> {
        match value {
            Value::String(text) => {
                *text = expand::setting(text, self.host_environment, self.data_folder)?;
                Ok(())
            }
            Value::Array(items) => items.iter_mut().try_for_each(|item| self.expand_setting(item)),
            Value::Object(members) => {
                members.values_mut().try_for_each(|member| self.expand_setting(member))
            }
            _ => Ok(()),
        }
    }
}

/// The folder in which a plugin keeps data of its own. Plugins of one id that two projects bring have two: what one keeps
/// is not for the other. The project is named by its real path.
pub(crate) fn data_folder(
    host_environment: &HostEnvironment,
    id: &str,
    project: Option<&Path>,
) -> Option<PathBuf> {
    let all = host_environment.data.as_ref()?;
    Some(match project {
        None => all.join("plugins").join(id),
        Some(project) => {
            debug_assert!(project.is_absolute(), "it would be that of every project");
            let digest = Digest::of(project.as_os_str().as_encoded_bytes()).to_string();
            let digits = digest.trim_start_matches("sha256:");
            all.join("projects").join(&digits[..PROJECT_DIGITS]).join(id)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn host_environment() -> HostEnvironment {
        HostEnvironment {
            home: Some("/home/u".into()),
            data: Some("/data".into()),
            ..HostEnvironment::default()
        }
    }

    fn expanded(setting: Value, data_folder: Option<&Path>) -> Result<Value, String> {
        let host_environment = host_environment();
        let context =
            PathContext { data_folder, ..PathContext::new(&host_environment, Path::new("/")) };
        let mut settings = Map::from_iter([("key".to_string(), setting)]);
        context.expand_settings(&mut settings)?;
        Ok(settings.remove("key").unwrap())
    }

    #[test]
    fn settings_that_begin_with_a_folder() {
        let check = |setting: Value, expected: Value| {
            let data = Some(Path::new("/data/plugins/notes"));
            assert_eq!(expanded(setting, data).unwrap(), expected);
        };
        check(json!("~"), json!("/home/u"));
        check(json!("~/notes"), json!("/home/u/notes"));
        check(json!("${data}"), json!("/data/plugins/notes"));
        check(json!({ "a": ["${data}/a b"] }), json!({ "a": ["/data/plugins/notes/a b"] }));
        // These are no folders, and variables are not for plugins.
        for other in ["~ada/x", "~x", "a ~/b", "${HOME}/x", "$data", "${database}", "x/${data}"] {
            check(json!(other), json!(other));
        }
        check(json!(7), json!(7));
    }

    #[test]
    fn a_setting_without_its_folder_is_named() {
        let error = expanded(json!("${data}/x"), None).unwrap_err();
        assert_eq!(error, "its setting `key`: no folder is known for ${data}");
    }

    #[test]
    fn plugins_of_one_id_have_a_folder_in_each_project() {
        let of = |project: Option<&str>| {
            data_folder(&host_environment(), "notes", project.map(Path::new)).unwrap()
        };
        assert_eq!(of(None), Path::new("/data/plugins/notes"));
        assert!(of(Some("/a")).starts_with("/data/projects"), "{}", of(Some("/a")).display());
        assert_ne!(of(Some("/a")), of(Some("/b")));
        assert_eq!(data_folder(&HostEnvironment::default(), "notes", None), None);
    }
}
