//! Parses templates: those for which each URI says by itself what its variables stand for.
//!
//! [`UriTemplate::matches`] takes for an expression all characters that the expression may have, and gives back those of
//! the text that follows. A template for which that could be wrong is refused.

use std::collections::BTreeSet;
use std::fmt;

use crate::{Expression, Operator, Part, UriTemplate, Variable};

/// Why a text is no template, or none that can be matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateError(String);

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

// Written out, as plugins build no crate for it.
impl std::error::Error for TemplateError {}

impl Expression {
    /// Whether a URI may have a character within the expression.
    fn contains(&self, c: char) -> bool {
        let has_several = self.variables.len() > 1 || self.variables[0].is_list;
        let is_of_value = c == '%' || is_unreserved(c);
        match self.operator {
            Operator::Simple => is_of_value || c == ',' && has_several,
            Operator::Path => is_of_value || c == '/' && has_several,
            Operator::Reserved | Operator::Fragment => is_of_value || is_reserved(c),
            Operator::Query | Operator::QueryContinuation => c != '#',
        }
    }

    /// Whether nothing of it need be in a URI.
    fn may_be_absent(&self) -> bool {
        self.variables.iter().all(|variable| !variable.is_required)
    }
}

impl UriTemplate {
    /// Parses a template. A URI has a value for each of its variables, unless that is a list.
    ///
    /// # Errors
    ///
    /// If the text is no template, or a URI could be read in two ways.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        Self::parse_with(text, |_| false)
    }

    /// Parses a template in which some variables may be missing.
    ///
    /// # Errors
    ///
    /// As for [`parse`](Self::parse).
    pub fn parse_with(
        text: &str,
        is_optional: impl Fn(&str) -> bool,
    ) -> Result<Self, TemplateError> {
        let mut parts = parts_of(text).map_err(TemplateError)?;
        for part in &mut parts {
            let Part::Expression(expression) = part else { continue };
            for variable in expression.variables.to_mut() {
                variable.is_required = !variable.is_list && !is_optional(&variable.name);
            }
        }
        check(&mut parts).map_err(TemplateError)?;
        Ok(Self { text: text.to_string().into(), parts: parts.into() })
    }
}

/// Checks that no URI can be read in two ways, and notes where each expression ends.
fn check(parts: &mut [Part]) -> Result<(), String> {
    for i in 0..parts.len() {
        let (before, after) = parts.split_at_mut(i + 1);
        let Some(Part::Expression(expression)) = before.last_mut() else { continue };
        check_variables(expression)?;
        expression.tail = tail(expression, after).into();
        check_end(expression, after)?;
    }
    Ok(())
}

pub(crate) fn variables(parts: &[Part]) -> impl Iterator<Item = &Variable> {
    parts.iter().flat_map(|part| match part {
        Part::Literal(_) => &[],
        Part::Expression(expression) => &expression.variables[..],
    })
}

fn parts_of(text: &str) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (literal, expression) = rest.split_at(rest.find('{').unwrap_or(rest.len()));
        if !literal.is_empty() {
            check_literal(literal)?;
            parts.push(Part::Literal(literal.to_string().into()));
        }
        rest = match expression.split_once('}') {
            Some((expression, rest)) => {
                parts.push(Part::Expression(parse_expression(&expression[1..])?));
                rest
            }
            None if expression.is_empty() => "",
            None => return Err(format!("`{expression}` lacks its `}}`")),
        };
    }
    check_scheme(&parts)?;
    check_query(&parts)?;
    let mut seen = BTreeSet::new();
    if let Some(twice) = variables(&parts).find(|variable| !seen.insert(&variable.name)) {
        return Err(format!("`{}` is there twice, and its values could differ", twice.name));
    }
    Ok(parts)
}

