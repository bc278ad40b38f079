//! Weaves changes into the text of a file.
//!
//! An expression that can be changed becomes `(if crate::woven::is(N) { changed } else { itself })`. Each
//! change stands between comments with its number, so that what rustc says of a place is said of it.

use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::{Mutant, Position, Span};

/// The module that says which change is meant. Changes are numbered from 0.
pub(super) fn module(mutant: &str, reached: &str, number: usize) -> String {
    format!(
        r#"
/// Which change of the code the tests run with.
pub(crate) mod woven {{
    use std::collections::HashSet;
    use std::io::Write;
    use std::sync::{{LazyLock, Mutex}};

    static ONE: LazyLock<u32> = LazyLock::new(|| {{
        std::env::var("{mutant}").ok().and_then(|one| one.parse().ok()).unwrap_or(u32::MAX)
    }});

    type Seen = Mutex<(std::fs::File, Vec<HashSet<std::thread::ThreadId>>)>;

    static REACHED: LazyLock<Option<Seen>> = LazyLock::new(|| {{
        let path = std::env::var_os("{reached}")?;
        let file = std::fs::File::options().create(true).append(true).open(path).ok()?;
        Some(Mutex::new((file, vec![HashSet::new(); {number}])))
    }});

    #[inline(never)]
    pub(crate) fn is(number: u32) -> bool {{
        if let Some(reached) = &*REACHED {{
            let mut reached = reached.lock().unwrap_or_else(|error| error.into_inner());
            let thread = std::thread::current();
            if reached.1[number as usize].insert(thread.id()) {{
                let line = format!("{{number}} {{}}\n", thread.name().unwrap_or("?"));
                reached.0.write_all(line.as_bytes()).unwrap();
            }}
        }}
        *ONE == number
    }}
}}
"#
    )
}

