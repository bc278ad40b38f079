//! What a capability does in the life of a plugin: it is prepared when the plugin is loaded, instantiated with each
//! instance, and linked. It knows the store of an instance as something that holds its state, and no more.
//!
//! A capability implements [`HostCapability`] and the interfaces that are generated for it, on [`CapabilityView`] of
//! itself. [`capabilities!`] composes them for one kind of store.

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;
use tenon_config::contract::PACKAGE_VERSION;
use tenon_config::discover::PluginKind;
use tenon_config::grant::Grants;
use tenon_config::limits::Limits;
use tenon_config::secret::Secret;
use url::Url;
use wasmtime::StoreContextMut;
use wasmtime::component::{
    ComponentNamedList, ComponentType, HasData, Lift, Linker, LinkerInstance, Lower, ResourceTable,
};

use super::granted::GrantedCapabilities;
use super::served_calls::ServedCalls;
use crate::capability::server::{ChildSpec, Supervisor};
use crate::observe::{PluginLog, PluginNotifications};

/// Who a plugin is to its capabilities.
pub(crate) struct CapabilityContext {
    /// The plugin's identifier.
    pub(crate) id: Arc<str>,
    pub(crate) kind: PluginKind,
    /// How the plugin speaks in the log.
    pub(crate) log: Arc<PluginLog>,
    /// What the plugin was lent.
    pub(crate) granted: Arc<GrantedCapabilities>,
}

/// What a plugin is loaded with: all that a capability is prepared from.
pub(crate) struct PrepareContext<'a> {
    pub(crate) context: &'a CapabilityContext,
    pub(crate) grants: &'a Grants,
    pub(crate) limits: &'a Limits,
    /// The plugin's configuration.
    pub(crate) settings: &'a Map<String, Value>,
    /// The secrets that it may ask for, by their names.
    pub(crate) secrets: &'a Arc<BTreeMap<String, Secret>>,
    /// Where news of the plugin goes.
    pub(crate) news: &'a PluginNotifications,
    /// The one child of a bridge.
    pub(crate) child: Option<Arc<ChildSpec>>,
    /// Who keeps watch over the server of a bridge.
    pub(crate) server: Option<Arc<Supervisor>>,
    /// Where the server of a bridge is, if it is elsewhere.
    pub(crate) remote: Option<&'a Url>,
}

/// A capability that components import.
pub(crate) trait HostCapability: Sized + 'static {
    /// The name of its row in [`super::CAPABILITIES`].
    const NAME: &'static str;
    /// What all instances of one plugin share.
    type Plugin: Send + Sync + 'static;
    /// What one instance has.
    type Instance: Send + 'static;

    /// Makes what all instances of a plugin share.
    fn prepare(preparation: &PrepareContext<'_>) -> Self::Plugin;

    /// Makes what a new instance has.
    fn instantiate(plugin: &Self::Plugin) -> Self::Instance;

    /// Puts the imports into a linker for stores that hold its state.
    fn link<T: HasCapability<Self>>(linker: &mut Linker<T>) -> wasmtime::Result<()>;

    /// The same for components of the sync edition, whose imports are not async. A capability with async functions has
    /// them here once more, by [`link_blocking`].
    fn link_sync<T: HasCapability<Self>>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
        Self::link(linker)
    }
}

/// The name of an interface of the contract, by which components import it.
pub(super) fn sync_interface(name: &str) -> String {
    format!("tenon:plugin/{name}@{PACKAGE_VERSION}")
}

/// Puts a function that takes time into a linker, for components whose import of it is not async. The instance waits
/// as a whole meanwhile. `begin` takes from the store what it needs.
pub(super) fn link_blocking<C, T, P, R, F>(
    linker: &mut LinkerInstance<'_, T>,
    name: &str,
    begin: impl Fn(CapabilityView<'_, C>, P) -> F + Send + Sync + 'static,
) -> wasmtime::Result<()>
where
    C: HostCapability,
    T: HasCapability<C>,
    P: ComponentNamedList + Lift + Send + 'static,
    R: ComponentType + Lower + Send + 'static,
    F: Future<Output = R> + Send + 'static,
{
    linker.func_wrap_async(name, move |mut store: StoreContextMut<'_, T>, parameters: P| {
        let work = begin(store.data_mut().view(), parameters);
        Box::new(async move { Ok((work.await,)) })
    })
}

