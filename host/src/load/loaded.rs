//! A plugin that can be called.

use std::sync::Arc;
use std::time::Duration;
use tenon_config::config::combine::PluginOwner;
use tenon_config::discover::{Fingerprint, PluginKind, PluginOrigin};
use tenon_config::limits::Limits;
use tenon_config::manifest::RegistrationPermissions;
use tenon_config::secret::SecretValues;
use tenon_config::skills::PluginSkills;
use tenon_config::tool_hooks::ServerHook;

use super::STARTUP_TIMEOUT;
use crate::capability::server::Supervisor;
use crate::runtime::schema::SchemaSandbox;
use crate::runtime::{Plugin, PluginHandle, RetiringPlugin, UseToken};
use tenon_config::grant::{CapabilityStatus, GrantSet, Grants};

/// A plugin that can be called, and what the next steps need to know of it.
#[derive(Clone)]
pub(crate) struct LoadedPlugin {
    pub(super) id: Arc<str>,
    pub(super) kind: PluginKind,
    pub(super) owner: PluginOwner,
    pub(super) plugin: Arc<dyn Plugin>,
    pub(super) limits: Limits,
    pub(super) startup: Duration,
    pub(super) permissions: Option<RegistrationPermissions>,
    /// What it was made of, for one that comes from outside.
    pub(super) fingerprint: Option<Fingerprint>,
    /// The digest of its settings and its grants, for one that comes from outside.
    pub(super) setting: Arc<str>,
    pub(super) uses: UseToken,
    pub(super) secrets: SecretValues,
    pub(super) grants: Grants,
    /// What it requested.
    pub(super) requested: GrantSet,
    /// The skills that it carries.
    pub(super) skills: Option<Arc<PluginSkills>>,
    /// What it imports, for a component.
    pub(super) imports: Option<Vec<String>>,
    /// Who keeps watch over its server, for one that has one.
    pub(super) supervised: Option<Arc<Supervisor>>,
    /// The hook points that tools of its server handle.
    pub(super) tool_hooks: Vec<ServerHook>,
    /// Where its schemas are used that have no bound.
    pub(super) schemas: Arc<SchemaSandbox>,
}

impl LoadedPlugin {
    /// The plugin's id.
    pub(crate) fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// What names its code, with the settings and the grants that it runs with: digests, or the version of a plugin that is
    /// part of the host.
    pub(crate) fn code_digest(&self) -> String {
        match &self.fingerprint {
            Some(fingerprint) => fingerprint.code_with(&self.setting),
            None => format!("builtin {}", env!("CARGO_PKG_VERSION")),
        }
    }

    /// The plugin's kind.
    pub(crate) fn kind(&self) -> PluginKind {
        self.kind
    }

    /// The kind of place that it was found in.
    pub(crate) fn origin(&self) -> PluginOrigin {
        self.owner.origin
    }

    /// Whose it is.
    pub(crate) fn owner(&self) -> PluginOwner {
        self.owner
    }

    /// Whether the names that it gives to things go before those of other plugins.
    pub(crate) fn names_come_first(&self) -> bool {
        self.owner.is_shielded || self.kind == PluginKind::Builtin
    }

    /// The plugin itself. What it answers is masked before anybody gets it.
    pub(crate) fn plugin(&self) -> PluginHandle<'_> {
        PluginHandle::new(&*self.plugin)
    }

    /// What it may use.
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// How long it may take to register.
    pub(crate) fn startup(&self) -> Duration {
        self.startup
    }

    /// What it may register; all, where nothing is said.
    pub(crate) fn permissions(&self) -> Option<&RegistrationPermissions> {
        self.permissions.as_ref()
    }

    /// What the names of its tools begin with.
    pub(crate) fn namespace(&self) -> &str {
        RegistrationPermissions::namespace(self.permissions.as_ref(), &self.id)
    }

    /// What it was made of, for one that comes from outside.
    pub(crate) fn fingerprint(&self) -> Option<&Fingerprint> {
        self.fingerprint.as_ref()
    }

    /// What must not be shown of what it was given.
    pub(crate) fn secrets(&self) -> &SecretValues {
        &self.secrets
    }

    /// What it was granted.
    pub(crate) fn grants(&self) -> &Grants {
        &self.grants
    }

    /// How what it imports stands to what it requests; nothing for what is no component.
    pub(crate) fn needs(&self) -> Vec<CapabilityStatus> {
        let Some(imports) = &self.imports else { return Vec::new() };
        CapabilityStatus::all(imports, &self.requested.texts(), &self.grants.texts())
    }

    /// Who keeps watch over its server, for one that has one.
    pub(crate) fn supervised(&self) -> Option<&Arc<Supervisor>> {
        self.supervised.as_ref()
    }

    /// The hook points that tools of its server handle.
    pub(crate) fn tool_hooks(&self) -> &[ServerHook] {
        &self.tool_hooks
    }

    /// Where its schemas are used that have no bound.
    pub(crate) fn schemas(&self) -> &SchemaSandbox {
        &self.schemas
    }

    /// What it requested.
    pub(crate) fn requested(&self) -> &GrantSet {
        &self.requested
    }

    /// The skills that it carries.
    pub(crate) fn skills(&self) -> Option<&Arc<PluginSkills>> {
        self.skills.as_ref()
    }

    /// Whoever keeps this uses the plugin.
    pub(crate) fn uses(&self) -> UseToken {
        self.uses.clone()
    }

    /// Gives the plugin up: it ends when nobody uses it any more.
    pub(crate) fn retire(&self) -> RetiringPlugin {
        self.uses.retire(self.plugin.clone())
    }

    /// A plugin that is part of the host.
    pub(crate) fn builtin(
        id: &str,
        plugin: Arc<dyn Plugin>,
        limits: &Limits,
        schemas: Arc<SchemaSandbox>,
    ) -> Self {
        Self {
            id: id.into(),
            kind: PluginKind::Builtin,
            owner: PluginOrigin::Bundled.into(),
            plugin,
            limits: limits.clone(),
            startup: STARTUP_TIMEOUT,
            permissions: None,
            fingerprint: None,
            setting: "".into(),
            uses: UseToken::default(),
            secrets: SecretValues::default(),
            grants: Grants::default(),
            requested: GrantSet::default(),
            skills: None,
            imports: None,
            supervised: None,
            tool_hooks: Vec::new(),
            schemas,
        }
    }
}
