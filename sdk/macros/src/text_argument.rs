//! Arguments that arrive as text: those of prompts, and the variables of resource templates.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{
    Attribute, Expr, ExprLit, GenericArgument, Ident, Lit, LitStr, Path, PathArguments, Result,
    Token, Type,
};

use crate::function::{self, Parameter, documentation, is_documentation};

/// A parameter that is made from text.
pub(crate) struct TextArgument {
    pub(crate) ident: Ident,
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) description: String,
    pub(crate) shape: Arity,
    /// What one text becomes.
    pub(crate) kind: Type,
    pub(crate) completion: Option<CompletionSource>,
}

/// How many texts a parameter takes.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Arity {
    One,
    Optional,
    List,
}

/// Where the values come from that are suggested as one types.
pub(crate) enum CompletionSource {
    Values(Vec<LitStr>),
    Function(Path),
}

impl TextArgument {
    /// Reads a parameter and its attributes.
    pub(crate) fn new(parameter: &Parameter) -> Result<Self> {
        let Parameter { attributes, name, kind } = parameter;
        let (shape, kind) = shape(kind)?;
        let mut argument = Self {
            ident: name.clone(),
            name: name.unraw().to_string(),
            title: None,
            description: documentation(attributes),
            shape,
            kind,
            completion: None,
        };
        for attribute in attributes.iter().filter(|attribute| !is_documentation(attribute)) {
            argument.note(attribute)?;
        }
        Ok(argument)
    }

    fn note(&mut self, attribute: &Attribute) -> Result<()> {
        if attribute.path().is_ident("complete") {
            if self.completion.is_some() {
                return Err(syn::Error::new_spanned(attribute, "`complete` was given before"));
            }
            self.completion = Some(completion(attribute)?);
            return Ok(());
        }
        if !attribute.path().is_ident("argument") {
            return Err(syn::Error::new_spanned(
                attribute,
                "unknown attribute: doc comments, `#[complete(…)]` and `#[argument(…)]` are known",
            ));
        }
        let mut name = None;
        attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("name") {
                name = Some(function::text(&meta, name.as_ref())?);
            } else if meta.path.is_ident("title") {
                self.title = Some(function::text(&meta, self.title.as_ref())?);
            } else {
                return Err(meta.error("unknown option: `name` and `title` are known"));
            }
            Ok(())
        })?;
        self.name = name.unwrap_or_else(|| std::mem::take(&mut self.name));
        Ok(())
    }

    /// The value of the parameter, made from `__arguments`.
    pub(crate) fn value(&self) -> TokenStream {
        let Self { name, kind, .. } = self;
        let function = match self.shape {
            Arity::One => quote!(required),
            Arity::Optional => quote!(optional),
            Arity::List => quote!(list),
        };
        quote!(::tenon_sdk::__private::#function::<#kind>(&__arguments, #name)?)
    }
}

/// How many texts a type is made from, and what one of them becomes.
fn shape(kind: &Type) -> Result<(Arity, Type)> {
    let Some((outer, inner)) = wrapped(kind) else { return Ok((Arity::One, kind.clone())) };
    if let Some((nested, _)) = wrapped(inner) {
        let message = match (outer, nested) {
            (Arity::Optional, Arity::List) => "a list may be empty: take `Vec<…>` alone",
            _ => "take `Option<…>` or `Vec<…>` of what a single text becomes",
        };
        return Err(syn::Error::new_spanned(kind, message));
    }
    Ok((outer, inner.clone()))
}

/// The type in an `Option` or a `Vec`.
fn wrapped(kind: &Type) -> Option<(Arity, &Type)> {
    let path = match kind {
        Type::Path(path) => path,
        // What a macro of the author's was given.
        Type::Group(group) => return wrapped(&group.elem),
        _ => return None,
    };
    let last = path.path.segments.last()?;
    let shape = match last.ident.to_string().as_str() {
        "Option" => Arity::Optional,
        "Vec" => Arity::List,
        _ => return None,
    };
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first()? {
        GenericArgument::Type(inner) => Some((shape, inner)),
        _ => None,
    }
}

/// Reads `#[complete("a", "b")]` or `#[complete(path::to::function)]`.
fn completion(attribute: &Attribute) -> Result<CompletionSource> {
    let meant = "write `#[complete(\"a\", \"b\")]` for fixed values, or \
                 `#[complete(path::to::function)]`";
    let list =
        attribute.meta.require_list().map_err(|_| syn::Error::new_spanned(attribute, meant))?;
    let expressions =
        Punctuated::<Expr, Token![,]>::parse_terminated.parse2(list.tokens.clone())?;
    let values: Option<Vec<_>> = expressions
        .iter()
        .map(|expression| match expression {
            Expr::Lit(ExprLit { lit: Lit::Str(value), .. }) => Some(value.clone()),
            _ => None,
        })
        .collect();
    match (values, expressions.first()) {
        (Some(values), Some(_)) => Ok(CompletionSource::Values(values)),
        (None, Some(Expr::Path(path))) if expressions.len() == 1 => {
            Ok(CompletionSource::Function(path.path.clone()))
        }
        _ => Err(syn::Error::new_spanned(attribute, meant)),
    }
}

/// The implementation of `CompleteArguments`, if one of the arguments has a completion.
pub(crate) fn complete(
    ident: &Ident,
    reference: &TokenStream,
    arguments: &[TextArgument],
) -> Option<TokenStream> {
    let arms: Vec<_> = arguments.iter().filter_map(arm).collect();
    if arms.is_empty() {
        return None;
    }
    let others = arguments.iter().filter(|argument| argument.completion.is_none());
    let others = others.map(|argument| &argument.name);
    Some(quote! {
        impl ::tenon_sdk::completion::CompleteArguments for #ident {
            const REFERENCE: ::tenon_sdk::completion::Reference = #reference;

            #[allow(unused_variables)]
            async fn complete(
                __name: &str,
                __typed: &str,
                __others: &::tenon_sdk::Arguments,
                __context: &::tenon_sdk::Context,
            ) -> Result<Option<::tenon_sdk::completion::Suggestions>, ::tenon_sdk::Failure> {
                Ok(Some(match __name {
                    #(#arms)*
                    #(#others => ::tenon_sdk::completion::none(),)*
                    _ => return Ok(None),
                }))
            }
        }
    })
}

fn arm(argument: &TextArgument) -> Option<TokenStream> {
    let name = &argument.name;
    Some(match argument.completion.as_ref()? {
        CompletionSource::Values(values) => {
            quote!(#name => ::tenon_sdk::completion::beginning(&[#(#values),*], __typed),)
        }
        CompletionSource::Function(path) => {
            let suggest = quote_spanned! {path.span()=>
                ::tenon_sdk::completion::suggest(&#path, __typed, __others, __context).await?
            };
            quote!(#name => #suggest,)
        }
    })
}

/// What is left of `CompleteArguments` of a function with a mistake.
pub(crate) fn mistaken(ident: &Ident, reference: &TokenStream) -> TokenStream {
    quote! {
        impl ::tenon_sdk::completion::CompleteArguments for #ident {
            const REFERENCE: ::tenon_sdk::completion::Reference = #reference;

            async fn complete(
                _: &str,
                _: &str,
                _: &::tenon_sdk::Arguments,
                _: &::tenon_sdk::Context,
            ) -> Result<Option<::tenon_sdk::completion::Suggestions>, ::tenon_sdk::Failure> {
                ::core::unreachable!()
            }
        }
    }
}