/// A part of the text that becomes another one.
#[derive(Debug, Default)]
struct Site {
    bytes: Range<usize>,
    /// Changes, and what the part is with each.
    changes: Vec<(usize, String)>,
    kind: MutationSite,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum MutationSite {
    /// An expression, or its change.
    #[default]
    Expression,
    /// The beginning of a function, which returns the change.
    Return,
    /// The end of a pattern without a guard: the change is that it does not match.
    Pattern,
}

/// The text of a file with all these changes woven in. What cannot be is not left.
pub(super) fn woven(
    file: &str,
    source: &str,
    all: &[Mutant],
    left: &mut BTreeSet<usize>,
) -> Result<String> {
    let syntax = syn::parse_file(source).with_context(|| file.to_string())?;
    let mut finder =
        Finder { source, lines: lines(source), wanted: BTreeMap::new(), sites: BTreeMap::new() };
    for number in left.iter().copied().filter(|number| all[*number].file == file) {
        finder.wanted.entry(all[number].span).or_default().push((number, &all[number]));
    }
    finder.visit_file(&syntax);
    let sites: Vec<Site> = finder.sites.into_values().collect();
    let known: BTreeSet<usize> =
        sites.iter().flat_map(|site| site.changes.iter().map(|(number, _)| *number)).collect();
    left.retain(|number| all[*number].file != file || known.contains(number));
    let mut refs: Vec<&Site> = sites.iter().filter(|site| !site.changes.is_empty()).collect();
    // What is around another comes before it.
    refs.sort_by_key(|site| {
        (site.bytes.start, site.kind != MutationSite::Return, std::cmp::Reverse(site.bytes.end))
    });
    Ok(render(source, 0..source.len(), &mut refs.into_iter().peekable()))
}

type Sites<'a> = std::iter::Peekable<std::vec::IntoIter<&'a Site>>;

fn render(source: &str, bytes: Range<usize>, sites: &mut Sites<'_>) -> String {
    let mut text = String::new();
    let mut at = bytes.start;
    while let Some(site) =
        sites.next_if(|site| site.bytes.end <= bytes.end && site.bytes.start < bytes.end)
    {
        text.push_str(&source[at..site.bytes.start]);
        at = site.bytes.end;
        match site.kind {
            MutationSite::Return => {
                for (number, change) in &site.changes {
                    text.push_str(&format!(
                        "/*{{{number}*/if crate::woven::is({number}) {{ return {change}; }}/*{number}}}*/\n"
                    ));
                }
            }
            MutationSite::Pattern => {
                for (number, _) in &site.changes {
                    text.push_str(&format!(
                        " /*<{number}*/if !crate::woven::is({number})/*{number}>*/"
                    ));
                }
            }
            MutationSite::Expression => {
                let inner = render(source, site.bytes.clone(), sites);
                let first = site.changes[0].0;
                text.push_str(&format!("/*[{first}*/("));
                for (number, change) in &site.changes {
                    text.push_str(&format!(
                        "/*<{number}*/if crate::woven::is({number}) {{ {change} }}/*{number}>*/ else "
                    ));
                }
                text.push_str(&format!("{{ {inner} }})/*{first}]*/"));
            }
        }
    }
    text.push_str(&source[at..bytes.end]);
    text
}

/// A part of a woven text.
struct Part {
    bytes: Range<usize>,
    kind: PartKind,
    /// The change, or the first of those of an expression.
    number: usize,
}

#[derive(PartialEq)]
enum PartKind {
    Change,
    Return,
    Expression,
}

/// The parts of a woven text that stand between comments.
fn parts(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    for (at, _) in text.match_indices("/*") {
        let word = &text[at + 2..text.len().min(at + 12).max(at + 2)];
        let Some((word, _)) = word.split_once("*/") else { continue };
        if let Ok(number) = word[1.min(word.len())..].parse() {
            let kind = match word.as_bytes()[0] {
                b'<' => PartKind::Change,
                b'{' => PartKind::Return,
                b'[' => PartKind::Expression,
                _ => continue,
            };
            open.push(parts.len());
            parts.push(Part { bytes: at..at, kind, number });
        } else if word.ends_with(['>', '}', ']'])
            && word[..word.len() - 1].parse::<usize>().is_ok()
            && let Some(part) = open.pop()
        {
            parts[part].bytes.end = at + word.len() + 4;
        }
    }
    parts
}

/// The changes that a place in a woven text is about: the innermost one that is around it, or else all of
/// the innermost expression that is.
pub(super) fn around(text: &str, bytes: &Range<usize>) -> Vec<usize> {
    let parts = parts(text);
    let is_around = |part: &&Part| part.bytes.start <= bytes.start && bytes.end <= part.bytes.end;
    let changes = parts.iter().filter(|part| part.kind != PartKind::Expression).filter(is_around);
    if let Some(part) = changes.min_by_key(|part| part.bytes.len()) {
        return vec![part.number];
    }
    let expressions = parts.iter().filter(|part| part.kind == PartKind::Expression);
    let Some(expression) = expressions.filter(is_around).min_by_key(|part| part.bytes.len()) else {
        return Vec::new();
    };
    // Those that are in no other expression within this one.
    let mut numbers = Vec::new();
    let mut end = expression.bytes.start;
    for part in parts.iter().filter(|part| {
        expression.bytes.start < part.bytes.start && part.bytes.end <= expression.bytes.end
    }) {
        if part.bytes.start < end {
            continue;
        }
        match part.kind {
            PartKind::Change => numbers.push(part.number),
            _ => end = part.bytes.end,
        }
    }
    numbers
}

/// The changes of what the function returns that a place is in.
pub(super) fn returned(text: &str, bytes: &Range<usize>) -> Vec<usize> {
    let parts = parts(text);
    let returns = parts.iter().filter(|part| part.kind == PartKind::Return);
    let mut numbers: Vec<usize> = Vec::new();
    let mut end = 0;
    for part in returns.take_while(|part| part.bytes.start < bytes.end) {
        // They stand below each other.
        if text[end..part.bytes.start].trim() != "" {
            numbers.clear();
        }
        numbers.push(part.number);
        end = part.bytes.end;
    }
    numbers
}

/// Where each line begins.
fn lines(source: &str) -> Vec<usize> {
    let ends = source.match_indices('\n').map(|(end, _)| end + 1);
    std::iter::once(0).chain(ends).collect()
}

struct Finder<'a> {
    source: &'a str,
    lines: Vec<usize>,
    wanted: BTreeMap<Span, Vec<(usize, &'a Mutant)>>,
    sites: BTreeMap<(usize, usize), Site>,
}

impl<'a> Finder<'a> {
    fn place(&self, at: proc_macro2::LineColumn) -> usize {
        let line = self.lines[at.line - 1];
        let characters = self.source[line..].char_indices();
        line + characters.map(|(place, _)| place).nth(at.column).unwrap_or(self.source.len() - line)
    }

    fn bytes(&self, part: &impl Spanned) -> Range<usize> {
        let span = part.span();
        self.place(span.start())..self.place(span.end())
    }

    fn text(&self, part: &impl Spanned) -> &'a str {
        &self.source[self.bytes(part)]
    }

    /// The changes at a place.
    fn wanted(&self, part: &impl Spanned, genre: &str) -> Vec<(usize, &'a Mutant)> {
        let span = part.span();
        let position =
            |at: proc_macro2::LineColumn| Position { line: at.line, column: at.column + 1 };
        let span = Span { start: position(span.start()), end: position(span.end()) };
        let wanted = self.wanted.get(&span).into_iter().flatten();
        wanted.filter(|(_, mutant)| mutant.genre == genre).copied().collect()
    }

