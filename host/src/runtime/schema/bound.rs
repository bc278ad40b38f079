//! What checking a value against a schema can cost at most, read from the schema alone.
//!
//! It reads a plain part of JSON Schema, which most schemas keep to: one document with one dialect,
//! whose references are pointers into it, as they stand. What goes beyond that, or costs much by
//! itself, has no bound here. A bound is never too low. It may be much too high, which costs the
//! caller some time and nobody else anything.

use serde_json::{Map, Value};
use std::collections::HashMap;

use super::pattern_size;

/// The deepest value that a bound is known for, where a schema refers to itself.
const MAX_LEVELS: usize = 24;

/// The most checks that are in progress at a time, each within the other: they take stack.
const MAX_NESTING: u32 = 150;

/// The most subschemas, each counted once for every reference that may have it compiled again.
const MAX_SUBSCHEMAS: usize = 20_000;

/// The most items of an `enum` that are no texts or numbers: its meta-schema compares them all.
const MAX_ENUM_VALUES: usize = 200;

/// Members that give a subschema another name, another base for references or another dialect, and
/// references that depend on the way to them.
const NOT_PLAIN: [&str; 7] = [
    "$id",
    "$anchor",
    "$dynamicAnchor",
    "$recursiveAnchor",
    "$dynamicRef",
    "$recursiveRef",
    "$schema",
];

/// What makes a schema go beyond the plain part, as far as one member alone does: this member.
pub(super) fn not_plain(schema: &Value) -> Option<String> {
    let leads_out = |reference: &str| !reference.starts_with('#');
    match schema {
        Value::Object(members) => members.iter().find_map(|(name, member)| match member {
            Value::String(reference) if name == "$ref" && leads_out(reference) => {
                Some(format!("`$ref = {reference:?}`"))
            }
            Value::String(_) if NOT_PLAIN.contains(&&**name) => Some(format!("`{name}`")),
            member => not_plain(member),
        }),
        Value::Array(items) => items.iter().find_map(not_plain),
        _ => None,
    }
}

/// What checking costs at most, in steps of about ten nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CostBound {
    whole: CostsByDepth,
    /// The same by the members of an object, for a schema that tells them apart.
    split: Option<Box<MemberCosts>>,
}

/// What checking costs by how deep a value is.
#[derive(Debug, Clone, PartialEq)]
struct CostsByDepth {
    /// With every item more the same or greater.
    costs: Box<[Cost]>,
    /// Whether the last item holds for all values that are deeper.
    closed: bool,
}

/// What checking an object costs: a long text in one member is nothing to a pattern for another.
#[derive(Debug, Clone, PartialEq)]
struct MemberCosts {
    /// For the object itself.
    own: Cost,
    /// For each member that is not named.
    common: CostsByDepth,
    /// For members whose schemas cost much.
    dear: Box<[(Box<str>, CostsByDepth)]>,
}

/// The cost of checking one part of a value.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Cost {
    /// For each part.
    parts: u32,
    /// For each unit of text.
    text: u32,
    /// For each part or unit of text, by the size of the whole value, where items are compared.
    squared: u32,
}

/// What a schema takes while it is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct SchemaSize {
    pub(super) subschemas: usize,
    /// The states of all patterns.
    pub(super) states: usize,
}

impl CostBound {
    /// The bound of a schema that is plain, and how much it is.
    pub(super) fn of(schema: &Value) -> Option<(Self, SchemaSize)> {
        if schema.is_boolean() {
            let cost = Cost { parts: 1, ..Cost::default() };
            let whole = CostsByDepth { costs: [cost].into(), closed: true };
            return Some((Self { whole, split: None }, SchemaSize::default()));
        }
        let mut reader = SchemaReader::new(schema)?;
        let root = reader.number(schema);
        while let Some((number, schema)) = reader.unread.pop() {
            reader.read(number, schema)?;
        }
        let mut subschemas = reader.nodes.len();
        for target in reader.targets.values() {
            count(target, &mut subschemas)?;
        }
        let size = SchemaSize { subschemas, states: reader.states };
        let order = reader.order()?;
        let bound = reader.bound(&order, root)?;
        Some((bound, size))
    }

