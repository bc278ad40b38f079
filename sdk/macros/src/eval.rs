//! `#[eval]`

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::parse::Parser;
use syn::{Ident, Result, meta};

use crate::function::{self, Argument, arguments, required_documentation, returned};

pub(crate) fn expand(tokens: TokenStream, function: TokenStream) -> Result<TokenStream> {
    let mut name = None;
    let parser = meta::parser(|meta| {
        if !meta.path.is_ident("name") {
            return Err(meta.error("unknown option: `name` is known"));
        }
        name = Some(function::text(&meta, name.as_ref())?);
        Ok(())
    });
    function::no_text(&tokens)?;
    parser.parse2(tokens)?;
    let mut function = function::function(function, "eval")?;
    let description = required_documentation(&function, "strategy")?;
    let arguments = arguments(&mut function, "JSON")?;
    let ident = &function.sig.ident;
    let visibility = &function.vis;
    let output = returned(&function);
    let name = name.unwrap_or_else(|| ident.unraw().to_string());

    let mut parameters = 0;
    let mut schema = quote!(None);
    let mut passed = Vec::new();
    for argument in &arguments {
        passed.push(match argument {
            Argument::Context => quote!(&__context),
            Argument::Parameter(parameter) => {
                parameters += 1;
                match parameters {
                    1 => quote!(::tenon_sdk::__private::parse_arguments("subject", __subject)?),
                    2 => {
                        let kind = &parameter.kind;
                        schema = quote!(Some(::tenon_sdk::__private::input_schema::<#kind>()));
                        let what = format!("evaluation {name:?}");
                        quote!(::tenon_sdk::__private::parse_options(#what, __options)?)
                    }
                    _ => {
                        return Err(syn::Error::new_spanned(
                            &parameter.name,
                            "a strategy takes the subject, its options, and `&Context`",
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

        impl ::tenon_sdk::eval::Eval for #ident {
            const NAME: &'static str = #name;

            fn definition() -> ::tenon_sdk::__private::EvalDefinition {
                ::tenon_sdk::__private::EvalDefinition {
                    name: Self::NAME.to_string(),
                    description: #description.to_string(),
                    options_schema: #schema,
                }
            }

            #[allow(unused_variables)]
            async fn evaluate(
                __subject: &str,
                __options: &str,
                __context: ::tenon_sdk::Context,
            ) -> Result<::tenon_sdk::eval::Evaluation, ::tenon_sdk::Failure> {
                let evaluation = #ident(#(#passed),*).await;
                <#output as ::tenon_sdk::eval::IntoEvaluation>::into_evaluation(evaluation)
            }
        }
    })
}

/// What is left of a function that cannot be a strategy.
pub(crate) fn mistaken(function: TokenStream, error: &syn::Error) -> TokenStream {
    function::mistaken(function, error, |ident: &Ident| {
        quote! {
            impl ::tenon_sdk::eval::Eval for #ident {
                const NAME: &'static str = ::core::stringify!(#ident);

                fn definition() -> ::tenon_sdk::__private::EvalDefinition {
                    ::core::unreachable!()
                }

                async fn evaluate(
                    _: &str,
                    _: &str,
                    _: ::tenon_sdk::Context,
                ) -> Result<::tenon_sdk::eval::Evaluation, ::tenon_sdk::Failure> {
                    ::core::unreachable!()
                }
            }
        }
    })
}
