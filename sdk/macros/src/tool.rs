//! `#[tool]`

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::Parser;
use syn::spanned::Spanned;
use syn::{Ident, LitBool, LitStr, Result, Token, meta, token};

use crate::function::{
    self, Argument, Parameter, arguments, documentation, is_documentation, required_documentation,
    returned,
};
use crate::tokens::optional;

#[derive(Default)]
struct Options {
    name: Option<String>,
    title: Option<String>,
    capabilities: Vec<LitStr>,
    hints: Vec<(&'static str, bool)>,
}

/// The hints of `tool-annotations`, by the names of their fields.
const HINTS: [&str; 4] = ["read_only", "destructive", "idempotent", "open_world"];

fn options(tokens: TokenStream) -> Result<Options> {
    let mut options = Options::default();
    let parser = meta::parser(|meta| {
        if meta.path.is_ident("name") {
            options.name = Some(function::text(&meta, options.name.as_ref())?);
        } else if meta.path.is_ident("title") {
            options.title = Some(function::text(&meta, options.title.as_ref())?);
        } else if meta.path.is_ident("capabilities") {
            if !meta.input.peek(token::Paren) {
                return Err(meta.error("write `capabilities(\"…\", \"…\")`"));
            }
            let content;
            syn::parenthesized!(content in meta.input);
            let list = content.parse_terminated(<LitStr as syn::parse::Parse>::parse, Token![,])?;
            options.capabilities.extend(list);
        } else if let Some(hint) = HINTS.into_iter().find(|hint| meta.path.is_ident(hint)) {
            let value = match meta.input.peek(Token![=]) {
                true => meta.value()?.parse::<LitBool>()?.value,
                false => true,
            };
            if options.hints.iter().any(|(before, _)| *before == hint) {
                return Err(meta.error(format!("`{hint}` was given before")));
            }
            options.hints.push((hint, value));
            if ["read_only", "destructive"].map(|hint| options.hints.contains(&(hint, true)))
                == [true; 2]
            {
                return Err(meta.error("a tool that only reads destroys nothing: leave out one"));
            }
        } else {
            return Err(meta.error(
                "unknown option: `name`, `title`, `capabilities`, `read_only`, `destructive`, \
                 `idempotent` and `open_world` are known",
            ));
        }
        Ok(())
    });
    function::no_text(&tokens)?;
    parser.parse2(tokens)?;
    Ok(options)
}

pub(crate) fn expand(tokens: TokenStream, function: TokenStream) -> Result<TokenStream> {
    let options = options(tokens)?;
    let mut function = function::function(function, "tool")?;
    let description = required_documentation(&function, "tool")?;
    let arguments = arguments(&mut function, "JSON")?;

    let ident = &function.sig.ident;
    let visibility = &function.vis;
    let name = options.name.unwrap_or_else(|| ident.unraw().to_string());
    let title = optional(options.title.as_deref());
    let capabilities = &options.capabilities;
    let hints = HINTS.map(|hint| {
        let field = format_ident!("{hint}");
        let value = options.hints.iter().find(|(name, _)| *name == hint).map(|(_, value)| *value);
        let value = optional(value);
        quote!(#field: #value)
    });
    let output = returned(&function);

    let holder = format_ident!("__{}_arguments", ident.unraw());
    let fields = arguments.iter().filter_map(|argument| match argument {
        Argument::Context => None,
        Argument::Parameter(parameter) => {
            let (attributes, name, kind) =
                (&parameter.attributes, &parameter.name, &parameter.kind);
            let documentation = documentation(attributes);
            let documentation =
                (!documentation.is_empty()).then(|| quote!(#[doc = #documentation]));
            let others = attributes.iter().filter(|attribute| !is_documentation(attribute));
            Some(quote!(#documentation #(#others)* #name: #kind))
        }
    });
    let SchemaTokens { written, parsed } =
        input_schema(&arguments, &holder, &format!("tool {name:?}"));
    // `serde` refuses what it does not know in one struct alone, and not across several.
    let closed = (!arguments.iter().any(is_flattened)).then(|| quote!(, deny_unknown_fields));
    let checks = arguments.iter().filter_map(|argument| match argument {
        Argument::Context => None,
        Argument::Parameter(parameter) => {
            let kind = &parameter.kind;
            Some(quote_spanned!(kind.span()=> ::tenon_sdk::__private::check_argument::<#kind>();))
        }
    });
    let passed = arguments.iter().map(|argument| match argument {
        Argument::Context => quote!(&__context),
        Argument::Parameter(parameter) => {
            let name: &Ident = &parameter.name;
            quote!(__arguments.#name)
        }
    });

    Ok(quote! {
        #function

        #[doc(hidden)]
        #[allow(non_camel_case_types)]
        #visibility struct #ident {}

        const _: () = { #(#checks)* };

        const _: () = {
            #[derive(::tenon_sdk::serde::Deserialize, ::tenon_sdk::schemars::JsonSchema)]
            #[serde(crate = "::tenon_sdk::serde" #closed)]
            #[schemars(crate = "::tenon_sdk::schemars")]
            #[allow(non_camel_case_types)]
            struct #holder { #(#fields),* }

            fn __input_schema() -> String {
                #written
            }

            impl ::tenon_sdk::tool::Tool for #ident {
                const NAME: &'static str = #name;

                fn definition() -> ::tenon_sdk::__private::types::ToolDefinition {
                    ::tenon_sdk::__private::types::ToolDefinition {
                        name: Self::NAME.to_string(),
                        title: #title.map(str::to_string),
                        description: #description.to_string(),
                        input_schema: __input_schema(),
                        output_schema: <#output as ::tenon_sdk::tool::IntoToolResult>::output_schema(),
                        annotations: ::tenon_sdk::__private::types::ToolAnnotations { #(#hints),* },
                        capabilities: vec![#(#capabilities.to_string()),*],
                        extra: None,
                    }
                }

                #[allow(unused_variables)]
                async fn call(
                    __arguments: String,
                    __context: ::tenon_sdk::Context,
                ) -> Result<::tenon_sdk::ToolResult, ::tenon_sdk::Failure> {
                    let __arguments: #holder = #parsed?;
                    <#output as ::tenon_sdk::tool::IntoToolResult>::into_tool_result(
                        #ident(#(#passed),*).await,
                    )
                }
            }
        };
    })
}

/// What is left of a function that cannot be a tool.
pub(crate) fn mistaken(function: TokenStream, error: &syn::Error) -> TokenStream {
    function::mistaken(function, error, |ident: &Ident| {
        quote! {
            impl ::tenon_sdk::tool::Tool for #ident {
                const NAME: &'static str = ::core::stringify!(#ident);

                fn definition() -> ::tenon_sdk::__private::types::ToolDefinition {
                    ::core::unreachable!()
                }

                async fn call(
                    _: String,
                    _: ::tenon_sdk::Context,
                ) -> Result<::tenon_sdk::ToolResult, ::tenon_sdk::Failure> {
                    ::core::unreachable!()
                }
            }
        }
    })
}

/// Whether a parameter stands for members of the arguments, and is none itself.
fn is_flattened(argument: &Argument) -> bool {
    let Argument::Parameter(parameter) = argument else { return false };
    parameter.attributes.iter().any(|attribute| {
        let Ok(list) = attribute.meta.require_list() else { return false };
        list.tokens.clone().into_iter().any(|token| token.to_string() == "flatten")
    })
}

/// Expressions of the schema of the arguments.
struct SchemaTokens {
    /// The schema as text: put together from constants where all parameters allow it, which an attribute may not, and
    /// else generated.
    written: TokenStream,
    /// The arguments, read by it.
    parsed: TokenStream,
}

fn input_schema(arguments: &[Argument], holder: &Ident, what: &str) -> SchemaTokens {
    let generated = quote!(::tenon_sdk::__private::input_schema::<#holder>());
    let checked =
        quote!(::tenon_sdk::__private::parse_checked(#what, &__arguments, __input_schema));
    let mut parameters = Vec::new();
    for argument in arguments {
        let Argument::Parameter(parameter) = argument else { continue };
        let Parameter { attributes, name, kind } = &**parameter;
        if !attributes.iter().all(is_documentation) {
            return SchemaTokens { written: generated, parsed: checked };
        }
        let name = json(&name.unraw().to_string());
        let documentation = documentation(attributes);
        let description =
            if documentation.is_empty() { String::new() } else { json(&documentation) };
        parameters.push(quote! {
            ::tenon_sdk::__private::Parameter {
                name: #name,
                description: #description,
                schema: ::tenon_sdk::__private::ConstSchemaOf::<#kind>::SCHEMA,
            }
        });
    }
    let parameters = quote! {
        #[allow(unused_imports)]
        use ::tenon_sdk::__private::ConstSchemaFallback as _;
        const PARAMETERS: &[::tenon_sdk::__private::Parameter] = &[#(#parameters),*];
    };
    let are_known = quote!(const { ::tenon_sdk::__private::are_known(PARAMETERS) });
    let written = quote! {{
        #parameters
        match #are_known {
            true => ::tenon_sdk::__private::object(PARAMETERS),
            false => #generated,
        }
    }};
    let parsed = quote! {{
        #parameters
        match #are_known {
            true => ::tenon_sdk::__private::parse_known(#what, &__arguments, PARAMETERS),
            false => #checked,
        }
    }};
    SchemaTokens { written, parsed }
}

/// A text as JSON.
fn json(text: &str) -> String {
    let mut json = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => json.extend(['\\', c]),
            control if control < ' ' => json.push_str(&format!("\\u{:04x}", control as u32)),
            other => json.push(other),
        }
    }
    json.push('"');
    json
}
