//! Reading the skills of plugins.
//!
//! They are files of the plugin, and no call of it. What an approval covered is what is read.

use std::path::Path;
use tenon_config::chain;
use tenon_config::skills::FILE_NAME;
use tenon_types::{ResourceBody, ResourceContents};

use super::Platform;
use crate::call::{CallError, Failure, escape};

impl Platform {
    /// Reads a file of a plugin's skill, by its path in the skill's folder; without a path, the instructions in
    /// its `SKILL.md`. [`RegisteredPlugin::skills`](crate::RegisteredPlugin::skills) lists the skills and their
    /// files. The URI of what is read is `skill://PLUGIN/SKILL/PATH`. In text, invisible characters are escaped
    /// unless `[results] invisible` says otherwise.
    ///
    /// ```no_run
    /// # async fn example(platform: tenon_host::Platform) -> Result<(), tenon_host::CallError> {
    /// for plugin in platform.registry().plugins() {
    ///     for skill in plugin.skills() {
    ///         println!("{}/{}: {}", plugin.id(), skill.name, skill.description);
    ///     }
    /// }
    /// let instructions = platform.read_skill("reviews", "code-review", None).await?;
    /// println!("{:?}", instructions.body);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If there is no such plugin, skill or file, or the file cannot be read or has changed since the plugin
    /// was loaded.
    pub async fn read_skill(
        &self,
        plugin: &str,
        skill: &str,
        path: Option<&str>,
    ) -> Result<ResourceContents, CallError> {
        let registry = self.registry();
        let Some(owner) = registry.plugin(plugin) else {
            let ids = registry.plugins().iter().map(|plugin| &**plugin.id());
            return Err(CallError::not_found("plugin", plugin, ids));
        };
        let names = || owner.skills().iter().map(|skill| skill.name.as_str());
        let skills = owner.loaded().skills().cloned();
        let found = skills.and_then(|skills| {
            let found = skills.get(skill)?.clone();
            Some((skills, found))
        });
        let (skills, found) = found.ok_or_else(|| CallError::not_found("skill", skill, names()))?;
        let path = path.unwrap_or(FILE_NAME).to_string();
        if !found.files().any(|known| known == path) {
            return Err(CallError::not_found("file", &path, found.files()));
        }
        let uri = format!("skill://{plugin}/{skill}/{path}");
        let is_markdown = Path::new(&path).extension().is_some_and(|kind| kind == "md");
        let mime_type = is_markdown.then(|| "text/markdown".to_string());
        let failed = |problem: String| CallError::Failed {
            plugin: owner.id().clone(),
            failure: Failure::Host(problem),
        };
        let read = tokio::task::spawn_blocking(move || skills.read(&found, &path)).await;
        let content = read.map_err(|error| failed(error.to_string()))?;
        let content = content.map_err(|error| failed(chain(&error)))?.unwrap_or_default();
        let body = match String::from_utf8(content) {
            Ok(text) => ResourceBody::Text(text),
            Err(error) => ResourceBody::Blob(error.into_bytes()),
        };
        let mut contents = ResourceContents { uri, mime_type, body, extra: None };
        if !self.inner.invoke_services.results.are_raw() {
            escape::contents(std::slice::from_mut(&mut contents));
        }
        Ok(contents)
    }
}
