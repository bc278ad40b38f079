//! What plugins have listed: the items, and which plugin has each.

use std::collections::HashMap;
use std::sync::Arc;
use tenon_host::Registry;
use tenon_uri_template::UriTemplate;

use super::{Item, Profile};

/// A plugin, and its own name for what a client named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NameInPlugin {
    pub(crate) plugin: Arc<str>,
    pub(crate) name: String,
}

/// A template, for URIs that are made of it.
struct OwnedTemplate {
    /// What may be made of it, if that can be told exactly.
    parsed: Option<UriTemplate>,
    /// The text before its first variable.
    fixed: String,
    owner: NameInPlugin,
}

/// What plugins have listed of a kind.
#[derive(Default)]
pub(crate) struct Listed {
    items: Vec<String>,
    owners: HashMap<String, NameInPlugin>,
    templates: Vec<OwnedTemplate>,
}

impl Listed {
    /// The items, as JSON.
    pub(crate) fn items(&self) -> &[String] {
        &self.items
    }

    /// Adds what a plugin has, if the profile offers it. Of two with one name the first stays.
    pub(super) fn add(
        &mut self,
        registry: &Registry,
        profile: &Profile,
        plugin: &Arc<str>,
        mut item: Item,
    ) {
        let (shown, own) = match &mut item {
            Item::Resource(resource) => (resource.link.uri.clone(), resource.link.uri.clone()),
            Item::Template(template) => {
                (template.uri_template.clone(), template.uri_template.clone())
            }
            Item::Prompt(prompt) => {
                let own = prompt.name.clone();
                if profile.prefix
                    && let Some(name) = registry.rendered_name(plugin, &own)
                {
                    prompt.name = name.to_string();
                }
                (prompt.name.clone(), own)
            }
        };
        let is_offered = match &item {
            Item::Resource(_) => profile.offers_resource(&shown),
            Item::Template(_) => profile.offers_template(&shown),
            Item::Prompt(_) => profile.offers_prompt(&shown),
        };
        if !is_offered {
            return;
        }
        let owner = NameInPlugin { plugin: plugin.clone(), name: own };
        if let Some(other) = self.owners.get(&shown) {
            let other = &other.plugin;
            tracing::warn!(
                "{shown:?} of plugin \"{plugin}\" is left out: plugin \"{other}\" has it"
            );
            return;
        }
        if let Item::Template(template) = &item {
            let text = &template.uri_template;
            let fixed = text.split('{').next().unwrap_or_default().to_string();
            let parsed = UriTemplate::parse(text).ok();
            self.templates.push(OwnedTemplate { parsed, fixed, owner: owner.clone() });
        }
        self.items.push(item.json());
        self.owners.insert(shown, owner);
    }

    /// Who has what is called this.
    pub(super) fn owner(&self, name: &str) -> Option<NameInPlugin> {
        self.owners.get(name).cloned()
    }

    /// Who has a template that a URI is made of. Where several have one that may be, it is the one with the longest
    /// beginning.
    pub(super) fn owner_by_template(&self, uri: &str) -> Option<NameInPlugin> {
        let fits = |template: &&OwnedTemplate| match &template.parsed {
            Some(parsed) => parsed.matches(uri).is_some(),
            None => uri.starts_with(&template.fixed),
        };
        let fitting = self.templates.iter().rev().filter(fits);
        let best = fitting.max_by_key(|template| template.fixed.len())?;
        Some(NameInPlugin { plugin: best.owner.plugin.clone(), name: uri.into() })
    }

    /// The one plugin that has URIs with this scheme.
    pub(super) fn owner_by_scheme(&self, uri: &str) -> Option<NameInPlugin> {
        let scheme = uri.split_once(':')?.0;
        let has = |known: &str| known.split_once(':').is_some_and(|(other, _)| other == scheme);
        let mut owners = self.owners.iter().filter(|(known, _)| has(known)).map(|(_, owner)| owner);
        let plugin = owners.next()?.plugin.clone();
        let is_only = owners.all(|other| other.plugin == plugin);
        is_only.then(|| NameInPlugin { plugin, name: uri.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_host::types::{ListedResource, ResourceLink, ResourceTemplate};

    fn resource(uri: &str) -> Item {
        let (uri, name) = (uri.to_string(), "n".to_string());
        let link =
            ResourceLink { uri, name, title: None, description: None, mime_type: None, size: None };
        Item::Resource(ListedResource { link, extra: None })
    }

    fn template(uri_template: &str) -> Item {
        Item::Template(ResourceTemplate {
            uri_template: uri_template.into(),
            name: "n".into(),
            title: None,
            description: None,
            mime_type: None,
            extra: None,
        })
    }

    fn listed(items: Vec<(&str, Item)>) -> Listed {
        let mut listed = Listed::default();
        for (plugin, item) in items {
            listed.add(&Registry::default(), &Profile::default(), &plugin.into(), item);
        }
        listed
    }

    #[test]
    fn of_two_with_one_uri_the_first_has_it() {
        let listed =
            listed(vec![("a", resource("x:1")), ("b", resource("x:1")), ("b", resource("y:1"))]);
        assert_eq!(listed.items().len(), 2);
        assert_eq!(&*listed.owner("x:1").unwrap().plugin, "a");
        assert_eq!(&*listed.owner("y:1").unwrap().plugin, "b");
        assert_eq!(listed.owner("z:1"), None);
    }

    #[test]
    fn a_uri_is_of_the_template_that_says_most_of_it() {
        let listed = listed(vec![
            ("a", template("notes://{folder}/{name}")),
            ("b", template("notes://shared/{name}")),
            ("c", template("odd://{a}{b}{c*:3}")),
        ]);
        let owner = |uri| listed.owner_by_template(uri).map(|owner| owner.plugin.to_string());
        assert_eq!(owner("notes://own/x").as_deref(), Some("a"));
        assert_eq!(owner("notes://shared/x").as_deref(), Some("b"));
        assert_eq!(owner("notes://x").as_deref(), None);
        assert_eq!(owner("odd://anything").as_deref(), Some("c"));
    }

    #[test]
    fn a_scheme_that_one_plugin_has_is_that_plugins() {
        let listed = listed(vec![
            ("a", resource("x:1")),
            ("a", resource("x:2")),
            ("a", resource("z:1")),
            ("b", resource("z:2")),
        ]);
        let owner = |uri| listed.owner_by_scheme(uri).map(|owner| owner.plugin.to_string());
        assert_eq!(owner("x:3").as_deref(), Some("a"));
        assert_eq!(owner("z:3"), None);
        assert_eq!(owner("q:3"), None);
        assert_eq!(owner("x"), None);
    }
}
