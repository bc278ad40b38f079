//! URI templates ([RFC 6570](https://www.rfc-editor.org/rfc/rfc6570)): parsed, matched against URIs, and expanded.
//!
//! RFC 6570 says how values become a URI. Here a URI becomes values again, so only templates are taken for which there is
//! one way to read a URI. Hosts, the SDK and its macros use the same code.
//!
//! ```
//! use tenon_uri_template::UriTemplate;
//!
//! let template = UriTemplate::parse("notes://{name}")?;
//! let values = template.matches("notes://a%20b").expect("it is one");
//! assert_eq!(values, [("name".to_string(), "a b".to_string())]);
//! assert_eq!(template.matches("notes://a/b"), None);
//! # Ok::<_, tenon_uri_template::TemplateError>(())
//! ```

mod parse;

use std::borrow::Cow;

pub use parse::TemplateError;

/// A URI, or a template of some.
#[derive(Debug, Clone, PartialEq)]
pub struct UriTemplate {
    text: Cow<'static, str>,
    parts: Cow<'static, [Part]>,
}

/// A part of a template.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// Text that a URI has as it is.
    Literal(Cow<'static, str>),
    /// What values of variables take the place of.
    Expression(Expression),
}

/// `{…}`
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    /// As it is written.
    pub text: Cow<'static, str>,
    /// How the values of the variables are written.
    pub operator: Operator,
    /// The variables, in their order.
    pub variables: Cow<'static, [Variable]>,
    /// The text that follows, as far as the expression could contain it.
    pub tail: Cow<'static, str>,
}

/// A variable.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    /// What it is called.
    pub name: Cow<'static, str>,
    /// It may have several values, or none.
    pub is_list: bool,
    /// Without it, a URI does not match.
    pub is_required: bool,
}

/// How the values of an expression are written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Operator {
    /// `{name}`
    Simple,
    /// `{+path}`
    Reserved,
    /// `{#line}`
    Fragment,
    /// `{/path*}`
    Path,
    /// `{?page,tag*}`
    Query,
    /// `{&page}`
    QueryContinuation,
}

impl Operator {
    /// The character with which the expression begins in a URI.
    fn prefix(self) -> Option<u8> {
        match self {
            Self::Simple | Self::Reserved => None,
            Self::Fragment => Some(b'#'),
            Self::Path => Some(b'/'),
            Self::Query => Some(b'?'),
            Self::QueryContinuation => Some(b'&'),
        }
    }

    fn prefix_char(self) -> Option<char> {
        self.prefix().map(char::from)
    }

    /// The character between two values. Where a value may contain every character, there is one.
    fn separator(self) -> Option<char> {
        match self {
            Self::Simple => Some(','),
            Self::Path => Some('/'),
            Self::Query | Self::QueryContinuation => Some('&'),
            Self::Reserved | Self::Fragment => None,
        }
    }

    /// Takes the next value off the values of an expression.
    fn next<'a>(self, values: &mut Option<&'a str>) -> Option<&'a str> {
        let all = (*values)?;
        let end = all.bytes().position(|byte| self.separator() == Some(byte.into()));
        let (value, rest) = match end {
            Some(end) => (&all[..end], Some(&all[end + 1..])),
            None => (all, None),
        };
        *values = rest;
        Some(value)
    }

    /// Whether the name of a variable stands before its value.
    fn is_named(self) -> bool {
        matches!(self, Self::Query | Self::QueryContinuation)
    }

    /// Whether a value may have a character as it is. All others are encoded in it.
    fn allows(self, byte: u8) -> bool {
        let is_reserved = || b":/?#[]@!$&'()*+,;=".contains(&byte);
        byte.is_ascii_alphanumeric()
            || b"-._~".contains(&byte)
            || matches!(self, Self::Reserved | Self::Fragment) && is_reserved()
    }
}

impl UriTemplate {
    /// A template that was parsed when its program was compiled.
    #[doc(hidden)]
    pub const fn from_parsed(text: &'static str, parts: &'static [Part]) -> Self {
        Self { text: Cow::Borrowed(text), parts: Cow::Borrowed(parts) }
    }

    /// The template, as it is written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What it consists of.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Whether it has no variables.
    pub fn is_fixed(&self) -> bool {
        matches!(*self.parts, [Part::Literal(_)])
    }

    /// The variables, in their order.
    pub fn variables(&self) -> impl Iterator<Item = &Variable> {
        parse::variables(&self.parts)
    }

