//! The JSON Schemas of arguments and answers.

mod choices;
mod closed;

use std::marker::PhantomData;
use std::str::FromStr;

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;

/// The JSON Schema of `T`.
///
/// It says neither its dialect, which is the contract's, nor a title, which would repeat a Rust name:
/// a model reads all of it, and each component carries what writes it.
#[doc(hidden)]
pub fn schema<T: JsonSchema>() -> String {
    generated::<T>().to_string()
}

/// The JSON Schema of `T` as arguments, which allows no members that are not in it.
#[doc(hidden)]
pub fn input_schema<T: JsonSchema>() -> String {
    let mut schema = generated::<T>();
    closed::close(&mut schema);
    schema.to_string()
}

fn generated<T: JsonSchema>() -> Value {
    let mut generator = SchemaGenerator::default();
    let mut schema = T::json_schema(&mut generator);
    let definitions = generator.take_definitions(false);
    if !definitions.is_empty() {
        schema.insert("$defs".into(), Value::Object(definitions));
    }
    let mut schema = schema.to_value();
    choices::join(&mut schema);
    schema
}

/// A parameter of a tool, as the attribute describes it.
#[doc(hidden)]
pub struct Parameter {
    /// Its name, as JSON.
    pub name: &'static str,
    /// What its documentation says, as JSON; empty without any.
    pub description: &'static str,
    /// Its schema, where that is known.
    pub schema: Option<ConstantSchema>,
}

/// The schema of a type as a constant. A tool that takes nothing but such types does without the
/// generator, which is a tenth of a small component.
#[doc(hidden)]
pub struct ConstantSchema {
    /// The members of the schema.
    pub members: &'static str,
    /// Whether a parameter of the type has to be there.
    pub is_required: bool,
    /// What the schema allows.
    pub kind: PrimitiveType,
}

/// What values of a type, or of its items, can be.
#[doc(hidden)]
pub struct PrimitiveType {
    /// The type in the schema.
    pub name: &'static str,
    /// Whether the type is a list of such values.
    pub is_list: bool,
    /// Whether a value, as JSON, is of this type.
    pub fits: fn(&str) -> bool,
    /// The least integer.
    pub least: &'static str,
    /// The greatest integer.
    pub most: &'static str,
}

/// The schema of a type, where it is a constant. The constants of single types go before that of
/// [`ConstSchemaFallback`].
#[doc(hidden)]
pub struct ConstSchemaOf<T>(PhantomData<T>);

/// Types whose schema only the generator knows.
#[doc(hidden)]
pub trait ConstSchemaFallback {
    const SCHEMA: Option<ConstantSchema> = None;
}

impl<T> ConstSchemaFallback for ConstSchemaOf<T> {}

