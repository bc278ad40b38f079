//! What a plugin asks of its host: in a component its imports, natively the scripted host of
//! [`crate::testing`], which has the same functions.

#[cfg(target_arch = "wasm32")]
pub(crate) use crate::bindings::base::tenon::plugin::{
    config, host_tools, inference, log, memory, messaging, notify, secrets, user,
};
#[cfg(target_arch = "wasm32")]
pub(crate) use crate::http::component as http;
#[cfg(target_arch = "wasm32")]
pub(crate) use crate::sleep::component as clock;
#[cfg(target_arch = "wasm32")]
pub(crate) use crate::state::component as keyvalue;
#[cfg(not(target_arch = "wasm32"))]
pub(crate) use crate::testing::imports::{
    clock, config, host_tools, http, inference, keyvalue, log, memory, messaging, notify, secrets,
    user,
};
