//! What shape a component may have to be compiled: compiling takes time and memory by how large its
//! functions are and how they branch, by how often components within it are instantiated, and by what
//! is worked out beforehand for its tables and globals. Nothing ends it once it has begun.

use std::fmt;
use wasmparser::{
    ComponentAlias, ComponentExternalKind, ComponentInstance, ComponentOuterAliasKind,
    ComponentTypeRef, CompositeInnerType, ConstExpr, ElementItems, ElementKind, ExternalKind,
    FunctionBody, Instance, Operator, Parser, Payload, TableInit, TypeRef,
};

/// The most functions of all core modules of a component together.
const MAX_FUNCTIONS: usize = 200_000;

/// The most functions that core modules export or put into tables: each gets code of its own for callers
/// from outside. Interpreters of Python and JavaScript have less than ten thousand.
const MAX_REACHED: usize = 50_000;

/// The longest code of a function, in bytes.
const MAX_CODE_BYTES: usize = 1 << 20;

/// The most blocks, branches and targets of branches in a function: the time to compile one grows with
/// their square.
const MAX_BRANCHES: usize = 30_000;

/// The most locals of a function, each counted for every block: what is in a local may be another after
/// each.
const MAX_LOCALS_IN_BLOCKS: usize = 1_000_000;

/// The most time that compiling all functions is estimated to take on one processor, in microseconds.
/// An interpreter of Python, which is the largest component that is in use, is estimated at a sixth.
const MAX_WORK: u64 = 20 * 60 * 1_000_000;

/// The parameters and results of a function that cost nothing of note, and what each further one costs
/// to compile, in microseconds: callers from outside get code for each.
const FREE_VALUES: u64 = 16;
const VALUE: u64 = 40;

/// The most that a component defines, where what it instantiates counts each time that it does: the
/// compiler lays it all out.
const MAX_DEFINITIONS: u64 = 1_000_000;

/// The most components and modules within each other: what the compiler keeps grows with the square.
const MAX_NESTING: usize = 100;

/// The most elements that all tables begin with, and the largest table that the compiler writes out.
const MAX_ELEMENTS: u64 = 4 << 20;
const MAX_WRITTEN_OUT_ELEMENTS: u64 = 1 << 20;

/// The most operators of constant expressions, where they have more than one.
const MAX_CONSTANTS: usize = 50_000;

/// What a component has too much of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShapeLimit {
    Functions,
    Reached,
    Code,
    Branches,
    Locals,
    Work,
    Definitions,
    Nested,
    Elements,
    Constants,
}

impl fmt::Display for ShapeLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Functions => write!(f, "it has more than {MAX_FUNCTIONS} functions"),
            Self::Reached => {
                write!(f, "it exports or puts into tables more than {MAX_REACHED} functions")
            }
            Self::Code => write!(f, "it has a function of more than {} KiB", MAX_CODE_BYTES >> 10),
            Self::Branches => write!(f, "it has a function of more than {MAX_BRANCHES} branches"),
            Self::Locals => write!(f, "it has a function of too many locals for its branches"),
            Self::Work => write!(f, "it has too many large functions"),
            Self::Definitions => {
                write!(f, "it has more than {MAX_DEFINITIONS} definitions, once it is instantiated")
            }
            Self::Nested => write!(f, "it has components more than {MAX_NESTING} deep"),
            Self::Elements => {
                write!(f, "its tables begin with more than {MAX_ELEMENTS} elements")
            }
            Self::Constants => {
                write!(f, "its constants have more than {MAX_CONSTANTS} operators")
            }
        }
    }
}

/// Looks whether a component can be compiled in time. What is no component the compiler tells.
pub(super) fn check(wasm: &[u8]) -> Result<(), ShapeLimit> {
    let mut shape = Shape::default();
    for payload in Parser::new(0).parse_all(wasm) {
        let Ok(payload) = payload else { break };
        match shape.add(&payload) {
            Ok(()) => {}
            Err(ScanError::TooMuch(much)) => return Err(much),
            Err(ScanError::Invalid) => break,
        }
    }
    Ok(())
}

/// Why nothing more is looked at.
enum ScanError {
    TooMuch(ShapeLimit),
    /// The compiler tells.
    Invalid,
}

impl From<ShapeLimit> for ScanError {
    fn from(much: ShapeLimit) -> Self {
        Self::TooMuch(much)
    }
}

