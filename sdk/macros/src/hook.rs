//! `#[hook]`

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::parse::Parser;
use syn::spanned::Spanned;
use syn::{Ident, LitInt, LitStr, Result, meta};

use crate::function::{self, Argument, arguments, returned};

/// The well-known points as attributes name them.
const POINTS: [&str; 14] = [
    "before_plan",
    "after_plan",
    "before_execute",
    "after_execute",
    "before_evaluate",
    "after_evaluate",
    "on_learning",
    "on_pattern",
    "message_received",
    "message_sending",
    "before_completion",
    "after_completion",
    "before_tool_call",
    "after_tool_call",
];

/// What an attribute says.
struct Options {
    /// The names of the points.
    points: Vec<String>,
    priority: LitInt,
    audit: bool,
}

fn options(tokens: TokenStream) -> Result<Options> {
    let zero = LitInt::new("0", Span::call_site());
    let mut options = Options { points: Vec::new(), priority: zero, audit: false };
    let parser = meta::parser(|meta| {
        let named = |point: &&&str| meta.path.is_ident(point);
        if meta.path.is_ident("custom") {
            let content;
            syn::parenthesized!(content in meta.input);
            let name: LitStr = content.parse()?;
            let is_prefixed = |name: &str| {
                name.split_once(':').is_some_and(|(prefix, rest)| {
                    !prefix.is_empty() && !rest.is_empty() && !name.contains(char::is_whitespace)
                })
            };
            if !is_prefixed(&name.value()) {
                return Err(syn::Error::new_spanned(
                    name,
                    "a point of a host's own has a prefix: `acme:before-deploy`",
                ));
            }
            options.points.push(name.value());
        } else if meta.path.is_ident("priority") {
            options.priority = meta.value()?.parse()?;
        } else if meta.path.is_ident("audit") {
            options.audit = true;
        } else if let Some(name) = POINTS.iter().find(named) {
            options.points.push(name.replace('_', "-"));
        } else {
            let known = POINTS.join("`, `");
            return Err(meta.error(format!(
                "unknown point: `{known}` and `custom(\"acme:…\")` are known, and the options \
                 `priority = 10` and `audit`"
            )));
        }
        Ok(())
    });
    function::no_text_but(&tokens, |text| {
        let point = text.replace('-', "_");
        match POINTS.contains(&&*point) {
            true => format!("write `#[hook({point})]`"),
            false => format!("write `#[hook(custom({text:?}))]` for a point of a host's own"),
        }
    })?;
    parser.parse2(tokens)?;
    Ok(options)
}

pub(crate) fn expand(tokens: TokenStream, function: TokenStream) -> Result<TokenStream> {
    let Options { points, priority, audit } = options(tokens)?;
    let mut function = function::function(function, "hook")?;
    if points.is_empty() {
        return Err(syn::Error::new_spanned(
            &function.sig.ident,
            "name the points to handle: `#[hook(before_plan)]`",
        ));
    }
    let arguments = arguments(&mut function, "JSON")?;
    let ident = &function.sig.ident;
    let visibility = &function.vis;
    let output = returned(&function);

    let mut checked = None;
    let mut parameters = 0;
    let mut passed = Vec::new();
    for argument in &arguments {
        passed.push(match argument {
            Argument::Context => quote!(&__call),
            Argument::Parameter(parameter) => {
                parameters += 1;
                match parameters {
                    1 => {
                        let kind = &parameter.kind;
                        checked = Some(quote_spanned! {kind.span()=>
                            const _: () = ::core::assert!(
                                ::tenon_sdk::__private::fits(
                                    ::tenon_sdk::__private::PointOfContext::<#kind>::POINT,
                                    &[#(#points),*],
                                ),
                                "this is the context of one point, and the handler names another: \
                                 take that of its own point, or a `Value`",
                            );
                        });
                        quote!(::tenon_sdk::hook::parse(__context)?)
                    }
                    2 => quote!(__point.to_string()),
                    _ => {
                        return Err(syn::Error::new_spanned(
                            &parameter.name,
                            "a hook takes the context of the event, its point, and `&Context`",
                        ));
                    }
                }
            }
        });
    }

    Ok(quote! {
        #function

        #[doc(hidden)]
        #[allow(non_camel_case_types)]
        #visibility struct #ident {}

        const _: () = {
            #[allow(unused_imports)]
            use ::tenon_sdk::__private::WellKnownPointFallback as _;
            #checked
        };

        impl ::tenon_sdk::hook::Hook for #ident {
            const POINTS: &'static [&'static str] = &[#(#points),*];
            const PRIORITY: i32 = #priority;
            const AUDIT: bool = #audit;

            #[allow(unused_variables)]
            async fn handle(
                __point: &str,
                __context: &str,
                __call: ::tenon_sdk::Context,
            ) -> Result<::tenon_sdk::__private::HookOutcome, ::tenon_sdk::Failure> {
                let outcome = #ident(#(#passed),*).await;
                ::tenon_sdk::hook::lower(
                    <#output as ::tenon_sdk::hook::IntoOutcome>::into_outcome(outcome)?,
                )
            }
        }
    })
}

/// What is left of a function that cannot be a handler.
pub(crate) fn mistaken(function: TokenStream, error: &syn::Error) -> TokenStream {
    function::mistaken(function, error, |ident: &Ident| {
        quote! {
            impl ::tenon_sdk::hook::Hook for #ident {
                const POINTS: &'static [&'static str] = &[];
                const PRIORITY: i32 = 0;
                const AUDIT: bool = false;

                async fn handle(
                    _: &str,
                    _: &str,
                    _: ::tenon_sdk::Context,
                ) -> Result<::tenon_sdk::__private::HookOutcome, ::tenon_sdk::Failure> {
                    ::core::unreachable!()
                }
            }
        }
    })
}
