//! What expansions are made of.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::LitInt;

/// An `Option` as an expression. The type is spelt out for an empty one.
pub(crate) fn optional<T: ToTokens + TypeTokens>(value: Option<T>) -> TokenStream {
    let kind = T::kind();
    match value {
        Some(value) => quote!(Some(#value)),
        None => quote!(None::<#kind>),
    }
}

pub(crate) trait TypeTokens {
    fn kind() -> TokenStream;
}

impl TypeTokens for &str {
    fn kind() -> TokenStream {
        quote!(&str)
    }
}

impl TypeTokens for bool {
    fn kind() -> TokenStream {
        quote!(bool)
    }
}

impl TypeTokens for &LitInt {
    fn kind() -> TokenStream {
        quote!(u64)
    }
}
