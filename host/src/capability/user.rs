//! `user`: questions to the user, behind [`crate::services::ClientFeatures`]. Values are `ask` and `ask-url`. Bridges ask
//! on behalf of their servers.

use futures::FutureExt;
use serde_json::{Map, Value};
use std::sync::Arc;
use tenon_config::grant::USER;
use tenon_config::secret::is_secret_name;
use tenon_types::{Error, FormAnswer, FormRequest, UrlAnswer, UrlRequest};
use wasmtime::component::{Accessor, Linker};

use super::granted::{GrantedCapabilities, apart, not_offered};
use super::host_capability::{
    CapabilityView, HasCapability, HasView, HostCapability, PrepareContext, link_blocking,
    sync_interface,
};
use super::served_calls::AskContext;
use crate::call::PauseGuard;
use crate::call::mask::Unmasked;
use crate::capability::bindings::convert::Convert;
use crate::capability::bindings::{types, user};
use crate::capability::services::ClientFeature;

/// Asks the user to fill in a form.
pub(crate) async fn ask(
    granted: &GrantedCapabilities,
    request: AskContext,
    form: Unmasked<FormRequest>,
) -> Result<FormAnswer, Error> {
    let features = request.features(granted);
    if !features.offers().forms {
        return Err(not_offered(&*features, ClientFeature::Forms));
    }
    let form = granted.masked(form).into_inner();
    if let Some(member) = form.secret_member(is_secret_name) {
        return Err(Error::invalid_input(format!(
            "a form does not ask for a secret, and {member:?} looks like one; ask for it on a page, or have the user \
             set a secret"
        )));
    }
    let _pause = PauseGuard::of(request.calls);
    features.ask(&request.requester, form).await
}

/// Asks the user to open a page.
pub(crate) async fn ask_url(
    granted: &GrantedCapabilities,
    request: AskContext,
    page: Unmasked<UrlRequest>,
) -> Result<UrlAnswer, Error> {
    let features = request.features(granted);
    if !features.offers().pages {
        return Err(not_offered(&*features, ClientFeature::Pages));
    }
    let page = granted.masked(page).into_inner();
    let _pause = PauseGuard::of(request.calls);
    features.ask_url(&request.requester, page).await
}

/// Refuses questions of plugins that were not granted.
pub(crate) fn require(granted: &GrantedCapabilities, use_: &str) -> Result<(), Error> {
    let tried = match use_ {
        "ask" => "asking the user",
        _ => "asking the user to open a page",
    };
    granted.require(USER, use_, tried)
}

pub(crate) struct UserCapability;

impl HostCapability for UserCapability {
    const NAME: &'static str = USER;
    type Plugin = ();
    type Instance = ();

    fn prepare(_: &PrepareContext<'_>) {}

    fn instantiate((): &()) {}

    fn link<T: HasCapability<Self>>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
        user::add_to_linker::<_, HasView<Self>>(linker, T::view)
    }

    fn link_sync<T: HasCapability<Self>>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
        let mut instance = linker.instance(&sync_interface("user"))?;
        link_blocking(&mut instance, "ask", begin_ask)?;
        link_blocking(&mut instance, "ask-url", begin_ask_url)
    }
}

impl user::Host for CapabilityView<'_, UserCapability> {}

impl CapabilityView<'_, UserCapability> {
    /// The request that the guest makes, if it may.
    fn request(&self, use_: &str) -> Result<(Arc<GrantedCapabilities>, AskContext), Error> {
        let granted = self.calls.granted().clone();
        // A server may ask, as any server may.
        if !self.calls.is_bridge() {
            require(&granted, use_)?;
        }
        Ok((granted, self.calls.request()))
    }
}

/// An object that a plugin wrote.
fn object(text: Option<String>) -> Result<Map<String, Value>, Error> {
    let Some(text) = text else { return Ok(Map::new()) };
    serde_json::from_str(&text)
        .map_err(|error| Error::invalid_input(format!("`extra` is no JSON object: {error}")))
}

fn begin_ask(
    view: CapabilityView<'_, UserCapability>,
    (form,): (user::FormRequest,),
) -> impl Future<Output = Result<user::FormAnswer, types::Error>> + use<> {
    let (span, asked) = (view.calls.span(), view.request("ask"));
    let answer = async move {
        let (granted, request) = asked?;
        let user::FormRequest { message, schema, extra } = form;
        let schema = serde_json::from_str(&schema).map_err(|error| {
            Error::invalid_input(format!("the schema of the form is no JSON: {error}"))
        })?;
        let form = FormRequest { extra: object(extra)?, ..FormRequest::new(message, schema) };
        ask(&granted, request, Unmasked::new(form)).await
    };
    apart(span, answer).map(Convert::convert)
}

fn begin_ask_url(
    view: CapabilityView<'_, UserCapability>,
    (page,): (user::UrlRequest,),
) -> impl Future<Output = Result<user::UrlAnswer, types::Error>> + use<> {
    let (span, asked) = (view.calls.span(), view.request("ask-url"));
    let answer = async move {
        let (granted, request) = asked?;
        let user::UrlRequest { message, url, id, extra } = page;
        let page = UrlRequest { id, extra: object(extra)?, ..UrlRequest::new(message, url) };
        ask_url(&granted, request, Unmasked::new(page)).await
    };
    apart(span, answer).map(Convert::convert)
}

impl<T: 'static> user::HostWithStore<T> for HasView<UserCapability> {
    async fn ask(
        accessor: &Accessor<T, Self>,
        form: user::FormRequest,
    ) -> wasmtime::Result<Result<user::FormAnswer, types::Error>> {
        Ok(accessor.with(|mut access| begin_ask(access.get(), (form,))).await)
    }

    async fn ask_url(
        accessor: &Accessor<T, Self>,
        page: user::UrlRequest,
    ) -> wasmtime::Result<Result<user::UrlAnswer, types::Error>> {
        Ok(accessor.with(|mut access| begin_ask_url(access.get(), (page,))).await)
    }
}
