//! What the attributes read of a function: its documentation and its parameters.

use quote::ToTokens;
use syn::{Attribute, Expr, ExprLit, FnArg, Ident, ItemFn, Lit, Meta, Pat, PatType, Result, Type};

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

/// Checks that the function is async and plain, and takes its parameters apart. Their attributes
/// are removed from the function, where the compiler would refuse them.
pub(crate) fn arguments(function: &mut ItemFn) -> Result<Vec<Argument>> {
    let signature = &mut function.sig;
    if signature.asyncness.is_none() {
        return Err(syn::Error::new_spanned(signature.fn_token, "this function must be `async`"));
    }
    if !signature.generics.params.is_empty() {
        return Err(syn::Error::new_spanned(
            &signature.generics,
            "a plugin's function cannot be generic: the host calls it with JSON",
        ));
    }
    signature.inputs.iter_mut().map(argument).collect()
}

fn argument(input: &mut FnArg) -> Result<Argument> {
    let PatType { attrs, pat, ty, .. } = match input {
        FnArg::Typed(typed) => typed,
        FnArg::Receiver(receiver) => {
            return Err(syn::Error::new_spanned(receiver, "a plugin's function takes no `self`"));
        }
    };
    let attributes = std::mem::take(attrs);
    if is_context(ty) {
        return Ok(Argument::Context);
    }
    let Pat::Ident(name) = &**pat else {
        return Err(syn::Error::new_spanned(
            pat,
            "give the parameter a name: it is the argument's",
        ));
    };
    if let Type::Reference(reference) = &**ty {
        return Err(syn::Error::new_spanned(
            reference,
            "a parameter is made from JSON and must own its value: write `String` for `&str`",
        ));
    }
    let parameter = Parameter { attributes, name: name.ident.clone(), kind: (**ty).clone() };
    Ok(Argument::Parameter(Box::new(parameter)))
}

fn is_context(kind: &Type) -> bool {
    let Type::Reference(reference) = kind else { return false };
    matches!(&*reference.elem, Type::Path(path)
        if path.path.segments.last().is_some_and(|segment| segment.ident == "Context"))
}

/// The text of the doc comment, with single line breaks joined as Markdown does.
pub(crate) fn documentation(attributes: &[Attribute]) -> String {
    let mut text = String::new();
    for attribute in attributes {
        let Meta::NameValue(meta) = &attribute.meta else { continue };
        let Expr::Lit(ExprLit { lit: Lit::Str(line), .. }) = &meta.value else { continue };
        if !attribute.path().is_ident("doc") {
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
pub(crate) fn returned(function: &ItemFn) -> proc_macro2::TokenStream {
    match &function.sig.output {
        syn::ReturnType::Default => quote::quote!(()),
        syn::ReturnType::Type(_, kind) => kind.to_token_stream(),
    }
}
