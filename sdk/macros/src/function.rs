//! What the attributes read of a function: its documentation and its parameters.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::meta::ParseNestedMeta;
use syn::{
    Attribute, Expr, ExprLit, FnArg, GenericArgument, Ident, Item, ItemFn, Lit, LitStr, Meta, Pat,
    PatType, PathArguments, Result, Token, Type,
};

/// A parameter that is not the context.
pub(crate) struct Parameter {
    pub(crate) attributes: Vec<Attribute>,
    pub(crate) name: Ident,
    pub(crate) kind: Type,
}

/// How to pass one argument, in the order of the signature.
pub(crate) enum Argument {
    Context,
    Parameter(Box<Parameter>),
}

/// Reads the function that an attribute is on.
pub(crate) fn function(tokens: TokenStream, attribute: &str) -> Result<ItemFn> {
    match syn::parse2(tokens)? {
        Item::Fn(function) => Ok(function),
        other => Err(syn::Error::new_spanned(
            other,
            format!("`#[{attribute}]` goes above an `async fn`"),
        )),
    }
}

/// What is left of a function after a mistake: itself, and the type that `plugin!` lists, with
/// implementations that are never reached. So the mistake is all that is reported.
pub(crate) fn mistaken(
    tokens: TokenStream,
    error: &syn::Error,
    implementations: impl FnOnce(&Ident) -> TokenStream,
) -> TokenStream {
    let error = error.to_compile_error();
    let Ok(mut function) = syn::parse2::<ItemFn>(tokens) else { return error };
    for input in &mut function.sig.inputs {
        if let FnArg::Typed(typed) = input {
            typed.attrs.clear();
        }
    }
    let (visibility, ident) = (&function.vis, &function.sig.ident);
    let implementations = implementations(ident);
    quote! {
        #error
        #[allow(dead_code)]
        #function

        #[doc(hidden)]
        #[allow(dead_code, non_camel_case_types)]
        #visibility struct #ident {}

        #implementations
    }
}

/// Refuses what stands in an attribute as a text alone, which a name is often taken to be.
pub(crate) fn no_text(tokens: &TokenStream) -> Result<()> {
    no_text_but(tokens, |text| format!("write `name = {text:?}` to give it another name"))
}

/// The same, saying what to write in place of the text.
pub(crate) fn no_text_but(tokens: &TokenStream, meant: impl FnOnce(&str) -> String) -> Result<()> {
    match syn::parse2::<LitStr>(tokens.clone()) {
        Ok(text) => Err(syn::Error::new_spanned(&text, meant(&text.value()))),
        Err(_) => Ok(()),
    }
}

/// Reads the text that an option is given, which is given once.
pub(crate) fn text(meta: &ParseNestedMeta<'_>, before: Option<&String>) -> Result<String> {
    let option = meta.path.require_ident()?;
    if !meta.input.peek(Token![=]) {
        return Err(meta.error(format!("write `{option} = \"…\"`")));
    }
    let literal: LitStr = meta.value()?.parse()?;
    if before.is_some() {
        return Err(meta.error(format!("`{option}` was given before")));
    }
    let text = literal.value();
    match text.chars().count() {
        0 | 129.. if option == "name" => {
            Err(syn::Error::new_spanned(literal, "a name has 1 to 128 characters"))
        }
        _ => Ok(text),
    }
}

/// Checks that the function is async and plain, and takes its parameters apart, which are made from
/// `JSON` or `text`. Their attributes are removed from the function, where the compiler would refuse
/// them.
pub(crate) fn arguments(function: &mut ItemFn, source: &str) -> Result<Vec<Argument>> {
    let signature = &mut function.sig;
    if signature.asyncness.is_none() {
        return Err(syn::Error::new_spanned(
            signature.fn_token,
            "this function must be `async`: write `async fn`",
        ));
    }
    if !signature.generics.params.is_empty() {
        return Err(syn::Error::new_spanned(
            &signature.generics,
            format!("a plugin's function cannot be generic: the host calls it with {source}"),
        ));
    }
    signature.inputs.iter_mut().map(|input| argument(input, source)).collect()
}

