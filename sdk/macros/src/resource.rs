//! `#[resource]`

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::{Ident, LitInt, LitStr, Path, Result, Token, meta};

use crate::function::{self, Argument, arguments, required_documentation, returned};
use crate::text_argument::{self, Arity, TextArgument};
use crate::tokens::optional;
use tenon_uri_template::{Part, UriTemplate, Variable};

struct Options {
    uri: LitStr,
    name: Option<String>,
    title: Option<String>,
    mime_type: Option<String>,
    size: Option<LitInt>,
    list: Option<Path>,
}

fn options(tokens: TokenStream) -> Result<Options> {
    let (uri, rest) = (|input: ParseStream<'_>| {
        let uri: LitStr = match input.peek(LitStr) {
            true => input.parse()?,
            false => {
                return Err(syn::Error::new(
                    if input.is_empty() { Span::call_site() } else { input.span() },
                    "write the URI first, or its template: `#[resource(\"notes://{name}\")]`",
                ));
            }
        };
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
        }
        Ok((uri, input.parse::<TokenStream>()?))
    })
    .parse2(tokens)?;
    let mut options =
        Options { uri, name: None, title: None, mime_type: None, size: None, list: None };
    let parser = meta::parser(|meta| {
        if meta.path.is_ident("name") {
            options.name = Some(function::text(&meta, options.name.as_ref())?);
        } else if meta.path.is_ident("title") {
            options.title = Some(function::text(&meta, options.title.as_ref())?);
        } else if meta.path.is_ident("mime_type") {
            options.mime_type = Some(function::text(&meta, options.mime_type.as_ref())?);
        } else if meta.path.is_ident("size") {
            options.size = Some(meta.value()?.parse()?);
        } else if meta.path.is_ident("list") {
            options.list = Some(meta.value()?.parse()?);
        } else {
            return Err(meta.error(
                "unknown option: `name`, `title`, `mime_type`, `size` and `list` are known",
            ));
        }
        Ok(())
    });
    parser.parse2(rest)?;
    Ok(options)
}

