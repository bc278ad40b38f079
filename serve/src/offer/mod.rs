//! What a client is offered of the platform: tools, resources and prompts, under which names, and which plugin has
//! what a client names.
//!
//! Nothing here depends on what a client did before: two clients with the same profile see the same.

pub(crate) mod compact;
mod headers;
mod listed_items;
mod pages;
mod profile;
mod tools;

use arc_swap::ArcSwap;
use futures::future::join_all;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenon_host::types::mcp_json::McpJson;
use tenon_host::types::{ListedResource, PromptDefinition, ResourceTemplate};
use tenon_host::{Caller, Platform, RegisteredPlugin};

pub use compact::ToolMode;
pub(crate) use headers::HeaderArgument;
pub(crate) use profile::Peer;
pub use profile::Profile;
pub(crate) use tools::ToolList;

use crate::lock;
use crate::protocol::error::RpcError;
use crate::protocol::request::ListKind;
use crate::protocol::version::Era;
use crate::protocol::write;
use listed_items::{Listed, NameInPlugin};

/// How long one plugin may take to list what it has. The others are listed without it.
const MAX_LISTING_TIME: Duration = Duration::from_secs(10);

/// What clients are offered of a platform.
pub(crate) struct Offer {
    platform: Platform,
    /// The lists of tools, which each call looks into.
    tools: ArcSwap<Vec<Arc<ToolList>>>,
    /// Locked while such a list is made, so that each is made once.
    making: Mutex<()>,
    /// What was listed last, by which requests find their plugins.
    listed: Mutex<HashMap<ListKey, Arc<Listed>>>,
}

/// Which list it is, of which profile.
type ListKey = (ListKind, String);

fn key_of(kind: ListKind, profile: &Profile) -> ListKey {
    (kind, profile.key())
}

/// The most lists of tools that are kept: one for each profile and era.
const MAX_TOOL_LISTS: usize = 64;

impl Offer {
    pub(crate) fn new(platform: Platform) -> Self {
        Self {
            platform,
            tools: ArcSwap::default(),
            making: Mutex::default(),
            listed: Mutex::default(),
        }
    }

    /// The tools of a profile, as clients of an era see them.
    pub(crate) fn tools(&self, profile: &Arc<Profile>, era: Era) -> Arc<ToolList> {
        let registry = self.platform.registry();
        let known = || {
            let lists = self.tools.load();
            lists.iter().find(|list| list.is_of(&registry, profile, era)).cloned()
        };
        if let Some(list) = known() {
            return list;
        }
        let _making = lock(&self.making);
        known().unwrap_or_else(|| {
            let list = Arc::new(ToolList::new(&self.platform, &registry, profile, era));
            let lists = self.tools.load();
            let current = lists.iter().filter(|list| list.is_current(&registry));
            let current = current.take(MAX_TOOL_LISTS - 1).chain([&list]).cloned().collect();
            self.tools.store(Arc::new(current));
            list
        })
    }

    /// A page of a list, as JSON.
    pub(crate) async fn page(
        &self,
        kind: ListKind,
        profile: &Arc<Profile>,
        era: Era,
        cursor: Option<&str>,
        caller: &Caller,
    ) -> Result<String, RpcError> {
        if kind == ListKind::Tools {
            return pages::page(kind, self.tools(profile, era).items(), cursor);
        }
        let listed = self.list(kind, profile, caller).await;
        pages::page(kind, listed.items(), cursor)
    }

    /// Lists anew what plugins have of a kind, and remembers who has what. A plugin that fails is left out.
    async fn list(&self, kind: ListKind, profile: &Arc<Profile>, caller: &Caller) -> Arc<Listed> {
        let registry = self.platform.registry();
        let caller = Caller { timeout: Some(MAX_LISTING_TIME), ..caller.clone() };
        let has = |plugin: &&Arc<RegisteredPlugin>| match kind {
            ListKind::Prompts => plugin.has_prompts(),
            _ => plugin.has_resources(),
        };
        let plugins = registry.plugins().iter().filter(has).map(|plugin| plugin.id().clone());
        let lists = plugins.map(|plugin| {
            let caller = &caller;
            async move {
                let listed = self.list_one(kind, &plugin, caller).await;
                (plugin, listed)
            }
        });
        let mut all = Listed::default();
        for (plugin, listed) in join_all(lists).await {
            match listed {
                Ok(items) => {
                    for item in items {
                        all.add(&registry, profile, &plugin, item);
                    }
                }
                Err(error) => {
                    tracing::warn!(
                        plugin = &*plugin,
                        "its {} are left out: {error}",
                        kind.member()
                    );
                }
            }
        }
        let all = Arc::new(all);
        lock(&self.listed).insert(key_of(kind, profile), all.clone());
        all
    }