fn parse_expression(text: &str) -> Result<Expression, String> {
    let written = format!("{{{text}}}");
    let first = text.chars().next().ok_or("name a variable in `{}`")?;
    let (operator, list) = match first {
        '+' => (Operator::Reserved, &text[1..]),
        '#' => (Operator::Fragment, &text[1..]),
        '/' => (Operator::Path, &text[1..]),
        '?' => (Operator::Query, &text[1..]),
        '&' => (Operator::QueryContinuation, &text[1..]),
        '.' => {
            return Err(format!(
                "`{written}` cannot be matched, as its values may contain dots too: write \
                 `.{{{}}}`",
                &text[1..]
            ));
        }
        ';' => {
            let name = &text[1..];
            return Err(format!("`{written}` is not supported: write `;{name}={{{name}}}`"));
        }
        '=' | ',' | '!' | '@' | '|' => {
            return Err(format!("RFC 6570 reserves `{first}`, and gives `{written}` no meaning"));
        }
        _ => (Operator::Simple, text),
    };
    let variables = list.split(',').map(|variable| {
        let (name, is_list) = match variable.strip_suffix('*') {
            Some(name) => (name, true),
            None => (variable, false),
        };
        if let Some((name, _)) = name.split_once(':') {
            return Err(format!(
                "`{written}` has only the beginning of a value, which cannot be matched: write \
                 `{name}` without its length"
            ));
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
        match !name.is_empty() && name.chars().all(is_name) {
            true => {
                let name = name.to_string().into();
                Ok(Variable { name, is_list, is_required: !is_list })
            }
            false => Err(format!(
                "`{name}` in `{written}` is no name of a variable: letters, digits and `_` are"
            )),
        }
    });
    let variables = variables.collect::<Result<Vec<_>, _>>()?.into();
    Ok(Expression { text: written.into(), operator, variables, tail: "".into() })
}

/// Checks that a text may stand in a URI as it is.
fn check_literal(literal: &str) -> Result<(), String> {
    if literal.contains('}') {
        return Err("a `}` has no `{` before it".to_string());
    }
    for (at, c) in literal.char_indices() {
        let is_encoded = || {
            let digits = literal.get(at + 1..at + 3).unwrap_or_default();
            digits.len() == 2 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
        };
        if is_unreserved(c) || is_reserved(c) || c == '%' && is_encoded() {
            continue;
        }
        let encoded: String = c.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect();
        return Err(format!("`{}` cannot stand in a URI: write `{encoded}`", c.escape_debug()));
    }
    Ok(())
}

fn check_scheme(parts: &[Part]) -> Result<(), String> {
    let begins = match parts.first() {
        Some(Part::Literal(text)) => text,
        _ => "",
    };
    let scheme = begins.split_once(':').map_or("", |(scheme, _)| scheme);
    let is_of_scheme = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    match scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(is_of_scheme)
    {
        true => Ok(()),
        false => Err("a URI begins with its scheme, such as `notes:`".to_string()),
    }
}

/// Checks that a query begins once.
fn check_query(parts: &[Part]) -> Result<(), String> {
    let mut has_begun = false;
    for part in parts {
        match part {
            Part::Literal(text) => has_begun |= text.contains('?'),
            Part::Expression(Expression { text, operator, .. }) => match operator {
                Operator::Query if has_begun => {
                    let other = text.replacen('?', "&", 1);
                    return Err(format!("the query has begun before `{text}`: write `{other}`"));
                }
                Operator::QueryContinuation if !has_begun => {
                    let other = text.replacen('&', "?", 1);
                    return Err(format!("no query has begun before `{text}`: write `{other}`"));
                }
                operator => has_begun |= operator.is_named(),
            },
        }
    }
    Ok(())
}

/// Checks that the values of one expression can be told apart.
fn check_variables(expression: &Expression) -> Result<(), String> {
    let Expression { text, operator, variables, .. } = expression;
    if operator.is_named() {
        return Ok(());
    }
    let has_list = variables.iter().any(|variable| variable.is_list);
    let has_several = variables.len() > 1;
    if matches!(operator, Operator::Reserved | Operator::Fragment) && (has_several || has_list) {
        return Err(format!(
            "`{text}` cannot be matched, as a value may contain the `,` between two: name one \
             variable, without `*`"
        ));
    }
    if has_several && has_list {
        return Err(format!(
            "`{text}` cannot be matched, as it does not say where the list ends: a list stands \
             alone"
        ));
    }
    let is_gap = |pair: &[Variable]| !pair[0].is_required && pair[1].is_required;
    match variables.windows(2).find(|pair| is_gap(pair)) {
        Some([missing, there]) => Err(format!(
            "`{text}` cannot be matched: without `{}`, the value of `{}` stands in its place",
            missing.name, there.name
        )),
        _ => Ok(()),
    }
}

fn tail(expression: &Expression, after: &[Part]) -> String {
    match after.first() {
        Some(Part::Literal(text)) => text.chars().take_while(|c| expression.contains(*c)).collect(),
        _ => String::new(),
    }
}

/// Checks that it can be told where an expression ends: what follows it begins with something that
/// it cannot contain.
fn check_end(expression: &Expression, after: &[Part]) -> Result<(), String> {
    let text = &expression.text;
    if let (true, Some(prefix)) = (expression.may_be_absent(), expression.operator.prefix_char())
        && !expression.contains(prefix)
        && let Some(next) = after.first()
        && begins_with(next, prefix)
    {
        return Err(format!(
            "`{text}` may be missing, and `{}` after it begins with `{prefix}` as well: the two \
             cannot be told apart",
            next.text()
        ));
    }
    let mut following = after.iter();
    if let Some(Part::Literal(text)) = after.first() {
        if *text != expression.tail {
            return Ok(());
        }
        following.next();
    }
    for next in following {
        let is_inside = match next {
            Part::Literal(text) => text.starts_with(|c| expression.contains(c)),
            Part::Expression(next) => {
                next.operator.prefix_char().is_none_or(|prefix| expression.contains(prefix))
            }
        };
        if is_inside {
            return Err(told_apart(expression, next));
        }
        match next {
            Part::Expression(next) if next.may_be_absent() => {}
            _ => return Ok(()),
        }
    }
    Ok(())
}

fn begins_with(part: &Part, c: char) -> bool {
    match part {
        Part::Literal(text) => text.starts_with(c),
        Part::Expression(expression) => expression.operator.prefix_char() == Some(c),
    }
}

/// Why two parts that follow each other cannot be told apart.
fn told_apart(expression: &Expression, next: &Part) -> String {
    let (text, other) = (&expression.text, next.text());
    let border = [':', '/', '#'].into_iter().find(|c| !expression.contains(*c));
    let hint = match (next, border) {
        (Part::Expression(next), _)
            if expression.operator.is_named() && next.operator.is_named() =>
        {
            "name their variables in one expression".to_string()
        }
        (_, Some(border)) => {
            format!("put text between them that `{text}` cannot contain, such as `{border}`")
        }
        (_, None) => {
            format!("nothing but text may follow `{text}`, which may contain every character")
        }
    };
    format!("it cannot be told where `{text}` ends and `{other}` begins: {hint}")
}

impl Part {
    fn text(&self) -> &str {
        match self {
            Self::Literal(text) => text,
            Self::Expression(expression) => &expression.text,
        }
    }
}

fn is_unreserved(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '~')
}

