//! `#[hook]`

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::parse::Parser;
use syn::{ItemFn, LitStr, Result, meta};

use crate::function::{Argument, arguments};

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

fn points(tokens: TokenStream) -> Result<Vec<TokenStream>> {
    let mut points = Vec::new();
    let parser = meta::parser(|meta| {
        if meta.path.is_ident("custom") {
            let content;
            syn::parenthesized!(content in meta.input);
            let name: LitStr = content.parse()?;
            points.push(quote!(::tenon_sdk::hook::HookPoint::Custom(#name.to_string())));
        } else if let Some((_, variant)) = POINTS.iter().find(|(name, _)| meta.path.is_ident(name))
        {
            let variant = format_ident!("{variant}");
            points.push(quote!(::tenon_sdk::hook::HookPoint::#variant));
        } else {
            let known = POINTS.map(|(name, _)| name).join("`, `");
            return Err(
                meta.error(format!("unknown point: `{known}` and `custom(\"…\")` are known"))
            );
        }
        Ok(())
    });
    parser.parse2(tokens)?;
    Ok(points)
}

pub(crate) fn expand(tokens: TokenStream, function: TokenStream) -> Result<TokenStream> {
    let points = points(tokens)?;
    let mut function: ItemFn = syn::parse2(function)?;
    if points.is_empty() {
        return Err(syn::Error::new_spanned(
            &function.sig.ident,
            "name the points to handle: `#[hook(before_plan)]`",
        ));
    }
    let arguments = arguments(&mut function)?;
    let ident = &function.sig.ident;
    let visibility = &function.vis;

    let mut parameters = 0;
    let mut passed = Vec::new();
    for argument in &arguments {
        passed.push(match argument {
            Argument::Context => quote!(&call),
            Argument::Parameter(parameter) => {
                parameters += 1;
                match parameters {
                    1 => quote!(::tenon_sdk::hook::parse(context)?),
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
                ::tenon_sdk::hook::lower(::tenon_sdk::__private::IntoResult::into_result(outcome)?)
            }
        }
    })
}
