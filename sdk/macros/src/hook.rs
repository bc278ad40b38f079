//! `#[hook]`

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::parse::Parser;
use syn::spanned::Spanned;
use syn::{Ident, LitStr, Result, meta};

use crate::function::{self, Argument, arguments, returned};

/// The well-known points as attributes name them, and the variants they mean.
const POINTS: [(&str, &str); 12] = [
    ("before_plan", "BeforePlan"),
    ("after_plan", "AfterPlan"),
    ("before_execute", "BeforeExecute"),
    ("after_execute", "AfterExecute"),
    ("before_evaluate", "BeforeEvaluate"),
    ("after_evaluate", "AfterEvaluate"),
    ("on_learning", "OnLearning"),
    ("on_pattern", "OnPattern"),
    ("message_received", "MessageReceived"),
    ("message_sending", "MessageSending"),
    ("before_tool_call", "BeforeToolCall"),
    ("after_tool_call", "AfterToolCall"),
];

/// The points as expressions, and the names of those that are well known.
fn points(tokens: TokenStream) -> Result<(Vec<TokenStream>, Vec<&'static str>)> {
    let mut points = Vec::new();
    let mut known_names = Vec::new();
    let parser = meta::parser(|meta| {
        if meta.path.is_ident("custom") {
            let content;
            syn::parenthesized!(content in meta.input);
            let name: LitStr = content.parse()?;
            if name.value().is_empty() {
                return Err(syn::Error::new_spanned(name, "a point of your own has a name"));
            }
            points.push(quote!(::tenon_sdk::hook::HookPoint::Custom(#name.to_string())));
        } else if let Some((name, variant)) =
            POINTS.iter().find(|(name, _)| meta.path.is_ident(name))
        {
            let variant = format_ident!("{variant}");
            known_names.push(*name);
            points.push(quote!(::tenon_sdk::hook::HookPoint::#variant));
        } else {
            let known = POINTS.map(|(name, _)| name).join("`, `");
            return Err(
                meta.error(format!("unknown point: `{known}` and `custom(\"…\")` are known"))
            );
        }
        Ok(())
    });
    function::no_text_but(&tokens, |text| {
        let point = text.replace('-', "_");
        match POINTS.iter().any(|(name, _)| *name == point) {
            true => format!("write `#[hook({point})]`"),
            false => format!("write `#[hook(custom({text:?}))]` for a point of your own"),
        }
    })?;
    parser.parse2(tokens)?;
    Ok((points, known_names))
}

pub(crate) fn expand(tokens: TokenStream, function: TokenStream) -> Result<TokenStream> {
    let (points, names) = points(tokens)?;
    let mut function = function::function(function, "hook")?;
    if points.is_empty() {
        return Err(syn::Error::new_spanned(
            &function.sig.ident,
            "name the points to handle: `#[hook(before_plan)]`",
        ));
    }
    let arguments = arguments(&mut function)?;
    let ident = &function.sig.ident;
    let visibility = &function.vis;
    let output = returned(&function);

    let mut checked = None;
    let mut parameters = 0;
    let mut passed = Vec::new();
    for argument in &arguments {
        passed.push(match argument {
            Argument::Context => quote!(&call),
            Argument::Parameter(parameter) => {
                parameters += 1;
                match parameters {
                    1 => {
                        let kind = &parameter.kind;
                        checked = Some(quote_spanned! {kind.span()=>
                            const _: () = ::core::assert!(
                                ::tenon_sdk::__private::fits(
                                    ::tenon_sdk::__private::WellKnownPoint::<#kind>::POINT,
                                    &[#(#names),*],
                                ),
                                "this is the context of one point, and the handler names another: \
                                 take that of its own point, or a `Value`",
                            );
                        });
                        quote!(::tenon_sdk::hook::parse(context)?)
                    }
                    2 => quote!(point.clone()),
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
            fn points() -> Vec<::tenon_sdk::hook::HookPoint> {
                vec![#(#points),*]
            }

            #[allow(unused_variables)]
            async fn handle(
                point: &::tenon_sdk::hook::HookPoint,
                context: &str,
                call: ::tenon_sdk::Context,
            ) -> Result<::tenon_sdk::__private::Outcome, ::tenon_sdk::Failure> {
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
    let items = |_: &Ident| {
        quote! {
            fn points() -> Vec<::tenon_sdk::hook::HookPoint> {
                ::core::unreachable!()
            }

            async fn handle(
                _: &::tenon_sdk::hook::HookPoint,
                _: &str,
                _: ::tenon_sdk::Context,
            ) -> Result<::tenon_sdk::__private::Outcome, ::tenon_sdk::Failure> {
                ::core::unreachable!()
            }
        }
    };
    function::mistaken(function, error, &quote!(::tenon_sdk::hook::Hook), items)
}
