//! The resources, resource templates and prompts of a plugin. Its registration says only whether it has any, so it is
//! asked for them.

use tenon_host::{CallError, Caller, Failure, Platform};

/// What a plugin lists, by the names that its users call for it.
#[derive(Debug, Default)]
pub(crate) struct ListedByPlugin {
    /// The URIs of its resources.
    pub(crate) resources: ListedNames,
    /// Its resource templates.
    pub(crate) templates: ListedNames,
    /// The names of its prompts.
    pub(crate) prompts: ListedNames,
}

/// One of a plugin's lists.
#[derive(Debug)]
pub(crate) struct ListedNames(pub(crate) Result<Vec<String>, CallError>);

impl Default for ListedNames {
    fn default() -> Self {
        Self(Ok(Vec::new()))
    }
}

impl ListedNames {
    fn new<T>(listed: Result<Vec<T>, CallError>, name: impl Fn(T) -> String) -> Self {
        Self(match listed {
            Ok(items) => Ok(items.into_iter().map(name).collect()),
            // Not every plugin with resources has templates, and the operator may want no list.
            Err(
                CallError::Disabled { .. }
                | CallError::Failed { failure: Failure::Unsupported(_), .. },
            ) => Ok(Vec::new()),
            Err(error) => Err(error),
        })
    }

    /// The names; none where they are not known.
    pub(crate) fn names(&self) -> &[String] {
        self.0.as_deref().unwrap_or_default()
    }

    /// How many there are, where that is known.
    pub(crate) fn count(&self) -> Option<usize> {
        self.0.as_ref().ok().map(Vec::len)
    }
}

impl ListedByPlugin {
    /// Asks a plugin for all that it lists.
    pub(crate) async fn of(platform: &Platform, plugin: &str) -> Self {
        let (registry, caller) = (platform.registry(), Caller::default());
        let Some(registered) = registry.plugin(plugin) else { return Self::default() };
        let mut listing = Self::default();
        if registered.has_prompts() {
            let prompts = platform.prompts(plugin, &caller).await;
            listing.prompts = ListedNames::new(prompts, |prompt| prompt.name);
        }
        if registered.has_resources() {
            let resources = platform.resources(plugin, &caller).await;
            listing.resources = ListedNames::new(resources, |resource| resource.link.uri);
            let templates = platform.resource_templates(plugin, &caller).await;
            listing.templates = ListedNames::new(templates, |template| template.uri_template);
        }
        listing
    }

    /// The lists, by what they are of.
    pub(crate) fn parts(&self) -> [(&'static str, &ListedNames); 3] {
        let Self { resources, templates, prompts } = self;
        [("resources", resources), ("resource templates", templates), ("prompts", prompts)]
    }
}
