//! `#[prompt]`

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::parse::Parser;
use syn::{Ident, Result, meta};

use crate::function::{self, Argument, arguments, required_documentation, returned};
use crate::text_argument::{self, Arity, TextArgument};
use crate::tokens::optional;

#[derive(Default)]
struct Options {
    name: Option<String>,
    title: Option<String>,
}

fn options(tokens: TokenStream) -> Result<Options> {
    let mut options = Options::default();
    let parser = meta::parser(|meta| {
        if meta.path.is_ident("name") {
            options.name = Some(function::text(&meta, options.name.as_ref())?);
        } else if meta.path.is_ident("title") {
            options.title = Some(function::text(&meta, options.title.as_ref())?);
        } else {
            return Err(meta.error("unknown option: `name` and `title` are known"));
        }
        Ok(())
    });
    function::no_text(&tokens)?;
    parser.parse2(tokens)?;
    Ok(options)
}

pub(crate) fn expand(tokens: TokenStream, function: TokenStream) -> Result<TokenStream> {
    let options = options(tokens)?;
    let mut function = function::function(function, "prompt")?;
    let description = required_documentation(&function, "prompt")?;
    let (mut texts, mut passed) = (Vec::<TextArgument>::new(), Vec::new());
    for argument in arguments(&mut function, "text")? {
        passed.push(match argument {
            Argument::Context => quote!(&__context),
            Argument::Parameter(parameter) => {
                let argument = TextArgument::new(&parameter)?;
                check(&argument, &texts)?;
                let value = argument.value();
                texts.push(argument);
                value
            }
        });
    }

    let ident = &function.sig.ident;
    let visibility = &function.vis;
    let output = returned(&function);
    let name = options.name.unwrap_or_else(|| ident.unraw().to_string());
    let title = optional(options.title.as_deref());
    let described = texts.iter().map(|argument| {
        let TextArgument { name, description, .. } = argument;
        let description = optional((!description.is_empty()).then_some(description.as_str()));
        let title = optional(argument.title.as_deref());
        let is_required = argument.shape == Arity::One;
        quote! {
            ::tenon_sdk::prompt::Argument {
                name: #name,
                title: #title,
                description: #description,
                is_required: #is_required,
            }
        }
    });
    let completes = texts.iter().any(|argument| argument.completion.is_some());
    let reference = quote!(::tenon_sdk::completion::Reference::Prompt(#name));
    let complete = text_argument::complete(ident, &reference, &texts);

    Ok(quote! {
        #function

        #[doc(hidden)]
        #[allow(non_camel_case_types)]
        #visibility struct #ident {}

        impl ::tenon_sdk::prompt::PromptTemplate for #ident {
            const NAME: &'static str = #name;
            const ABOUT: ::tenon_sdk::prompt::About = ::tenon_sdk::prompt::About {
                title: #title,
                description: #description,
                arguments: &[#(#described),*],
            };
            const COMPLETES: bool = #completes;

            #[allow(unused_variables)]
            async fn fill(
                __arguments: ::tenon_sdk::Arguments,
                __context: ::tenon_sdk::Context,
            ) -> Result<::tenon_sdk::prompt::Prompt, ::tenon_sdk::Failure> {
                let prompt = #ident(#(#passed),*).await;
                <#output as ::tenon_sdk::prompt::IntoPrompt>::into_prompt(prompt)
            }
        }

        #complete
    })
}

/// Checks that an argument is one text and has a name of its own.
fn check(argument: &TextArgument, before: &[TextArgument]) -> Result<()> {
    if argument.shape == Arity::List {
        return Err(syn::Error::new_spanned(
            &argument.ident,
            "an argument of a prompt is one text, and no list",
        ));
    }
    match before.iter().any(|other| other.name == argument.name) {
        true => Err(syn::Error::new_spanned(
            &argument.ident,
            "another argument of this prompt has the same name",
        )),
        false => Ok(()),
    }
}

/// What is left of a function that cannot be a prompt.
pub(crate) fn mistaken(function: TokenStream, error: &syn::Error) -> TokenStream {
    function::mistaken(function, error, |ident: &Ident| {
        let name = quote!(::core::stringify!(#ident));
        let reference = quote!(::tenon_sdk::completion::Reference::Prompt(#name));
        let complete = text_argument::mistaken(ident, &reference);
        quote! {
            impl ::tenon_sdk::prompt::PromptTemplate for #ident {
                const NAME: &'static str = #name;
                const ABOUT: ::tenon_sdk::prompt::About = ::tenon_sdk::prompt::About {
                    title: None,
                    description: "",
                    arguments: &[],
                };

                async fn fill(
                    _: ::tenon_sdk::Arguments,
                    _: ::tenon_sdk::Context,
                ) -> Result<::tenon_sdk::prompt::Prompt, ::tenon_sdk::Failure> {
                    ::core::unreachable!()
                }
            }

            #complete
        }
    })
}
