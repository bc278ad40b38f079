//! The operators `<`, `<=`, `>` and `>=` of scripts. The engine's own say `false` of values of different types, so that a
//! guard which compares a member that is not there would let everything pass; these fail.
//!
//! The engine looks each of them up, where it knows its own by their types: a comparison takes 0.1 µs more.

use rhai::{Dynamic, EvalAltResult, FLOAT, INT, ImmutableString};
use std::cmp::Ordering;

use super::error::mistake;

/// Whether the operator is true of values that are so ordered. A number that is none is ordered with no other.
type OrderingTest = fn(Option<Ordering>) -> bool;

const OPERATORS: [(&str, OrderingTest); 4] = [
    ("<", |order| order == Some(Ordering::Less)),
    ("<=", |order| matches!(order, Some(Ordering::Less | Ordering::Equal))),
    (">", |order| order == Some(Ordering::Greater)),
    (">=", |order| matches!(order, Some(Ordering::Greater | Ordering::Equal))),
];

/// How strongly they bind: as the engine's own do.
const PRECEDENCE: u8 = 130;

/// Has an engine compile the operators to these, which is what it runs.
///
/// The engine decides its own operators itself, so they have to go before others can have their names.
pub(super) fn compile(engine: &mut rhai::Engine) {
    for (name, _) in OPERATORS {
        engine.disable_symbol(name);
        let known = engine.register_custom_operator(name, PRECEDENCE).map(drop);
        known.expect("a disabled symbol can be an operator");
    }
}

/// Puts the operators into an engine. Times and spans bring their own.
pub(super) fn add(engine: &mut rhai::Engine) {
    for (name, holds) in OPERATORS {
        // What is compared most is found by its type, and all else by `compare`.
        engine
            .register_fn(name, move |a: INT, b: INT| holds(Some(a.cmp(&b))))
            .register_fn(name, move |a: FLOAT, b: FLOAT| holds(a.partial_cmp(&b)))
            .register_fn(name, move |a: ImmutableString, b: ImmutableString| holds(Some(a.cmp(&b))))
            .register_fn(name, move |a: Dynamic, b: Dynamic| compare(&a, &b, name, holds));
    }
}

fn compare(
    a: &Dynamic,
    b: &Dynamic,
    name: &str,
    holds: OrderingTest,
) -> Result<bool, Box<EvalAltResult>> {
    if let (Some(a), Some(b)) = (number(a), number(b)) {
        return Ok(holds(a.partial_cmp(&b)));
    }
    if let (Some(a), Some(b)) = (text(a), text(b)) {
        return Ok(holds(Some(a.cmp(&b))));
    }
    let is_missing = a.is_unit() || b.is_unit();
    let why = if is_missing { ": `()` is a value that is not there" } else { "" };
    Err(mistake(format!("`{name}` cannot compare {} with {}{why}", what(a), what(b))))
}

fn number(value: &Dynamic) -> Option<FLOAT> {
    value.as_float().or_else(|_| value.as_int().map(|number| number as FLOAT)).ok()
}

fn text(value: &Dynamic) -> Option<ImmutableString> {
    let character = || value.as_char().map(|character| character.to_string().into()).ok();
    value.read_lock::<ImmutableString>().map(|text| text.clone()).or_else(character)
}

/// A value of this type, in words of scripts.
fn what(value: &Dynamic) -> &str {
    match value.type_name() {
        "()" => "`()`",
        "i64" | "f64" => "a number",
        "string" | "char" => "a text",
        "bool" => "a truth value",
        "array" => "an array",
        "map" => "a map",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str) -> Result<Dynamic, Box<EvalAltResult>> {
        let mut engine = rhai::Engine::new();
        compile(&mut engine);
        add(&mut engine);
        engine.eval(script)
    }

    #[test]
    fn values_of_one_type_are_compared_as_the_engine_would() {
        let engine = rhai::Engine::new();
        let values = ["1", "2", "-1", "1.5", "0.0 / 0.0", "\"a\"", "\"b\"", "'a'", "'b'", "\"\""];
        for (name, _) in OPERATORS {
            for a in values {
                for b in values {
                    let is_text = |value: &str| value.contains(['"', '\'']);
                    let script = format!("{a} {name} {b}");
                    if is_text(a) == is_text(b) {
                        let expected = engine.eval::<bool>(&script).expect(&script);
                        assert_eq!(run(&script).unwrap().as_bool(), Ok(expected), "{script}");
                    }
                }
            }
        }
    }

    #[test]
    fn operators_bind_as_the_engines_own_do() {
        let engine = rhai::Engine::new();
        let check = |script: &str| {
            let expected = engine.eval::<bool>(script).expect(script);
            assert_eq!(run(script).expect(script).as_bool(), Ok(expected), "{script}");
        };
        check("1 + 1 < 2 * 2");
        check("1 < 2 == true");
        check("1 < -1 || 2 > 1 && 3 >= 4");
        check("!(1 < 2) != (2 <= 1)");
        check("1 << 2 < 3 + 4");
        check("let n = 0; while n < 3 { n += 1 } n >= 3 && n in 0..=3");
    }

    #[test]
    fn values_of_different_types_are_not_compared() {
        let check = |script: &str, expected: &str| {
            let error = run(script).expect_err(script).to_string();
            assert!(error.contains(expected), "{script}: {error}");
        };
        check("#{}.size > 5", "`>` cannot compare `()` with a number: `()` is a value that is not");
        check("\"7\" <= 5", "`<=` cannot compare a text with a number");
        check("5 < true", "`<` cannot compare a number with a truth value");
        check("[1] >= #{}", "`>=` cannot compare an array with a map");
        check("() < ()", "cannot compare");
    }
}