    /// Whether checking this value costs no more than that.
    pub(super) fn allows(&self, value: &Value, most: u64) -> bool {
        match (&self.split, value) {
            (Some(split), Value::Object(members)) => split.allows(members, most),
            _ => self.whole.cost(value, most).is_some_and(|cost| cost <= most),
        }
    }
}

impl MemberCosts {
    fn allows(&self, members: &Map<String, Value>, most: u64) -> bool {
        let mut names = ValueSize { parts: 1, text: 0, depth: 0, most };
        members.keys().for_each(|name| names.add_name(name));
        let mut cost = self.own.of(&names);
        members.iter().all(|(name, member)| {
            let dear = self.dear.iter().find(|(dear, _)| **dear == **name);
            let levels = dear.map_or(&self.common, |(_, levels)| levels);
            let Some(more) = levels.cost(member, most) else { return false };
            cost = cost.saturating_add(more);
            cost <= most
        })
    }
}

impl CostsByDepth {
    /// What checking a value costs; nothing where that is not known, or is more than that.
    fn cost(&self, value: &Value, most: u64) -> Option<u64> {
        let mut measure = ValueSize { parts: 0, text: 0, depth: 0, most };
        // A value of so many parts alone costs more, whatever the schema.
        if !measure.add(value, 0) {
            return None;
        }
        let cost = match self.costs.get(measure.depth) {
            Some(cost) => cost,
            None if self.closed => self.costs.last()?,
            None => return None,
        };
        Some(cost.of(&measure))
    }

    /// What costs as much as the greater of two. Both hold for all values.
    fn or(self, other: Self) -> Self {
        let at = |levels: &Self, level: usize| {
            let last = levels.costs.len() - 1;
            levels.costs[level.min(last)]
        };
        let levels = 0..self.costs.len().max(other.costs.len());
        let costs = levels.map(|level| at(&self, level).or(at(&other, level))).collect();
        Self { costs, closed: self.closed && other.closed }
    }

    fn is_dear(&self) -> bool {
        let dear = |cost: &Cost| cost.parts > 100 || cost.text > 20 || cost.squared > 0;
        !self.closed || self.costs.iter().any(dear)
    }
}

impl Cost {
    fn or(self, other: Self) -> Self {
        Self {
            parts: self.parts.max(other.parts),
            text: self.text.max(other.text),
            squared: self.squared.max(other.squared),
        }
    }

    fn of(&self, measure: &ValueSize) -> u64 {
        let ValueSize { parts, text, depth, .. } = *measure;
        let size = parts.saturating_add(text);
        let compared = size.saturating_mul(size).saturating_mul(self.squared.into());
        // An array may be compared as a whole, and its items each within themselves.
        let compared = compared.saturating_mul(depth as u64 + 1);
        let linear = parts.saturating_mul(self.parts.into());
        let texts = text.saturating_mul(self.text.into());
        linear.saturating_add(texts).saturating_add(compared)
    }
}

/// The size of a value: its parts, and units of sixteen bytes of text.
struct ValueSize {
    parts: u64,
    text: u64,
    depth: usize,
    most: u64,
}

/// Deeper than any value that comes as text.
const MAX_VALUE_DEPTH: usize = 200;

