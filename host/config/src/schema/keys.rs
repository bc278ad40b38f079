//! The keys of a schema, and files that set one of them.

use serde_json::{Map, Value, json};

/// A name that a file chooses itself, where any will do.
const OWN_NAME: &str = "x";

/// A name that a file may choose in a table.
fn own_name(table: Value) -> String {
    table["propertyNames"]["examples"][0].as_str().unwrap_or(OWN_NAME).to_string()
}

/// A schema of a file.
pub(super) struct FileSchema(Value);

/// A key of a file: names, `*` for one that the file chooses, `[]` for an item of a list.
#[derive(Clone)]
pub(super) struct Key {
    pub(super) steps: Vec<String>,
    /// What the schema says of its values; a reference is not followed.
    pub(super) schema: Value,
}

impl Key {
    /// The key as the reference writes it: `policy.plugins.*.enabled`, `plugins.mcp[].command`.
    pub(super) fn path(&self) -> String {
        shown(&self.steps)
    }

    pub(super) fn description(&self) -> &str {
        self.schema["description"].as_str().unwrap_or_default()
    }
}

fn shown(steps: &[String]) -> String {
    steps.join(".").replace(".[]", "[]")
}

impl FileSchema {
    pub(super) fn parse(text: &str) -> Self {
        Self(serde_json::from_str(text).expect("a schema is JSON"))
    }

    pub(super) fn value(&self) -> &Value {
        &self.0
    }

    /// Every key, in the order of the alphabet.
    pub(super) fn keys(&self) -> Vec<Key> {
        let mut keys = Vec::new();
        self.add_keys(&self.0, &[], &mut keys);
        keys.sort_by(|one, other| one.steps.cmp(&other.steps));
        keys
    }

    /// What a schema says with what it refers to. The schema goes before.
    pub(super) fn resolve(&self, schema: &Value) -> Value {
        let Some(name) = schema["$ref"].as_str().and_then(|name| name.strip_prefix("#/$defs/"))
        else {
            return schema.clone();
        };
        let mut resolved = self.0["$defs"][name].as_object().expect(name).clone();
        resolved.extend(schema.as_object().expect("a schema is an object").clone());
        resolved.into()
    }

    /// The table that a value can be, if it can be one.
    pub(super) fn table(&self, schema: &Value) -> Option<Value> {
        let schema = self.resolve(schema);
        if schema["type"] == "object" {
            return Some(schema);
        }
        let alternatives = schema["anyOf"].as_array()?;
        alternatives.iter().find(|alternative| alternative["type"] == "object").cloned()
    }

    fn add_keys(&self, schema: &Value, steps: &[String], keys: &mut Vec<Key>) {
        let below = |step: &str| [steps, &[step.to_string()]].concat();
        if let Some(table) = self.table(schema) {
            for (name, schema) in table["properties"].as_object().into_iter().flatten() {
                keys.push(Key { steps: below(name), schema: schema.clone() });
                self.add_keys(schema, &below(name), keys);
            }
            // What a file names itself is a key where it is a table.
            let others = &table["additionalProperties"];
            if let Some(of_each) = others.is_object().then(|| self.table(others)).flatten() {
                if of_each["properties"].is_null() {
                    keys.push(Key { steps: below("*"), schema: others.clone() });
                }
                self.add_keys(others, &below("*"), keys);
            }
        }
        let items = &self.resolve(schema)["items"];
        if items.is_object() {
            self.add_keys(items, &below("[]"), keys);
        }
    }

    /// The tables that take no other keys than those of the schema, each with these.
    pub(super) fn closed_tables(&self) -> Vec<(Vec<String>, Vec<String>)> {
        let mut tables = vec![Vec::new()];
        for key in self.keys() {
            tables.extend((1..=key.steps.len()).map(|end| key.steps[..end].to_vec()));
        }
        tables.sort();
        tables.dedup();
        let names = |steps: Vec<String>| {
            let table = self.table(&self.at(&steps)?)?;
            let names = table["properties"].as_object()?.keys().cloned().collect();
            (table["additionalProperties"] == false).then_some((steps, names))
        };
        tables.into_iter().filter_map(names).collect()
    }

    /// What the schema says at some steps.
    fn at(&self, steps: &[String]) -> Option<Value> {
        let mut schema = self.0.clone();
        for step in steps {
            schema = match step.as_str() {
                "[]" => self.resolve(&schema)["items"].clone(),
                "*" => self.table(&schema)?["additionalProperties"].clone(),
                name => self.table(&schema)?["properties"][name].clone(),
            };
        }
        schema.is_object().then_some(schema)
    }

    /// A file that sets a key, with all that it must have beside it.
    pub(super) fn file_with(&self, start: Value, steps: &[String], value: &Value) -> Value {
        let mut file = start;
        let mut place = &mut file;
        for (number, step) in steps.iter().enumerate() {
            let name = match step.as_str() {
                "*" => self.at(&steps[..number]).and_then(|table| self.table(&table)).map(own_name),
                name => Some(name.to_string()),
            };
            place = match name.as_deref().unwrap_or(OWN_NAME) {
                "[]" => {
                    *place = json!([{}]);
                    &mut place[0]
                }
                name => {
                    if !place.is_object() {
                        *place = json!({});
                    }
                    &mut place[name]
                }
            };
        }
        *place = value.clone();
        self.complete(&self.0, &mut file, steps);
        file
    }

    /// Adds what a table must have, along these steps.
    fn complete(&self, schema: &Value, value: &mut Value, steps: &[String]) {
        // The value that is tried stays as it is.
        let Some((step, rest)) = steps.split_first() else { return };
        if step == "[]" {
            return self.complete(&self.resolve(schema)["items"], &mut value[0], rest);
        }
        let Some(table) = self.table(schema) else { return };
        let members = value.as_object_mut().expect("there is a table at each step");
        let required = |schema: &Value| -> Vec<String> {
            let names = schema["required"].as_array().into_iter().flatten();
            names.filter_map(|name| name.as_str().map(str::to_string)).collect()
        };
        let has_all = |members: &Map<String, Value>, names: &[String]| {
            names.iter().all(|name| members.contains_key(name))
        };
        let mut missing = required(&table);
        for choice in [&table["anyOf"], &table["oneOf"]].into_iter().filter_map(Value::as_array) {
            if !choice.iter().any(|schema| has_all(members, &required(schema))) {
                missing.extend(required(&choice[0]));
            }
        }
        for name in missing {
            let sample = || self.sample(&table["properties"][&name]);
            members.entry(&name).or_insert_with(sample);
        }
        let (name, schema) = match step.as_str() {
            "*" => (own_name(table.clone()), &table["additionalProperties"]),
            name => (name.to_string(), &table["properties"][name]),
        };
        self.complete(schema, &mut members[&name], rest);
    }

    fn sample(&self, schema: &Value) -> Value {
        let schema = self.resolve(schema);
        let sample = [&schema["examples"][0], &schema["enum"][0]];
        sample.into_iter().find(|value| !value.is_null()).cloned().unwrap_or(json!({}))
    }

    /// The values of a key that the schema itself names.
    pub(super) fn named_values(&self, key: &Key) -> Vec<Value> {
        let schema = self.resolve(&key.schema);
        let lists = [&schema["examples"], &schema["enum"]].into_iter().filter_map(Value::as_array);
        let default = schema.get("default").cloned();
        lists.flatten().cloned().chain(default).collect()
    }
}