pub(crate) fn expand(tokens: TokenStream, function: TokenStream) -> Result<TokenStream> {
    let options = options(tokens)?;
    let mut function = function::function(function, "resource")?;
    let description = required_documentation(&function, "resource")?;
    let uri = options.uri.value();
    let parsed = |is_optional: &dyn Fn(&str) -> bool| {
        let parsed = UriTemplate::parse_with(&uri, is_optional);
        parsed.map_err(|error| syn::Error::new_spanned(&options.uri, error))
    };
    let (mut texts, mut passed) = (Vec::<TextArgument>::new(), Vec::new());
    for argument in arguments(&mut function, "text")? {
        passed.push(match argument {
            Argument::Context => quote!(&__context),
            Argument::Parameter(parameter) => {
                let argument = TextArgument::new(&parameter)?;
                let value = argument.value();
                texts.push(argument);
                value
            }
        });
    }
    let template = parsed(&|name| {
        texts.iter().any(|argument| argument.name == name && argument.shape == Arity::Optional)
    })?;
    check_variables(&template, &texts, &options.uri)?;
    check_options(&options, texts.is_empty())?;

    let ident = &function.sig.ident;
    let visibility = &function.vis;
    let output = returned(&function);
    let name = options.name.unwrap_or_else(|| ident.unraw().to_string());
    let title = optional(options.title.as_deref());
    let mime_type = match options.mime_type {
        Some(mime_type) => quote!(Some(#mime_type)),
        None => quote!(<#output as ::tenon_sdk::resource::IntoResourceContents>::MIME_TYPE),
    };
    let size = optional(options.size.as_ref());
    let parts = template.parts().iter().map(part);
    let list = options.list.as_ref().map(|path| {
        let listed = quote_spanned! {path.span()=>
            ::tenon_sdk::resource::listed(&#path, __context).await
        };
        quote! {
            const LISTS: bool = true;

            async fn list(
                __context: &::tenon_sdk::Context,
            ) -> Result<Vec<::tenon_sdk::resource::ListedResource>, ::tenon_sdk::Failure> {
                #listed
            }
        }
    });
    let completes = texts.iter().any(|argument| argument.completion.is_some());
    let reference = quote!(::tenon_sdk::completion::Reference::ResourceTemplate(#uri));
    let complete = text_argument::complete(ident, &reference, &texts);

    Ok(quote! {
        #function

        #[doc(hidden)]
        #[allow(non_camel_case_types)]
        #visibility struct #ident {}

        impl ::tenon_sdk::resource::Resource for #ident {
            const URI: &'static str = #uri;

            const TEMPLATE: ::tenon_sdk::resource::UriTemplate =
                ::tenon_sdk::resource::UriTemplate::from_parsed(#uri, &[#(#parts),*]);
            const ABOUT: ::tenon_sdk::resource::About = ::tenon_sdk::resource::About {
                name: #name,
                title: #title,
                description: #description,
                mime_type: #mime_type,
                size: #size,
            };
            const COMPLETES: bool = #completes;

            #[allow(unused_variables)]
            async fn read(
                __uri: &str,
                __arguments: ::tenon_sdk::Arguments,
                __context: ::tenon_sdk::Context,
            ) -> Result<Vec<::tenon_sdk::ResourceContents>, ::tenon_sdk::Failure> {
                let contents = #ident(#(#passed),*).await;
                <#output as ::tenon_sdk::resource::IntoResourceContents>::into_contents(
                    contents,
                    __uri,
                    <Self as ::tenon_sdk::resource::Resource>::ABOUT.mime_type,
                )
            }

            #list
        }

        #complete
    })
}

/// Checks that the variables are the parameters, and lists those that take one.
fn check_variables(template: &UriTemplate, texts: &[TextArgument], uri: &LitStr) -> Result<()> {
    for argument in texts {
        let TextArgument { ident, name, title, .. } = argument;
        let Some(variable) = template.variables().find(|variable| variable.name == *name) else {
            return Err(syn::Error::new_spanned(
                ident,
                format!(
                    "the URI has no variable `{name}`: write `{{{name}}}` where its value stands"
                ),
            ));
        };
        if title.is_some() {
            return Err(syn::Error::new_spanned(ident, "a variable of a URI has no title"));
        }
        let problem = match (variable.is_list, argument.shape) {
            (true, Arity::One | Arity::Optional) => {
                format!("`{name}*` in the URI is a list: take `Vec<…>`")
            }
            (false, Arity::List) => {
                format!("for a list, write `{name}*` in the URI, as in `{{/{name}*}}`")
            }
            _ => continue,
        };
        return Err(syn::Error::new_spanned(ident, problem));
    }
    let is_taken = |name: &str| texts.iter().any(|argument| argument.name == name);
    match template.variables().find(|variable| !is_taken(&variable.name)) {
        Some(untaken) => {
            let name = &untaken.name;
            let parameter = match untaken.is_list {
                true => format!("{name}: Vec<String>"),
                false => format!("{name}: String"),
            };
            Err(syn::Error::new_spanned(
                uri,
                format!("no parameter takes the variable `{name}`: add `{parameter}`"),
            ))
        }
        None => Ok(()),
    }
}

/// Checks that a resource has no options of templates, and the other way round.
fn check_options(options: &Options, is_fixed: bool) -> Result<()> {
    if let (Some(list), true) = (&options.list, is_fixed) {
        return Err(syn::Error::new_spanned(
            list,
            "a URI without variables is listed as it is: leave out `list`",
        ));
    }
    if let (Some(size), false) = (&options.size, is_fixed) {
        return Err(syn::Error::new_spanned(
            size,
            "a template has no size: say it of what `list` lists",
        ));
    }
    Ok(())
}

fn part(part: &Part) -> TokenStream {
    let text = |text: &str| quote!(::std::borrow::Cow::Borrowed(#text));
    match part {
        Part::Literal(literal) => {
            let literal = text(literal);
            quote!(::tenon_sdk::resource::Part::Literal(#literal))
        }
        Part::Expression(expression) => {
            let operator = format_ident!("{}", format!("{:?}", expression.operator));
            let (written, tail) = (text(&expression.text), text(&expression.tail));
            let variables = expression.variables.iter().map(|variable| {
                let Variable { name, is_list, is_required } = variable;
                let name = text(name);
                quote! {
                    ::tenon_sdk::resource::Variable {
                        name: #name,
                        is_list: #is_list,
                        is_required: #is_required,
                    }
                }
            });
            quote! {
                ::tenon_sdk::resource::Part::Expression(::tenon_sdk::resource::Expression {
                    text: #written,
                    operator: ::tenon_sdk::resource::Operator::#operator,
                    variables: ::std::borrow::Cow::Borrowed(&[#(#variables),*]),
                    tail: #tail,
                })
            }
        }
    }
}

/// What is left of a function that cannot be a resource.
pub(crate) fn mistaken(function: TokenStream, error: &syn::Error) -> TokenStream {
    function::mistaken(function, error, |ident: &Ident| {
        let uri = quote!(::core::stringify!(#ident));
        let reference = quote!(::tenon_sdk::completion::Reference::ResourceTemplate(#uri));
        let complete = text_argument::mistaken(ident, &reference);
        quote! {
            impl ::tenon_sdk::resource::Resource for #ident {
                const URI: &'static str = #uri;

            const TEMPLATE: ::tenon_sdk::resource::UriTemplate =
                    ::tenon_sdk::resource::UriTemplate::from_parsed(#uri, &[]);
                const ABOUT: ::tenon_sdk::resource::About = ::tenon_sdk::resource::About {
                    name: #uri,
                    title: None,
                    description: "",
                    mime_type: None,
                    size: None,
                };

                async fn read(
                    _: &str,
                    _: ::tenon_sdk::Arguments,
                    _: ::tenon_sdk::Context,
                ) -> Result<Vec<::tenon_sdk::ResourceContents>, ::tenon_sdk::Failure> {
                    ::core::unreachable!()
                }
            }

            #complete
        }
    })
}