    async fn list_one(
        &self,
        kind: ListKind,
        plugin: &str,
        caller: &Caller,
    ) -> Result<Vec<Item>, tenon_host::CallError> {
        Ok(match kind {
            ListKind::Prompts => {
                let prompts = self.platform.prompts(plugin, caller).await?;
                prompts.into_iter().map(Item::Prompt).collect()
            }
            ListKind::ResourceTemplates => {
                let templates = self.platform.resource_templates(plugin, caller).await?;
                templates.into_iter().map(Item::Template).collect()
            }
            _ => {
                let resources = self.platform.resources(plugin, caller).await?;
                resources.into_iter().map(Item::Resource).collect()
            }
        })
    }

    /// The plugin that has a prompt, and its own name for it.
    pub(crate) async fn prompt(
        &self,
        profile: &Arc<Profile>,
        name: &str,
        caller: &Caller,
    ) -> Option<NameInPlugin> {
        self.find(ListKind::Prompts, profile, caller, |listed| listed.owner(name)).await
    }

    /// The plugin that has a resource. One that none lists may be of a plugin whose template or scheme it has.
    pub(crate) async fn resource(
        &self,
        profile: &Arc<Profile>,
        uri: &str,
        caller: &Caller,
    ) -> Option<NameInPlugin> {
        if !profile.offers_resource(uri) {
            return None;
        }
        let listed = |listed: &Listed| listed.owner(uri);
        if let Some(owner) = self.known(ListKind::Resources, profile, listed) {
            return Some(owner);
        }
        let template = |listed: &Listed| listed.owner_by_template(uri);
        if let Some(owner) = self.find(ListKind::ResourceTemplates, profile, caller, template).await
        {
            return Some(owner);
        }
        if let Some(owner) = self.find(ListKind::Resources, profile, caller, listed).await {
            return Some(owner);
        }
        let by_scheme = |listed: &Listed| listed.owner_by_scheme(uri);
        self.known(ListKind::Resources, profile, by_scheme)
            .or_else(|| self.known(ListKind::ResourceTemplates, profile, by_scheme))
    }

    /// The plugin that has a resource template.
    pub(crate) async fn template(
        &self,
        profile: &Arc<Profile>,
        template: &str,
        caller: &Caller,
    ) -> Option<NameInPlugin> {
        let listed = |listed: &Listed| listed.owner(template);
        self.find(ListKind::ResourceTemplates, profile, caller, listed).await
    }

    /// Looks something up in what was listed last.
    fn known<T>(
        &self,
        kind: ListKind,
        profile: &Profile,
        look_up: impl Fn(&Listed) -> Option<T>,
    ) -> Option<T> {
        let listed = lock(&self.listed).get(&key_of(kind, profile)).cloned();
        listed.and_then(|listed| look_up(&listed))
    }

    /// The same, and where it is not there in what is listed anew.
    async fn find<T>(
        &self,
        kind: ListKind,
        profile: &Arc<Profile>,
        caller: &Caller,
        look_up: impl Fn(&Listed) -> Option<T>,
    ) -> Option<T> {
        match self.known(kind, profile, &look_up) {
            Some(found) => Some(found),
            None => look_up(&*self.list(kind, profile, caller).await),
        }
    }

    /// Forgets which plugin has what: plugins have changed.
    pub(crate) fn forget(&self) {
        lock(&self.listed).clear();
    }
}

/// Something that a plugin lists.
pub(crate) enum Item {
    Resource(ListedResource),
    Template(ResourceTemplate),
    Prompt(PromptDefinition),
}

impl Item {
    /// Its form in a list.
    fn json(&self) -> String {
        match self {
            Self::Resource(resource) => write::text(&McpJson(resource)),
            Self::Template(template) => write::text(&McpJson(template)),
            Self::Prompt(prompt) => write::text(&McpJson(prompt)),
        }
    }
}