impl ValueSize {
    fn add(&mut self, value: &Value, depth: usize) -> bool {
        self.depth = self.depth.max(depth);
        self.parts += 1;
        match value {
            Value::String(text) => self.text += 1 + text.len() as u64 / 16,
            Value::Array(items) => {
                return self.goes_on(depth) && items.iter().all(|item| self.add(item, depth + 1));
            }
            Value::Object(members) => {
                return self.goes_on(depth)
                    && members.iter().all(|(name, member)| {
                        self.add_name(name);
                        self.add(member, depth + 1)
                    });
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        true
    }

    fn add_name(&mut self, name: &str) {
        self.parts += 1;
        self.text += 1 + name.len() as u64 / 16;
    }

    fn goes_on(&self, depth: usize) -> bool {
        depth < MAX_VALUE_DEPTH && self.parts <= self.most
    }
}

/// A subschema: what it costs itself, and the subschemas that it applies.
#[derive(Default)]
struct Node {
    parts: u64,
    text: u64,
    squared: u64,
    /// To the same value.
    here: Vec<usize>,
    /// To each item of an array.
    items: Vec<usize>,
    /// Each to one item of an array.
    single_items: Vec<usize>,
    /// To each member of an object, or its name.
    members: Vec<usize>,
    /// Each to one member of an object.
    single_members: Vec<usize>,
}

impl Node {
    /// Whether it applies nothing.
    fn is_leaf(&self) -> bool {
        let Self { here, items, single_items, members, single_members, .. } = self;
        [here, items, single_items, members, single_members]
            .iter()
            .all(|applied| applied.is_empty())
    }
}

struct SchemaReader<'a> {
    root: &'a Value,
    nodes: Vec<Node>,
    /// Where each subschema is in `nodes`, by its address.
    known: HashMap<*const Value, usize>,
    /// Those of which that is all that is known.
    unread: Vec<(usize, &'a Value)>,
    /// What is referred to.
    targets: HashMap<&'a str, &'a Value>,
    states: usize,
}

impl<'a> SchemaReader<'a> {
    fn new(root: &'a Value) -> Option<Self> {
        let top = root.as_object()?;
        let dialect = top.get("$schema").and_then(Value::as_str).unwrap_or_default();
        // There, any subschema with an `id` is another document.
        let named = dialect.contains("draft-04") || dialect.contains("draft-03");
        let is_plain = top.iter().all(|(name, member)| match name.as_str() {
            "$schema" => member.is_string(),
            "$id" => is_plain_id(member),
            "id" if named => is_plain_id(member),
            "$vocabulary" => false,
            name => !is_marked(name, member, named) && !has_marks(member, named),
        });
        is_plain.then(|| Self {
            root,
            nodes: Vec::new(),
            known: HashMap::new(),
            unread: Vec::new(),
            targets: HashMap::new(),
            states: 0,
        })
    }

    /// The number of a subschema, which is read later: one that refers to itself is read once, and a
    /// long chain of them takes no stack.
    fn number(&mut self, schema: &'a Value) -> usize {
        *self.known.entry(schema).or_insert_with(|| {
            let number = self.nodes.len();
            self.nodes.push(Node { parts: 1, ..Node::default() });
            self.unread.push((number, schema));
            number
        })
    }

    fn read(&mut self, number: usize, schema: &'a Value) -> Option<()> {
        match schema {
            Value::Bool(_) => Some(()),
            Value::Object(members) if self.nodes.len() <= MAX_SUBSCHEMAS => members
                .iter()
                .try_for_each(|(keyword, value)| self.keyword(number, members, keyword, value)),
            // It is no schema, and the validator says so better.
            _ => None,
        }
    }

    fn keyword(
        &mut self,
        number: usize,
        schema: &'a Map<String, Value>,
        keyword: &str,
        value: &'a Value,
    ) -> Option<()> {
        match keyword {
            "$ref" => {
                let target = self.target(value.as_str()?)?;
                self.nodes[number].here.push(target);
            }
            "allOf" | "anyOf" | "oneOf" => {
                for schema in value.as_array()? {
                    let node = self.number(schema);
                    self.nodes[number].here.push(node);
                }
            }
            "not" | "if" | "then" | "else" => {
                let node = self.number(value);
                self.nodes[number].here.push(node);
            }
            "dependentSchemas" | "dependencies" => {
                for dependency in value.as_object()?.values() {
                    match dependency {
                        Value::Array(names) => self.costs(number, names.len() as u64),
                        schema => {
                            let node = self.number(schema);
                            self.nodes[number].here.push(node);
                        }
                    }
                }
            }
            "prefixItems" => self.single_items(number, value)?,
            "items" if value.is_array() => self.single_items(number, value)?,
            "items" | "additionalItems" | "contains" => {
                let node = self.number(value);
                self.nodes[number].items.push(node);
            }
            "properties" => {
                let properties = value.as_object()?;
                self.costs(number, properties.len() as u64);
                self.reads(number, 1);
                for schema in properties.values() {
                    let node = self.number(schema);
                    self.nodes[number].single_members.push(node);
                }
            }
            "patternProperties" => {
                for (pattern, schema) in value.as_object()? {
                    self.pattern(number, pattern)?;
                    let node = self.number(schema);
                    self.nodes[number].members.push(node);
                }
            }
            "additionalProperties" => {
                // It looks at the other patterns again.
                if let Some(patterns) = schema.get("patternProperties").and_then(Value::as_object) {
                    patterns.keys().try_for_each(|pattern| self.pattern(number, pattern))?;
                }
                let node = self.number(value);
                self.nodes[number].members.push(node);
            }
            "propertyNames" => {
                let node = self.number(value);
                self.nodes[number].members.push(node);
            }
            "pattern" => self.pattern(number, value.as_str()?)?,
            "minLength" | "maxLength" => self.reads(number, 2),
            "enum" => self.values(number, value.as_array()?)?,
            "const" => {
                self.costs(number, size(value));
                self.reads(number, 1);
            }
            "required" => self.costs(number, value.as_array().map_or(0, Vec::len) as u64),
            "dependentRequired" => self.costs(number, size(value)),
            "uniqueItems" => {
                self.nodes[number].squared += 1;
            }
            "multipleOf" => self.costs(number, 200),
            // Each text is compiled as a pattern.
            "format" if value == "regex" => return None,
            "format" | "contentMediaType" | "contentEncoding" => {
                self.costs(number, 40);
                self.reads(number, 40);
            }
            "contentSchema" => return None,
            // What they leave to be checked depends on all that was checked before, again.
            "unevaluatedItems" | "unevaluatedProperties" => return None,
            // What else is checked costs next to nothing, and the rest is not.
            _ => self.costs(number, 1),
        }
        Some(())
    }

    fn single_items(&mut self, number: usize, schemas: &'a Value) -> Option<()> {
        for schema in schemas.as_array()? {
            let node = self.number(schema);
            self.nodes[number].single_items.push(node);
        }
        Some(())
    }

    /// A node takes so many steps for each part.
    fn costs(&mut self, number: usize, steps: u64) {
        self.nodes[number].parts += steps;
    }

    /// A node takes so many steps for each unit of text.
    fn reads(&mut self, number: usize, steps: u64) {
        self.nodes[number].text += steps;
    }

    fn pattern(&mut self, number: usize, pattern: &str) -> Option<()> {
        let states = pattern_size::states(pattern)?;
        self.states += states;
        // Each character may meet each state.
        self.costs(number, 10);
        self.reads(number, 5 * states as u64);
        (self.states <= pattern_size::MAX_STATES).then_some(())
    }

    fn values(&mut self, number: usize, values: &[Value]) -> Option<()> {
        // They are found by their hashes, or are few.
        if values.iter().all(Value::is_string) {
            self.costs(number, 10);
            self.reads(number, 1);
            return Some(());
        }
        let has_parts = values.iter().any(|value| value.is_array() || value.is_object());
        self.costs(number, values.iter().map(size).sum());
        self.reads(number, 1);
        (!has_parts || values.len() <= MAX_ENUM_VALUES).then_some(())
    }

    /// Where a reference leads. It is read as it stands: what is encoded in it would have to be read
    /// as the validator does.
    fn target(&mut self, reference: &'a str) -> Option<usize> {
        let pointer = reference.strip_prefix('#')?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/$_-.".contains(c);
        if !pointer.chars().all(is_plain) {
            return None;
        }
        let target = self.root.pointer(pointer)?;
        self.targets.insert(reference, target);
        Some(self.number(target))
    }

    /// The bound of the schema that is this node.
    fn bound(&self, order: &[usize], root: usize) -> Option<CostBound> {
        let node = &self.nodes[root];
        let mut roots = vec![root];
        roots.extend(&node.here);
        roots.extend(&node.single_members);
        let mut levels = levels(&self.nodes, order, &roots).into_iter();
        let whole = levels.next()??;
        let here: Vec<Option<CostsByDepth>> = levels.by_ref().take(node.here.len()).collect();
        let goes_deeper = |levels: &Option<CostsByDepth>| {
            levels.as_ref().is_none_or(|levels| !levels.closed || levels.costs.len() > 1)
        };
        let tells_apart = node.members.iter().all(|member| self.nodes[*member].is_leaf());
        let properties = self.root.get("properties").and_then(Value::as_object);
        let Some(properties) = properties.filter(|_| tells_apart && !here.iter().any(goes_deeper))
        else {
            return Some(CostBound { whole, split: None });
        };
        let mut common =
            CostsByDepth { costs: [Cost { parts: 1, ..Cost::default() }].into(), closed: true };
        let mut dear = Vec::new();
        for (name, levels) in properties.keys().zip(levels) {
            match levels? {
                levels if levels.is_dear() => dear.push((name.as_str().into(), levels)),
                levels => common = common.or(levels),
            }
        }
        let split = MemberCosts { own: whole.costs[0], common, dear: dear.into() };
        let split = (!split.dear.is_empty()).then(|| Box::new(split));
        Some(CostBound { whole, split })
    }

    /// All nodes, each after those that it applies to the same value. There is no such order where one
    /// comes back to itself without going deeper into the value.
    fn order(&self) -> Option<Vec<usize>> {
        #[derive(Clone, Copy, PartialEq)]
        enum State {
            New,
            Begun,
            Done,
        }
        let mut states = vec![State::New; self.nodes.len()];
        let mut order = Vec::with_capacity(self.nodes.len());
        for start in 0..self.nodes.len() {
            let mut path = vec![(start, 0)];
            while let Some((node, next)) = path.pop() {
                if next == 0 && states[node] == State::Done {
                    continue;
                }
                states[node] = State::Begun;
                match self.nodes[node].here.get(next) {
                    None => {
                        states[node] = State::Done;
                        order.push(node);
                    }
                    Some(applied) => {
                        if states[*applied] == State::Begun {
                            return None;
                        }
                        path.push((node, next + 1));
                        path.push((*applied, 0));
                    }
                }
            }
        }
        Some(order)
    }
}

/// Whether the name of a whole schema leaves pointers into it what they are. It could be that of a
/// schema that the validator brings along.
fn is_plain_id(id: &Value) -> bool {
    let is_other =
        |id: &str| !id.contains(['#', '%']) && !id.to_lowercase().contains("json-schema");
    id.as_str().is_some_and(is_other)
}

/// Counts the parts of a subschema that could be others, as long as there are not too many.
fn count(schema: &Value, counted: &mut usize) -> Option<()> {
    match schema {
        Value::Object(members) => {
            *counted += 1;
            members.values().try_for_each(|member| count(member, counted))?;
        }
        Value::Array(items) => items.iter().try_for_each(|item| count(item, counted))?,
        _ => {}
    }
    (*counted <= MAX_SUBSCHEMAS).then_some(())
}

/// Whether a member names a subschema or makes a reference depend on how it was come to.
fn is_marked(name: &str, member: &Value, named: bool) -> bool {
    NOT_PLAIN.contains(&name) && !member.is_object() || named && name == "id" && member.is_string()
}

/// Whether there is such a member anywhere within, also where it may mean nothing.
fn has_marks(value: &Value, named: bool) -> bool {
    match value {
        Value::Object(members) => members
            .iter()
            .any(|(name, member)| is_marked(name, member, named) || has_marks(member, named)),
        Value::Array(items) => items.iter().any(|item| has_marks(item, named)),
        _ => false,
    }
}

/// What comparing with a value takes.
fn size(value: &Value) -> u64 {
    match value {
        Value::String(text) => 1 + text.len() as u64 / 16,
        Value::Array(items) => 2 + items.iter().map(size).sum::<u64>(),
        Value::Object(members) => 2 + members.values().map(|member| 4 + size(member)).sum::<u64>(),
        _ => 1,
    }
}

/// What a node and all that it applies cost for one part of a value that is so much deeper.
#[derive(Clone, Copy, Default, PartialEq)]
struct NodeCost {
    parts: u64,
    text: u64,
    squared: u64,
    /// How many checks are within each other on the way there; none where there is no way.
    nested: u32,
}

impl NodeCost {
    fn and(self, other: Self) -> Self {
        Self {
            parts: self.parts.saturating_add(other.parts),
            text: self.text.saturating_add(other.text),
            squared: self.squared.saturating_add(other.squared),
            nested: self.nested.max(other.nested),
        }
    }

    fn or(self, other: Self) -> Self {
        Self {
            parts: self.parts.max(other.parts),
            text: self.text.max(other.text),
            squared: self.squared.max(other.squared),
            nested: self.nested.max(other.nested),
        }
    }

    /// The same within one more check.
    fn within(self) -> Self {
        let nested = if self.nested == 0 { 0 } else { self.nested + 1 };
        Self { nested, ..self }
    }
}

/// What some schemas cost, level by level: what checks a part at one depth is what checks it there,
/// and what those apply that check the part around it. Nothing for those that are never checked
/// without too many checks within each other.
fn levels(nodes: &[Node], order: &[usize], roots: &[usize]) -> Vec<Option<CostsByDepth>> {
    let all = |of: &[NodeCost], numbers: &[usize]| {
        numbers.iter().fold(NodeCost::default(), |sum, number| sum.and(of[*number]))
    };
    let most = |of: &[NodeCost], numbers: &[usize]| {
        numbers.iter().fold(NodeCost::default(), |most, number| most.or(of[*number]))
    };
    let mut found: Vec<CostsByDepthBuilder> =
        roots.iter().map(|_| CostsByDepthBuilder::default()).collect();
    // What each node comes to where the value is an array, where it is an object, and either.
    let mut arrays = vec![NodeCost::default(); nodes.len()];
    let mut objects = arrays.clone();
    let mut before: Vec<NodeCost> = Vec::new();
    for level in 0..MAX_LEVELS {
        for number in order {
            let node = &nodes[*number];
            if level == 0 {
                let Node { parts, text, squared, .. } = *node;
                let own = NodeCost { parts, text, squared, nested: 1 };
                arrays[*number] = own.and(all(&arrays, &node.here).within());
                objects[*number] = arrays[*number];
                continue;
            }
            let items = all(&before, &node.items).and(most(&before, &node.single_items));
            let members = all(&before, &node.members).and(most(&before, &node.single_members));
            arrays[*number] = all(&arrays, &node.here).and(items).within();
            objects[*number] = all(&objects, &node.here).and(members).within();
        }
        before = arrays.iter().zip(&objects).map(|(array, object)| array.or(*object)).collect();
        let mut goes_on = false;
        for (found, root) in found.iter_mut().zip(roots) {
            goes_on |= found.grow(before[*root]);
        }
        if !goes_on {
            break;
        }
    }
    found.into_iter().map(CostsByDepthBuilder::levels).collect()
}

/// What is known of the levels of a schema.
#[derive(Default)]
struct CostsByDepthBuilder {
    costs: Vec<Cost>,
    greatest: NodeCost,
    closed: bool,
    /// Whether there are too many checks within each other.
    ended: bool,
}

impl CostsByDepthBuilder {
    /// Adds a level, and says whether there may be more.
    fn grow(&mut self, costs: NodeCost) -> bool {
        if self.closed || self.ended {
            return false;
        }
        self.greatest = self.greatest.or(costs);
        self.closed = costs == NodeCost::default();
        self.ended = self.greatest.nested > MAX_NESTING;
        if self.closed || self.ended {
            return false;
        }
        let short = |cost: u64| u32::try_from(cost).unwrap_or(u32::MAX);
        let NodeCost { parts, text, squared, .. } = self.greatest;
        self.costs.push(Cost { parts: short(parts), text: short(text), squared: short(squared) });
        true
    }

    fn levels(mut self) -> Option<CostsByDepth> {
        // What is as the one before says nothing new.
        while self.closed
            && let [.., last, same] = self.costs[..]
            && last == same
        {
            self.costs.pop();
        }
        (!self.costs.is_empty())
            .then(|| CostsByDepth { costs: self.costs.into(), closed: self.closed })
    }
}
