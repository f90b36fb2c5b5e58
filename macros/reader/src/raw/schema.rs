//! The schemas of the structs that read the files, for editors.

use super::{At, FormerNames, Named, Values};
use serde_json::{Map, Value, json};

pub(crate) trait EditorSchema {
    const OPTIONAL: bool = false;

    fn schema(tables: &mut Map<String, Value>) -> Value;
}

#[derive(Default)]
pub(crate) struct TableKeys {
    properties: Map<String, Value>,
    required: Vec<&'static str>,
}

impl TableKeys {
    pub(crate) fn add<T: EditorSchema>(&mut self, name: &'static str, doc: &[&str], tables: &mut Map<String, Value>) {
        let name = name.trim_start_matches("r#");
        self.properties.insert(name.to_owned(), describe(T::schema(tables), doc));
        if !T::OPTIONAL {
            self.required.push(name);
        }
    }

    pub(crate) fn table(self, doc: &[&str]) -> Value {
        let mut schema = json!({"type": "object", "additionalProperties": false, "properties": self.properties});
        if !self.required.is_empty() {
            schema["required"] = self.required.into();
        }
        describe(schema, doc)
    }

    pub(crate) fn file(self, name: &str, required: &[&str], doc: &[&str], tables: Map<String, Value>) -> Value {
        let schema = json!({"type": "object", "properties": self.properties, "required": required});
        let mut schema = describe(schema, doc);
        schema["title"] = name.into();
        // The version that the crate `toml` reads, for Tombi.
        schema["x-tombi-toml-version"] = "v1.1.0".into();
        schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
        if !tables.is_empty() {
            schema["$defs"] = tables.into();
        }
        schema
    }
}

pub(crate) fn describe(mut schema: Value, doc: &[&str]) -> Value {
    if !doc.is_empty() {
        schema["description"] = doc.iter().map(|line| line.trim_start()).collect::<Vec<_>>().join("\n").into();
    }
    schema
}

pub(crate) fn refer(
    tables: &mut Map<String, Value>,
    name: &str,
    make: impl FnOnce(&mut Map<String, Value>) -> Value,
) -> Value {
    if !tables.contains_key(name) {
        // A table stands before those that it uses.
        tables.insert(name.to_owned(), Value::Null);
        let schema = make(tables);
        tables.insert(name.to_owned(), schema);
    }
    json!({"$ref": format!("#/$defs/{name}")})
}

macro_rules! plain {
    ($($ty:ty: $schema:tt,)+) => {$(
        impl EditorSchema for $ty {
            fn schema(_: &mut Map<String, Value>) -> Value {
                json!($schema)
            }
        }
    )+};
}

plain!(
    bool: {"type": "boolean"},
    i32: {"type": "integer", "format": "int32"},
    f64: {"type": "number"},
    u16: {"type": "integer", "format": "uint16", "minimum": 0, "maximum": 65_535},
    u32: {"type": "integer", "format": "uint32", "minimum": 0},
    String: {"type": "string"},
    Value: {},
    Map<String, Value>: {"type": "object", "additionalProperties": true},
);

impl<T: EditorSchema> EditorSchema for At<T> {
    const OPTIONAL: bool = T::OPTIONAL;
    fn schema(tables: &mut Map<String, Value>) -> Value {
        T::schema(tables)
    }
}

impl<T: EditorSchema> EditorSchema for Option<T> {
    const OPTIONAL: bool = true;
    fn schema(tables: &mut Map<String, Value>) -> Value {
        let mut schema = T::schema(tables);
        match schema.get("type").cloned() {
            Some(ty) => schema["type"] = json!([ty, "null"]),
            None if schema.get("$ref").is_some() => schema = json!({"anyOf": [schema, {"type": "null"}]}),
            None => {}
        }
        schema
    }
}

impl<T: EditorSchema> EditorSchema for Vec<T> {
    fn schema(tables: &mut Map<String, Value>) -> Value {
        json!({"type": "array", "items": T::schema(tables)})
    }
}

impl EditorSchema for Values {
    fn schema(tables: &mut Map<String, Value>) -> Value {
        json!({"anyOf": [Named::<String>::schema(tables), String::schema(tables)]})
    }
}

impl<T: EditorSchema> EditorSchema for Named<T> {
    fn schema(tables: &mut Map<String, Value>) -> Value {
        json!({"type": "object", "additionalProperties": T::schema(tables)})
    }
}

impl EditorSchema for FormerNames {
    fn schema(tables: &mut Map<String, Value>) -> Value {
        let make = |tables: &mut _| {
            let forms = json!({"anyOf": [String::schema(tables), Vec::<String>::schema(tables)]});
            describe(forms, &["The former names of an argument."])
        };
        refer(tables, "FormerNames", make)
    }
}