    /// What the variables stand for in a URI; `None` where it is not one of this template.
    ///
    /// The caller chooses the URI. It is cut first and decoded then, once: what `%2F` stands for separates
    /// nothing. A value is UTF-8 without NUL (RFC 3986, 7.3).
    pub fn matches(&self, uri: &str) -> Option<Values> {
        let mut values_of = Values::new();
        let mut rest = uri;
        for part in &*self.parts {
            rest = match part {
                Part::Literal(text) => rest.strip_prefix(&**text)?,
                Part::Expression(Expression { operator, variables, tail, .. }) => {
                    let (values, rest) = cut(*operator, variables, tail, rest)?;
                    match operator.is_named() {
                        true => read_named(*operator, variables, values, &mut values_of)?,
                        false => read_values(*operator, variables, values, &mut values_of)?,
                    }
                    rest
                }
            };
        }
        rest.is_empty().then_some(values_of)
    }

    /// The URI for these values; `None` where one of them is of no variable.
    pub fn expand(&self, values: &[(String, String)]) -> Option<String> {
        let mut uri = String::new();
        let mut used = 0;
        for part in &*self.parts {
            let (operator, variables) = match part {
                Part::Literal(text) => {
                    uri.push_str(text);
                    continue;
                }
                Part::Expression(expression) => (expression.operator, &expression.variables),
            };
            let mut before = operator.prefix().map(char::from);
            for Variable { name, .. } in variables.iter() {
                for (_, value) in values.iter().filter(|(known, _)| known == name) {
                    uri.extend(before);
                    before = operator.separator();
                    if operator.is_named() {
                        uri.push_str(name);
                        uri.push('=');
                    }
                    encode(operator, value, &mut uri);
                    used += 1;
                }
            }
        }
        (used == values.len()).then_some(uri)
    }
}

/// What variables stand for, in the order of the URI. A list is there once for each of its values.
pub type Values = Vec<(String, String)>;

fn has(values: &Values, name: &str) -> bool {
    values.iter().any(|(known, _)| known == name)
}

/// Cuts what an expression stands for off the beginning, without the character that it begins with:
/// `None` in its place where it is not there.
fn cut<'a>(
    operator: Operator,
    variables: &[Variable],
    tail: &str,
    rest: &'a str,
) -> Option<(Option<&'a str>, &'a str)> {
    let has_several = variables.len() > 1 || variables.iter().any(|variable| variable.is_list);
    let may_contain = |byte: u8| match operator {
        Operator::Query | Operator::QueryContinuation => byte != b'#',
        _ => {
            operator.allows(byte)
                || byte == b'%'
                || has_several && operator.separator() == Some(byte.into())
        }
    };
    let mut bytes = rest.bytes();
    let begin = match operator.prefix() {
        Some(prefix) if bytes.next() == Some(prefix) => 1,
        Some(_) => return Some((None, rest)),
        None => 0,
    };
    let end = bytes.position(|byte| !may_contain(byte)).map_or(rest.len(), |i| begin + i);
    let taken = rest[..end].strip_suffix(tail)?;
    let rest = &rest[taken.len()..];
    Some((taken.get(begin..).filter(|_| !taken.is_empty()), rest))
}

/// Reads values in the order of their variables.
fn read_values(
    operator: Operator,
    variables: &[Variable],
    mut values: Option<&str>,
    arguments: &mut Values,
) -> Option<()> {
    for variable in variables {
        loop {
            match operator.next(&mut values) {
                Some("") => return None,
                Some(value) => {
                    arguments.push((variable.name.to_string(), decode(operator, value)?));
                }
                None if variable.is_required => return None,
                None => break,
            }
            if !variable.is_list {
                break;
            }
        }
    }
    values.is_none().then_some(())
}

/// Reads values that have their names, in any order.
fn read_named(
    operator: Operator,
    variables: &[Variable],
    mut values: Option<&str>,
    arguments: &mut Values,
) -> Option<()> {
    while let Some(pair) = operator.next(&mut values) {
        let (name, value) = pair.split_once('=')?;
        let variable = variables.iter().find(|variable| variable.name == name)?;
        if !variable.is_list && has(arguments, name) {
            return None;
        }
        arguments.push((name.to_string(), decode(operator, value)?));
    }
    let is_missing = |variable: &&Variable| variable.is_required && !has(arguments, &variable.name);
    variables.iter().find(is_missing).is_none().then_some(())
}

fn decode(operator: Operator, value: &str) -> Option<String> {
    let mut decoded = Vec::with_capacity(value.len());
    let mut bytes = value.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => match hex(bytes.next()?)? << 4 | hex(bytes.next()?)? {
                0 => return None,
                byte => byte,
            },
            byte if operator.allows(byte) => byte,
            _ => return None,
        });
    }
    String::from_utf8(decoded).ok()
}

fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

/// Encodes a value. A `%` is always encoded: RFC 6570 leaves it in `{+…}` and `{#…}` as it is before two
/// digits, from where no value could be read again.
fn encode(operator: Operator, value: &str, uri: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in value.bytes() {
        if operator.allows(byte) {
            uri.push(byte.into());
        } else {
            let digits = [byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)].into());
            uri.push('%');
            uri.extend::<[char; 2]>(digits);
        }
    }
}

#[cfg(test)]
mod tests;