/// A store that holds what an instance has of a capability.
pub(crate) trait HasCapability<C: HostCapability>: Send + 'static {
    /// The capability's part of the store.
    fn view(&mut self) -> CapabilityView<'_, C>;
}

/// What a capability sees of a store.
pub(crate) struct CapabilityView<'a, C: HostCapability> {
    /// What the instance has of the capability.
    pub(crate) state: &'a mut C::Instance,
    /// The instance's handles.
    pub(crate) table: &'a mut ResourceTable,
    /// The calls that the instance serves, and whose instance it is.
    pub(crate) calls: &'a ServedCalls,
}

/// Marks the interfaces that are implemented on the [`CapabilityView`] of a capability.
pub(crate) struct HasView<C>(PhantomData<C>);

impl<C: HostCapability> HasData for HasView<C> {
    type Data<'a> = CapabilityView<'a, C>;
}

/// Puts a capability into a linker.
pub(super) type Link<T> = fn(&mut Linker<T>) -> wasmtime::Result<()>;

/// Composes capabilities for one kind of store: what a plugin has of all, what an instance has of all, and how
/// each is linked. A store has the fields `capabilities`, `table` and `calls`.
macro_rules! capabilities {
    ($store:ty => $plugin:ident, $instance:ident, $links:ident, $sync_links:ident; $($name:ident: $capability:ty,)*) => {
        use $crate::capability::host_capability as composed;

        /// What a plugin has of each capability.
        pub(crate) struct $plugin {
            $($name: <$capability as composed::HostCapability>::Plugin,)*
        }

        /// What an instance has of each capability.
        pub(crate) struct $instance {
            $($name: <$capability as composed::HostCapability>::Instance,)*
        }

        impl $plugin {
            /// Prepares each for a plugin.
            pub(crate) fn prepare(preparation: &composed::PrepareContext<'_>) -> Self {
                use composed::HostCapability;
                Self { $($name: <$capability>::prepare(preparation),)* }
            }

            /// Makes what a new instance has of each.
            pub(crate) fn instantiate(&self) -> $instance {
                use composed::HostCapability;
                $instance { $($name: <$capability>::instantiate(&self.$name),)* }
            }
        }

        $(impl composed::HasCapability<$capability> for $store {
            fn view(&mut self) -> composed::CapabilityView<'_, $capability> {
                composed::CapabilityView {
                    state: &mut self.capabilities.$name,
                    table: &mut self.table,
                    calls: &self.calls,
                }
            }
        })*

        /// What puts each into a linker.
        const $links: &[(&str, composed::Link<$store>)] = &[$((
            <$capability as composed::HostCapability>::NAME,
            <$capability as composed::HostCapability>::link::<$store>,
        ),)*];

        /// The same for components of the sync edition.
        const $sync_links: &[(&str, composed::Link<$store>)] = &[$((
            <$capability as composed::HostCapability>::NAME,
            <$capability as composed::HostCapability>::link_sync::<$store>,
        ),)*];
    };
}
pub(super) use capabilities;

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use tenon_config::secret::{Redactor, SecretValues};
    use wasmtime::component::Component;
    use wasmtime::{Engine, Store};

    use super::*;
    use crate::capability::secrets::SecretsCapability;

    /// All there is of a capability that nobody has: what would be its file.
    mod counter {
        use super::*;

        /// Counts its calls, for each instance and for all of a plugin.
        pub(super) struct CounterCapability;

        impl HostCapability for CounterCapability {
            const NAME: &'static str = "counter";
            type Plugin = Arc<AtomicU32>;
            type Instance = (u32, Arc<AtomicU32>);

            fn prepare(preparation: &PrepareContext<'_>) -> Self::Plugin {
                let first = preparation.settings.get("first").and_then(Value::as_u64);
                Arc::new(AtomicU32::new(first.unwrap_or(0) as u32))
            }

            fn instantiate(all: &Self::Plugin) -> Self::Instance {
                (0, all.clone())
            }

            fn link<T: HasCapability<Self>>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
                let count = |mut store: StoreContextMut<'_, T>, (): ()| {
                    let CapabilityView { state: (own, all), .. } = store.data_mut().view();
                    *own += 1;
                    let all = all.fetch_add(1, Ordering::Relaxed) + 1;
                    Ok((u64::from(*own) << 32 | u64::from(all),))
                };
                linker.instance("test:counter/counter")?.func_wrap("count", count)
            }
        }
    }

    /// A store that is not the one of plugins.
    struct OtherStore {
        capabilities: OtherInstance,
        table: ResourceTable,
        calls: ServedCalls,
    }

    capabilities! {
        OtherStore => OtherPlugin, OtherInstance, OTHER_LINKS, OTHER_SYNC_LINKS;
        secrets: SecretsCapability,
        counter: counter::CounterCapability,
    }

    #[test]
    fn a_capability_is_one_file_and_one_row_and_knows_no_store() {
        let id: Arc<str> = "p".into();
        let log = PluginLog::new(id.clone(), Redactor::new(&SecretValues::default()), 1);
        let grants = Grants::default();
        let granted = GrantedCapabilities::new(id.clone(), grants.clone(), Arc::default());
        let context = CapabilityContext {
            id,
            kind: PluginKind::Wasm,
            log: Arc::new(log),
            granted: Arc::new(granted),
        };
        let settings = Map::from_iter([("first".to_string(), Value::from(40))]);
        let plugin = OtherPlugin::prepare(&PrepareContext {
            context: &context,
            grants: &grants,
            limits: &Limits::default(),
            settings: &settings,
            secrets: &Arc::default(),
            news: &PluginNotifications::default(),
            child: None,
            server: None,
            remote: None,
        });
        let engine = Engine::default();
        let mut linker = Linker::new(&engine);
        OTHER_LINKS.iter().for_each(|(_, link)| link(&mut linker).expect("it is linked"));
        let mut sync_linker = Linker::new(&engine);
        OTHER_SYNC_LINKS.iter().for_each(|(_, link)| link(&mut sync_linker).expect("it is linked"));
        let names: Vec<&str> = OTHER_LINKS.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["secrets", "counter"]);
        let component = wat::parse_str(
            r#"(component
                (import "test:counter/counter" (instance $counter
                    (export "count" (func (result u64)))))
                (core func $count (canon lower (func $counter "count")))
                (core module $module
                    (import "" "count" (func $count (result i64)))
                    (export "count" (func $count)))
                (core instance $inner (instantiate $module
                    (with "" (instance (export "count" (func $count))))))
                (func (export "count") (result u64) (canon lift (core func $inner "count"))))"#,
        );
        let component = Component::new(&engine, component.expect("it is a component"));
        let pre = linker.instantiate_pre(&component.expect("it is a component")).unwrap();
        let context = Arc::new(context);
        let count = |store: &mut Store<OtherStore>| {
            let instance = pre.instantiate(&mut *store).expect("it is instantiated");
            let count = instance.get_typed_func::<(), (u64,)>(&mut *store, "count");
            let (both,) = count.expect("it is exported").call(store, ()).expect("it counts");
            (both >> 32, both & u64::from(u32::MAX))
        };
        let store = || {
            let (capabilities, calls) = (plugin.instantiate(), ServedCalls::new(context.clone()));
            Store::new(&engine, OtherStore { capabilities, table: ResourceTable::new(), calls })
        };
        let (mut first, mut second) = (store(), store());
        assert_eq!(count(&mut first), (1, 41));
        assert_eq!(count(&mut first), (2, 42));
        assert_eq!(count(&mut second), (1, 43));
    }
}