macro_rules! known {
    ($($type:ty = $kind:literal $more:literal, $least:literal..=$most:literal, $fits:expr;)*) => {$(
        known!($type, true, false, $kind, $least, $most, $fits, concat!(r#""type":""#, $kind, r#"""#, $more));
        known!(
            Option<$type>, false, false, $kind, $least, $most, $fits,
            concat!(r#""type":[""#, $kind, r#"","null"]"#, $more)
        );
        known!(
            Vec<$type>, true, true, $kind, $least, $most, $fits,
            concat!(r#""type":"array","items":{"type":""#, $kind, r#"""#, $more, "}")
        );
        known!(
            Option<Vec<$type>>, false, true, $kind, $least, $most, $fits,
            concat!(r#""type":["array","null"],"items":{"type":""#, $kind, r#"""#, $more, "}")
        );
    )*};
    (
        $type:ty, $is_required:literal, $is_list:literal, $kind:literal, $least:literal, $most:literal, $fits:expr,
        $members:expr
    ) => {
        impl ConstSchemaOf<$type> {
            pub const SCHEMA: Option<ConstantSchema> = Some(ConstantSchema {
                members: $members,
                is_required: $is_required,
                kind: PrimitiveType {
                    name: $kind,
                    is_list: $is_list,
                    fits: $fits,
                    least: $least,
                    most: $most,
                },
            });
        }
    };
}

fn is_a<T: FromStr>(json: &str) -> bool {
    json.parse::<T>().is_ok()
}

fn is_number(json: &str) -> bool {
    json.starts_with(|c: char| c == '-' || c.is_ascii_digit())
}

known!(
    String = "string" "", ""..="", |json| json.starts_with('"');
    bool = "boolean" "", ""..="", is_a::<bool>;
    i32 = "integer" r#","format":"int32""#, "-2147483648"..="2147483647", is_a::<i32>;
    i64 = "integer" r#","format":"int64""#, "-9223372036854775808"..="9223372036854775807", is_a::<i64>;
    isize = "integer" r#","format":"int""#, "-2147483648"..="2147483647", is_a::<isize>;
    u32 = "integer" r#","format":"uint32","minimum":0"#, "0"..="4294967295", is_a::<u32>;
    u64 = "integer" r#","format":"uint64","minimum":0"#, "0"..="18446744073709551615", is_a::<u64>;
    usize = "integer" r#","format":"uint","minimum":0"#, "0"..="4294967295", is_a::<usize>;
    f32 = "number" r#","format":"float""#, ""..="", is_number;
    f64 = "number" r#","format":"double""#, ""..="", is_number;
);

/// Whether the schemas of all parameters are constants.
#[doc(hidden)]
pub const fn are_known(parameters: &[Parameter]) -> bool {
    let mut i = 0;
    while i < parameters.len() {
        if parameters[i].schema.is_none() {
            return false;
        }
        i += 1;
    }
    true
}

/// The schema of an object of parameters whose schemas are constants.
#[doc(hidden)]
pub fn object(parameters: &[Parameter]) -> String {
    let mut properties = String::new();
    let mut required = String::new();
    for Parameter { name, description, schema } in parameters {
        let Some(ConstantSchema { members, is_required, .. }) = schema else { continue };
        let comma = if properties.is_empty() { "" } else { "," };
        let (key, after) =
            if description.is_empty() { ("", "") } else { (r#""description":"#, ",") };
        for text in [comma, name, ":{", key, description, after, members, "}"] {
            properties.push_str(text);
        }
        if *is_required {
            required.push_str(if required.is_empty() { "" } else { "," });
            required.push_str(name);
        }
    }
    // Without properties, a host would say less of a member that is not allowed.
    let mut schema = String::from(r#"{"type":"object","properties":{"#);
    schema.push_str(&properties);
    schema.push('}');
    if !required.is_empty() {
        for text in [r#","required":["#, &required, "]"] {
            schema.push_str(text);
        }
    }
    schema.push_str(r#","additionalProperties":false}"#);
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct RecursiveType {
        name: String,
        branches: Vec<RecursiveType>,
    }

    #[test]
    fn a_type_within_itself_is_defined_beside_it() {
        let schema: Value = serde_json::from_str(&schema::<RecursiveType>()).unwrap();
        let branches = &schema["properties"]["branches"];
        assert_eq!(branches["items"]["$ref"], "#/$defs/RecursiveType");
        assert_eq!(schema["$defs"]["RecursiveType"]["properties"]["branches"], *branches);
        assert_eq!(schema["type"], "object");
        assert!(schema.get("title").is_none() && schema.get("$schema").is_none());
    }

    /// Holds a constant against what the generator makes of the same type.
    macro_rules! check {
        ($($type:ty),*) => {$({
            #[derive(JsonSchema)]
            #[allow(dead_code)]
            struct Arguments {
                /// What it "is".
                described: $type,
                plain: $type,
            }
            let parameters = [
                Parameter {
                    name: "\"described\"",
                    description: r#""What it \"is\".""#,
                    schema: ConstSchemaOf::<$type>::SCHEMA,
                },
                Parameter { name: "\"plain\"", description: "", schema: ConstSchemaOf::<$type>::SCHEMA },
            ];
            assert!(are_known(&parameters));
            let ours: Value = serde_json::from_str(&object(&parameters)).unwrap();
            let generated: Value = serde_json::from_str(&input_schema::<Arguments>()).unwrap();
            assert_eq!(ours, generated);
        })*};
    }

    macro_rules! check_with_options_and_lists {
        ($($type:ty),*) => {
            $(check!($type, Option<$type>, Vec<$type>, Option<Vec<$type>>);)*
        };
    }

    #[test]
    fn constants_are_what_the_generator_says() {
        check_with_options_and_lists!(String, bool, i32, i64, isize, u32, u64, usize, f32, f64);
    }

    #[test]
    fn what_is_not_known_is_generated() {
        let schema = ConstSchemaOf::<RecursiveType>::SCHEMA;
        assert!(!are_known(&[Parameter { name: "\"x\"", description: "", schema }]));
        assert_eq!(
            object(&[]),
            r#"{"type":"object","properties":{},"additionalProperties":false}"#
        );
    }
}