fn is_reserved(c: char) -> bool {
    ":/?#[]@!$&'()*+,;=".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses a template in which the variables of these names may be missing.
    fn parsed(text: &str, optional: &[&str]) -> Result<UriTemplate, String> {
        let parsed = UriTemplate::parse_with(text, |name| optional.contains(&name));
        parsed.map_err(|error| error.to_string())
    }

    #[test]
    fn templates_that_say_where_each_value_ends_are_taken() {
        let check = |text: &str, optional: &[&str]| {
            parsed(text, optional).unwrap_or_else(|error| panic!("{text}: {error}"));
        };
        check("notes:all", &[]);
        check("notes://a%20b/'quoted'?x=[1]#y", &[]);
        check("notes://{name}", &[]);
        check("notes://{name}", &["name"]);
        check("notes://{name}.txt", &[]);
        check("notes://{a}/{b}:{c}", &["b"]);
        check("notes://{a,b}", &["b"]);
        check("notes://{tags*}", &[]);
        check("test://template/{id}/data", &[]);
        check("file://{+path}", &[]);
        check("file://{+path}.md", &[]);
        check("file:{/a}{/b}", &["b"]);
        check("file:{/a,b}/c", &[]);
        check("file:{/path*}/data{?rev}{#line}", &["rev", "line"]);
        check("x:{a}{?b,c*}", &["b"]);
        check("x:?fixed=1{&b}{#c}", &["b", "c"]);
        check("x:{user.name}", &[]);
        check("x:{a}-{/b}", &["b"]);
    }

    #[test]
    fn templates_that_are_none_or_could_be_read_in_two_ways_are_refused() {
        let check = |text: &str, optional: &[&str], expected: &str| match parsed(text, optional) {
            Err(error) => assert!(error.contains(expected), "{text}: {error}"),
            Ok(template) => panic!("{text}: {template:?}"),
        };
        check("", &[], "begins with its scheme");
        check("notes", &[], "begins with its scheme");
        check("{scheme}:x", &[], "begins with its scheme");
        check("1a://x", &[], "begins with its scheme");
        check("x:{a", &[], "`{a` lacks its `}`");
        check("x:a}", &[], "no `{` before it");
        check("x:{}", &[], "name a variable");
        check("x:{a b}", &[], "no name of a variable");
        check("x:{a,}", &[], "no name of a variable");
        check("x:a b", &[], "` ` cannot stand in a URI: write `%20`");
        check("x:ü", &[], "write `%C3%BC`");
        check("x:%2", &[], "write `%25`");
        check("x:{a}{?a}", &[], "`a` is there twice");
        check("x:{a:3}", &[], "the beginning of a value");
        check("x:{.a}", &[], "write `.{a}`");
        check("x:{;a}", &[], "write `;a={a}`");
        check("x:{!a}", &[], "RFC 6570 reserves `!`");
        check("x:?a{?b}", &[], "write `{&b}`");
        check("x:{a}{&b}", &[], "write `{?b}`");
        check("x:{+a,b}", &[], "the `,` between two");
        check("x:{#a*}", &[], "the `,` between two");
        check("x:{/a*,b}", &[], "a list stands alone");
        check("x:{/a,b}", &["a"], "without `a`, the value of `b`");
        check("x:{a}{b}", &[], "where `{a}` ends and `{b}` begins");
        check("x:{a}-{b}", &[], "where `{a}` ends and `{b}` begins");
        check("x:{a}{/b}c", &["b"], "where `{a}` ends and `c` begins");
        check("x:{a}{+b}", &[], "where `{a}` ends and `{+b}` begins");
        check("x:{+a}{?b}", &[], "nothing but text may follow `{+a}`");
        check("x:{/a*}{/b}", &[], "where `{/a*}` ends and `{/b}` begins");
        check("x:{/a*}/c{/b}", &[], "where `{/a*}` ends and `{/b}` begins");
        check("x:{/a}{/b}", &["a"], "`{/a}` may be missing");
        check("x:{/a}/b", &["a"], "`{/a}` may be missing");
        check("x:{?a}{&b}", &[], "in one expression");
        check("x:{#a}{b}", &[], "where `{#a}` ends and `{b}` begins");
        check("x:{?a}{#b}c", &["a", "b"], "cannot contain, such as `#`");
    }

    #[test]
    fn an_expression_gives_back_what_it_could_contain_of_the_text_after_it() {
        let check = |text: &str, expected: &[&str]| {
            let parts = parsed(text, &[]).unwrap().parts;
            let tails = parts.iter().filter_map(|part| match part {
                Part::Expression(expression) => Some(&*expression.tail),
                Part::Literal(_) => None,
            });
            assert_eq!(tails.collect::<Vec<_>>(), expected, "{text}");
        };
        check("x:{a}", &[""]);
        check("x:{a}.txt", &[".txt"]);
        check("x:{a}.d/{b}", &[".d", ""]);
        check("x:{/a}/data", &[""]);
        check("x:{/a*}/data:1", &["/data"]);
        check("x:{+a}/data?q=1", &["/data?q=1"]);
    }
}