impl From<wasmparser::BinaryReaderError> for ScanError {
    fn from(_: wasmparser::BinaryReaderError) -> Self {
        Self::Invalid
    }
}

/// What was seen of a component.
#[derive(Default)]
struct Shape {
    functions: usize,
    /// Of those, how often one is exported or put into a table.
    reached: usize,
    work: u64,
    elements: u64,
    constants: usize,
    /// What is being read, each within the one before.
    within: Vec<ScanFrame>,
}

/// A component or module that is being read.
#[derive(Default)]
struct ScanFrame {
    is_component: bool,
    /// How much it defines when it is instantiated.
    definitions: u64,
    /// The same of the components that it can instantiate. One that it is given may be any.
    components: Vec<u64>,
    /// How many parameters and results each type of a module has.
    types: Vec<u64>,
    /// How many elements each table begins with, if any are said.
    tables: Vec<u64>,
    imported_tables: usize,
}

/// How much a component defines that is not known.
const ANY: u64 = u64::MAX;

impl ScanFrame {
    fn define(&mut self, count: usize) {
        self.definitions = self.definitions.saturating_add(count as u64);
    }

    fn component(&self, index: u32) -> u64 {
        self.components.get(index as usize).copied().unwrap_or(ANY)
    }
}

impl Shape {
    fn add(&mut self, payload: &Payload<'_>) -> Result<(), ScanError> {
        match payload {
            Payload::Version { encoding, .. } => {
                if self.within.len() == MAX_NESTING {
                    return Err(ShapeLimit::Nested.into());
                }
                let is_component = *encoding == wasmparser::Encoding::Component;
                self.within.push(ScanFrame { is_component, ..ScanFrame::default() });
                return Ok(());
            }
            Payload::End(_) => {
                let ended = self.within.pop().ok_or(ScanError::Invalid)?;
                if let Some(outer) = self.within.last_mut().filter(|_| ended.is_component) {
                    outer.components.push(ended.definitions);
                }
                return Ok(());
            }
            Payload::CodeSectionEntry(body) => {
                self.functions += 1;
                if self.functions > MAX_FUNCTIONS {
                    return Err(ShapeLimit::Functions.into());
                }
                return self.work(check_body(body)?);
            }
            _ => {}
        }
        match self.within.last().ok_or(ScanError::Invalid)?.is_component {
            true => self.add_to_component(payload),
            false => self.add_to_module(payload),
        }
    }

    fn work(&mut self, microseconds: u64) -> Result<(), ScanError> {
        self.work = self.work.saturating_add(microseconds);
        if self.work > MAX_WORK { Err(ShapeLimit::Work.into()) } else { Ok(()) }
    }

    fn add_to_component(&mut self, payload: &Payload<'_>) -> Result<(), ScanError> {
        let Some((scope, outer)) = self.within.split_last_mut() else {
            return Err(ScanError::Invalid);
        };
        match payload {
            Payload::ComponentImportSection(imports) => {
                for import in imports.clone() {
                    scope.define(1);
                    if matches!(import?.ty, ComponentTypeRef::Component(_)) {
                        scope.components.push(ANY);
                    }
                }
            }
            Payload::ComponentAliasSection(aliases) => {
                for alias in aliases.clone() {
                    scope.define(1);
                    match alias? {
                        ComponentAlias::InstanceExport {
                            kind: ComponentExternalKind::Component,
                            ..
                        } => scope.components.push(ANY),
                        ComponentAlias::Outer {
                            kind: ComponentOuterAliasKind::Component,
                            count,
                            index,
                        } => {
                            let component = match (count as usize).checked_sub(1) {
                                None => scope.component(index),
                                Some(count) => outer
                                    .iter()
                                    .nth_back(count)
                                    .map_or(ANY, |outer| outer.component(index)),
                            };
                            scope.components.push(component);
                        }
                        _ => {}
                    }
                }
            }
            Payload::ComponentExportSection(exports) => {
                for export in exports.clone() {
                    let export = export?;
                    scope.define(1);
                    if export.kind == ComponentExternalKind::Component {
                        scope.components.push(scope.component(export.index));
                    }
                }
            }
            Payload::ComponentInstanceSection(instances) => {
                for instance in instances.clone() {
                    match instance? {
                        ComponentInstance::Instantiate { component_index, args } => {
                            scope.define(1 + args.len());
                            let component = scope.component(component_index);
                            scope.definitions = scope.definitions.saturating_add(component);
                        }
                        ComponentInstance::FromExports(exports) => scope.define(1 + exports.len()),
                    }
                }
            }
            Payload::InstanceSection(instances) => {
                for instance in instances.clone() {
                    match instance? {
                        Instance::Instantiate { args, .. } => scope.define(1 + args.len()),
                        Instance::FromExports(exports) => scope.define(1 + exports.len()),
                    }
                }
            }
            Payload::CoreTypeSection(types) => scope.define(types.count() as usize),
            Payload::ComponentTypeSection(types) => scope.define(types.count() as usize),
            Payload::ComponentCanonicalSection(functions) => {
                scope.define(functions.count() as usize);
                // Each has code of its own.
                self.functions = self.functions.saturating_add(functions.count() as usize);
                if self.functions > MAX_FUNCTIONS {
                    return Err(ShapeLimit::Functions.into());
                }
            }
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => scope.define(1),
            _ => {}
        }
        match scope.definitions > MAX_DEFINITIONS {
            true => Err(ShapeLimit::Definitions.into()),
            false => Ok(()),
        }
    }