fn argument(input: &mut FnArg, source: &str) -> Result<Argument> {
    let PatType { attrs, pat, ty, .. } = match input {
        FnArg::Typed(typed) => typed,
        FnArg::Receiver(receiver) => {
            return Err(syn::Error::new_spanned(receiver, "a plugin's function takes no `self`"));
        }
    };
    let attributes = std::mem::take(attrs);
    match &**ty {
        Type::Reference(reference) if is_context(&reference.elem) => return Ok(Argument::Context),
        owned if is_context(owned) => {
            return Err(syn::Error::new_spanned(
                owned,
                "write `&Context` for the context of the call; a type of your own needs another name",
            ));
        }
        _ => {}
    }
    let Pat::Ident(name) = &**pat else {
        return Err(syn::Error::new_spanned(
            pat,
            "give the parameter a name: it is the argument's",
        ));
    };
    if let Some((part, problem)) = not_owned(ty) {
        let message = format!("a parameter is made from {source}{problem}");
        return Err(syn::Error::new_spanned(part, message));
    }
    let parameter = Parameter { attributes, name: name.ident.clone(), kind: (**ty).clone() };
    Ok(Argument::Parameter(Box::new(parameter)))
}

/// A part of a type that no value can have which is made for a call, and why.
fn not_owned(kind: &Type) -> Option<(&Type, &'static str)> {
    match kind {
        Type::Reference(_) => Some((
            kind,
            " and must own its value: write its type without `&`, and `String` for `&str`",
        )),
        Type::ImplTrait(_) => Some((kind, ", as one type: write `String` for `impl Into<String>`")),
        Type::Path(path) => {
            let arguments =
                path.path.segments.iter().filter_map(|segment| match &segment.arguments {
                    PathArguments::AngleBracketed(arguments) => Some(&arguments.args),
                    _ => None,
                });
            arguments.flatten().find_map(|argument| match argument {
                GenericArgument::Type(kind) => not_owned(kind),
                _ => None,
            })
        }
        Type::Tuple(tuple) => tuple.elems.iter().find_map(not_owned),
        Type::Array(array) => not_owned(&array.elem),
        Type::Paren(inner) => not_owned(&inner.elem),
        Type::Group(inner) => not_owned(&inner.elem),
        _ => None,
    }
}

fn is_context(kind: &Type) -> bool {
    matches!(kind, Type::Path(path)
        if path.path.segments.last().is_some_and(|segment| segment.ident == "Context"))
}

/// Whether an attribute is a line of a doc comment.
pub(crate) fn is_documentation(attribute: &Attribute) -> bool {
    attribute.path().is_ident("doc")
}

/// The text of the doc comment, with single line breaks joined as Markdown does.
pub(crate) fn documentation(attributes: &[Attribute]) -> String {
    let mut text = String::new();
    for attribute in attributes {
        let Meta::NameValue(meta) = &attribute.meta else { continue };
        let Expr::Lit(ExprLit { lit: Lit::Str(line), .. }) = &meta.value else { continue };
        if !is_documentation(attribute) {
            continue;
        }
        let line = line.value();
        let line = line.trim();
        match line {
            "" => text.push_str("\n\n"),
            _ if text.is_empty() || text.ends_with('\n') => text.push_str(line),
            _ => {
                text.push(' ');
                text.push_str(line);
            }
        }
    }
    text.trim().to_string()
}

/// Requires a doc comment, which is what people and models read.
pub(crate) fn required_documentation(function: &ItemFn, what: &str) -> Result<String> {
    let text = documentation(&function.attrs);
    if text.is_empty() {
        return Err(syn::Error::new_spanned(
            &function.sig.ident,
            format!("write a doc comment: it is the description of the {what}"),
        ));
    }
    Ok(text)
}

/// Whether the function returns something, and what.
pub(crate) fn returned(function: &ItemFn) -> TokenStream {
    match &function.sig.output {
        syn::ReturnType::Default => quote!(()),
        syn::ReturnType::Type(_, kind) => kind.to_token_stream(),
    }
}