    /// The changes that begin where a part does.
    fn starting(&self, part: &impl Spanned, genre: &str) -> Vec<(usize, &'a Mutant)> {
        let start = part.span().start();
        let start = Position { line: start.line, column: start.column + 1 };
        let wanted = self.wanted.iter().filter(|(span, _)| span.start == start);
        wanted.flat_map(|(_, all)| all).filter(|(_, of)| of.genre == genre).copied().collect()
    }

    fn add(&mut self, bytes: Range<usize>, kind: MutationSite, changes: Vec<(usize, String)>) {
        if !changes.is_empty() {
            let site = self.sites.entry((bytes.start, bytes.end)).or_default();
            site.bytes = bytes;
            site.kind = kind;
            site.changes.extend(changes);
        }
    }

    fn function(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let hidden = match &signature.output {
            syn::ReturnType::Type(_, kind) => self.text(kind).contains("impl "),
            syn::ReturnType::Default => false,
        };
        let Some(first) = block.stmts.first() else { return };
        if signature.constness.is_some() || hidden {
            return;
        }
        let (start, end) = (first.span().start(), block.stmts.last().unwrap_or(first).span().end());
        let position =
            |at: proc_macro2::LineColumn| Position { line: at.line, column: at.column + 1 };
        let span = Span { start: position(start), end: position(end) };
        let wanted = self.wanted.get(&span).into_iter().flatten();
        let changes = wanted
            .filter(|(_, mutant)| mutant.genre == "FnValue")
            .map(|(number, mutant)| (*number, mutant.replacement.clone()));
        let changes = changes.collect();
        let place = self.place(start);
        self.add(place..place, MutationSite::Return, changes);
    }
}

/// Whether there is a `let` in a chain of conditions.
fn has_let(expression: &syn::Expr) -> bool {
    match expression {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig, &item.block);
        if item.sig.constness.is_none() {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig, &item.block);
        if item.sig.constness.is_none() {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.sig, block);
        }
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}

    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}

    fn visit_expr_binary(&mut self, expression: &'ast syn::ExprBinary) {
        if !has_let(&expression.left) && !has_let(&expression.right) {
            let wanted = self.wanted(&expression.op, "BinaryOperator");
            let (left, right) = (self.text(&expression.left), self.text(&expression.right));
            let changes = wanted
                .into_iter()
                .map(|(number, of)| (number, format!("{left} {} {right}", of.replacement)));
            let changes = changes.collect();
            self.add(self.bytes(expression), MutationSite::Expression, changes);
        }
        visit::visit_expr_binary(self, expression);
    }

    fn visit_expr_unary(&mut self, expression: &'ast syn::ExprUnary) {
        let wanted = self.wanted(&expression.op, "UnaryOperator");
        let inner = self.text(&expression.expr);
        let changes =
            wanted.into_iter().map(|(number, of)| (number, format!("{}{inner}", of.replacement)));
        let changes = changes.collect();
        self.add(self.bytes(expression), MutationSite::Expression, changes);
        visit::visit_expr_unary(self, expression);
    }

    fn visit_expr_match(&mut self, expression: &'ast syn::ExprMatch) {
        // Without an arm for all that is left, none can be missing.
        let takes_all =
            |arm: &syn::Arm| arm.guard.is_none() && matches!(arm.pat, syn::Pat::Wild(_));
        if expression.arms.iter().any(takes_all) {
            for arm in &expression.arms {
                let deleted = self.wanted(arm, "MatchArm").into_iter().map(|(number, _)| number);
                match &arm.guard {
                    Some((_, guard)) => {
                        let deleted = deleted.map(|number| (number, "false".into())).collect();
                        self.add(self.bytes(&**guard), MutationSite::Expression, deleted);
                    }
                    None => {
                        let end = self.bytes(&arm.pat).end;
                        let deleted = deleted.map(|number| (number, String::new())).collect();
                        self.add(end..end, MutationSite::Pattern, deleted);
                    }
                }
            }
        }
        visit::visit_expr_match(self, expression);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if let Some((_, guard)) = &arm.guard {
            let wanted = self.wanted(&**guard, "MatchArmGuard");
            let changes = wanted.into_iter().map(|(number, of)| (number, of.replacement.clone()));
            let changes = changes.collect();
            self.add(self.bytes(&**guard), MutationSite::Expression, changes);
        }
        visit::visit_arm(self, arm);
    }

    fn visit_expr_struct(&mut self, expression: &'ast syn::ExprStruct) {
        if let Some(base) = &expression.rest {
            let base = self.text(base);
            for field in &expression.fields {
                let wanted = self.starting(field, "StructField");
                let member = self.text(&field.member);
                let changes =
                    wanted.into_iter().map(|(number, _)| (number, format!("({base}).{member}")));
                let changes: Vec<_> = changes.collect();
                if field.colon_token.is_some() {
                    self.add(self.bytes(&field.expr), MutationSite::Expression, changes);
                }
            }
        }
        visit::visit_expr_struct(self, expression);
    }
}
