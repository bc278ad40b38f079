//! What a plugin asks of its host: in a component its imports, natively the scripted host of
//! [`crate::testing`], which has the same functions.

#[cfg(target_arch = "wasm32")]
pub(crate) use crate::bindings::base::tenon::plugin::{
    config, inference, log, notify, secrets, services, tools,
};
#[cfg(not(target_arch = "wasm32"))]
pub(crate) use crate::testing::imports::{
    config, inference, log, notify, secrets, services, tools,
};