    fn add_to_module(&mut self, payload: &Payload<'_>) -> Result<(), ScanError> {
        let Some(scope) = self.within.last_mut() else { return Err(ScanError::Invalid) };
        match payload {
            Payload::TypeSection(types) => {
                for group in types.clone() {
                    let types = group?.into_types().map(|of| match of.composite_type.inner {
                        CompositeInnerType::Func(function) => {
                            (function.params().len() + function.results().len()) as u64
                        }
                        _ => 0,
                    });
                    scope.types.extend(types);
                }
            }
            Payload::ImportSection(imports) => {
                for import in imports.clone().into_imports() {
                    if matches!(import?.ty, TypeRef::Table(_)) {
                        scope.imported_tables += 1;
                    }
                }
            }
            Payload::FunctionSection(functions) => {
                for function in functions.clone() {
                    let values = scope.types.get(function? as usize).copied().unwrap_or_default();
                    self.work =
                        self.work.saturating_add(values.saturating_sub(FREE_VALUES) * VALUE);
                }
                return self.work(0);
            }
            Payload::TableSection(tables) => {
                for table in tables.clone() {
                    let table = table?;
                    let elements = table.ty.initial.min(MAX_WRITTEN_OUT_ELEMENTS);
                    scope.tables.push(match &table.init {
                        TableInit::RefNull => elements,
                        TableInit::Expr(_) => {
                            self.elements = self.elements.saturating_add(elements);
                            0
                        }
                    });
                    if let TableInit::Expr(expression) = &table.init {
                        self.constants += operators(expression);
                    }
                }
            }
            Payload::GlobalSection(globals) => {
                for global in globals.clone() {
                    self.constants += operators(&global?.init_expr);
                }
            }
            Payload::ExportSection(exports) => {
                for export in exports.clone() {
                    self.reached += usize::from(export?.kind == ExternalKind::Func);
                }
            }
            Payload::ElementSection(segments) => {
                for segment in segments.clone() {
                    let segment = segment?;
                    let items = match &segment.items {
                        ElementItems::Functions(items) => items.count(),
                        ElementItems::Expressions(_, items) => items.count(),
                    };
                    self.reached = self.reached.saturating_add(items as usize);
                    if let ElementKind::Active { table_index, offset_expr } = &segment.kind {
                        self.constants += operators(offset_expr);
                        let table = table_index.unwrap_or_default() as usize;
                        let table = table.checked_sub(scope.imported_tables);
                        let table = table.and_then(|table| scope.tables.get_mut(table));
                        // The first segment has all of it written out.
                        let elements = table.map(std::mem::take).unwrap_or_default();
                        self.elements = self.elements.saturating_add(elements);
                    }
                    if let ElementItems::Expressions(_, items) = &segment.items {
                        for item in items.clone() {
                            self.constants += operators(&item?);
                        }
                    }
                }
            }
            Payload::DataSection(segments) => {
                for segment in segments.clone() {
                    if let wasmparser::DataKind::Active { offset_expr, .. } = segment?.kind {
                        self.constants += operators(&offset_expr);
                    }
                }
            }
            _ => {}
        }
        if self.reached > MAX_REACHED {
            return Err(ShapeLimit::Reached.into());
        }
        match (self.elements > MAX_ELEMENTS, self.constants > MAX_CONSTANTS) {
            (true, _) => Err(ShapeLimit::Elements.into()),
            (_, true) => Err(ShapeLimit::Constants.into()),
            (false, false) => Ok(()),
        }
    }
}

/// The operators of a constant expression that is more than one, and its end.
fn operators(expression: &ConstExpr<'_>) -> usize {
    let operators = expression.get_operators_reader().into_iter();
    match operators.take(MAX_CONSTANTS + 1).count() {
        0..=2 => 0,
        operators => operators,
    }
}

/// Looks at a function, and estimates how long compiling it takes, in microseconds.
fn check_body(body: &FunctionBody<'_>) -> Result<u64, ShapeLimit> {
    let code = body.range().len();
    if code > MAX_CODE_BYTES {
        return Err(ShapeLimit::Code);
    }
    let (mut locals, mut blocks, mut branches) = (0_usize, 1_usize, 0_usize);
    for group in body.get_locals_reader().into_iter().flatten() {
        let Ok((count, _)) = group else { return Ok(0) };
        locals = locals.saturating_add(count as usize);
    }
    let Ok(operators) = body.get_operators_reader() else { return Ok(0) };
    for operator in operators {
        match operator {
            Ok(Operator::Block { .. } | Operator::Loop { .. } | Operator::If { .. }) => {
                blocks += 1;
                branches += 1;
            }
            Ok(Operator::TryTable { try_table }) => {
                blocks += 1;
                branches += 1 + try_table.catches.len();
            }
            Ok(Operator::BrTable { targets }) => branches += targets.len() as usize,
            Ok(
                Operator::Br { .. }
                | Operator::BrIf { .. }
                | Operator::BrOnNull { .. }
                | Operator::BrOnNonNull { .. }
                | Operator::BrOnCast { .. }
                | Operator::BrOnCastFail { .. },
            ) => branches += 1,
            Ok(_) => {}
            Err(_) => return Ok(0),
        }
        if branches > MAX_BRANCHES {
            return Err(ShapeLimit::Branches);
        }
    }
    let locals_in_blocks = locals.saturating_mul(blocks);
    if locals_in_blocks > MAX_LOCALS_IN_BLOCKS {
        return Err(ShapeLimit::Locals);
    }
    // As it was measured with functions of nothing but one of these.
    Ok((200 + 16 * code + branches * branches / 100 + 4 * locals_in_blocks) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_module(module: &str, expected: Result<(), ShapeLimit>) {
        let component = wat::parse_str(format!("(component (core module {module}))"));
        assert_eq!(check(&component.expect("it is a component")), expected);
    }

    #[test]
    fn what_takes_long_to_compile_is_refused() {
        check_module("(func) (func)", Ok(()));
        check_module(&"(func)".repeat(MAX_FUNCTIONS + 1), Err(ShapeLimit::Functions));
        let exported: String =
            (0..=MAX_REACHED).map(|i| format!("(func (export \"{i}\"))")).collect();
        check_module(&exported, Err(ShapeLimit::Reached));
        let kept = "0 ".repeat(MAX_REACHED);
        check_module(
            &format!("(func) (table {MAX_REACHED} funcref) (elem (i32.const 0) {kept})"),
            Ok(()),
        );
        check_module(
            &format!("(func (export \"f\")) (elem func {kept})"),
            Err(ShapeLimit::Reached),
        );
        let long = "(drop (i32.const 1))".repeat(MAX_CODE_BYTES / 3);
        check_module(&format!("(func {long})"), Err(ShapeLimit::Code));
        let blocks = "(block (br_if 0 (i32.const 1)))".repeat(MAX_BRANCHES / 2 + 1);
        check_module(&format!("(func {blocks})"), Err(ShapeLimit::Branches));
        let table = "0 ".repeat(MAX_BRANCHES + 1);
        check_module(
            &format!("(func (block (br_table {table} (i32.const 1))))"),
            Err(ShapeLimit::Branches),
        );
        let (locals, blocks) = ("i32 ".repeat(40_000), "(block)".repeat(2_000));
        check_module(&format!("(func (local {locals}) {blocks})"), Err(ShapeLimit::Locals));
        let (locals, loops) = ("i32 ".repeat(900), "(loop)".repeat(1_000));
        let function = format!("(func (local {locals}) {loops})");
        check_module(&function.repeat(100), Ok(()));
        check_module(&function.repeat(400), Err(ShapeLimit::Work));
        let values = "i32 ".repeat(500);
        let function = "(func (type 0) unreachable)".repeat(900);
        let module =
            format!("(core module (type (func (param {values}) (result {values}))) {function})");
        let many = format!("(component {})", module.repeat(50));
        assert_eq!(check(&wat::parse_str(many).unwrap()), Err(ShapeLimit::Work));
        // What is deep within others counts as well.
        let inner = "(func)".repeat(MAX_FUNCTIONS);
        let nested = format!("(component (component (core module {inner})) (core module (func)))");
        assert_eq!(check(&wat::parse_str(nested).unwrap()), Err(ShapeLimit::Functions));
        assert_eq!(check(b"nonsense"), Ok(()));
    }

    #[test]
    fn what_is_instantiated_counts_each_time() {
        let check_component = |content: &str, expected: Result<(), ShapeLimit>| {
            let component = wat::parse_str(format!("(component {content})"));
            assert_eq!(check(&component.expect("it is a component")), expected, "{content}");
        };
        let doubled = |innermost: &str, levels: usize| {
            let level = |i: usize| {
                let again = format!("(instance (instantiate $c{i}))");
                format!("(component $c{} {again} {again})", i + 1)
            };
            let levels = (0..levels).map(level).collect::<String>();
            format!("(component $c0 {innermost}) {levels}")
        };
        let again = |level: usize| format!("(instance (instantiate $c{level}))");
        check_component(&format!("{}{}", doubled("", 10), again(10)), Ok(()));
        let much = Err(ShapeLimit::Definitions);
        check_component(&format!("{}{}", doubled("", 60), again(60)), much);
        let module = "(core module $m) (core instance (instantiate $m))";
        check_component(&format!("{}{}", doubled(module, 60), again(60)), much);
        check_component(&doubled("", 60), much);
        // What is exported under another name is the same.
        let exported = format!("{} (export $e \"e\" (component $c19))", doubled("", 19));
        check_component(&format!("{exported} (instance (instantiate $e))"), much);
        // What it is given may be anything.
        let given = "(component (import \"c\" (component $c)) (instance (instantiate $c)))";
        check_component(given, much);
        check_component("(component (import \"c\" (component $c)))", Ok(()));
        // As bytes: the reader of text goes no deeper.
        let nested = |depth: usize| {
            let number = |n: usize| [n as u8 & 0x7f | 0x80, (n >> 7) as u8];
            let around = |inner: Vec<u8>, _| {
                [b"\0asm\x0d\0\x01\0\x04", &number(inner.len())[..], &inner].concat()
            };
            (1..depth).fold(b"\0asm\x0d\0\x01\0".to_vec(), around)
        };
        assert_eq!(check(&nested(MAX_NESTING)), Ok(()));
        assert_eq!(check(&nested(MAX_NESTING + 1)), Err(ShapeLimit::Nested));
    }

    #[test]
    fn what_tables_and_globals_begin_with_is_bounded() {
        let tables = |count: usize, size: usize, rest: &str| {
            let table = |i: usize| {
                format!("(table $t{i} {size} funcref) {}", rest.replace("TABLE", &format!("$t{i}")))
            };
            format!("(func $f) {}", (0..count).map(table).collect::<String>())
        };
        let last = "(elem (table TABLE) (i32.const 999999) func $f)";
        check_module(&tables(5, 1_000_000, ""), Ok(()));
        check_module(&tables(4, 1_000_000, last), Ok(()));
        check_module(&tables(5, 1_000_000, last), Err(ShapeLimit::Elements));
        let twice = format!("{last}{last}");
        check_module(&tables(3, 1_000_000, &twice), Ok(()));
        let filled = "(table 1000000 (ref null func) (ref.func $f))".repeat(5);
        check_module(&format!("(func $f) {filled}"), Err(ShapeLimit::Elements));
        check_module(&"(global i32 (i32.const 1))".repeat(MAX_CONSTANTS), Ok(()));
        let sum = "(global i32 (i32.add (i32.const 1) (i32.const 1)))";
        check_module(&sum.repeat(MAX_CONSTANTS / 4), Ok(()));
        check_module(&sum.repeat(MAX_CONSTANTS / 4 + 1), Err(ShapeLimit::Constants));
        let long =
            ["i32.const 1 ".repeat(MAX_CONSTANTS), "i32.add ".repeat(MAX_CONSTANTS - 1)].concat();
        check_module(&format!("(global i32 {long})"), Err(ShapeLimit::Constants));
    }
}
