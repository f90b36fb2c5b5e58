//! The former names of an argument: one, or a list.

use super::schema::{EditorSchema, describe, refer};
use serde_json::{Map, Value, json};

#[derive(Debug, Clone, serde::Deserialize)]
#[serde(untagged, expecting = "expected a former name, or a list of former names")]
pub(crate) enum FormerNames {
    One(String),
    Several(Vec<String>),
}

impl FormerNames {
    pub(crate) fn names(&self) -> &[String] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::Several(names) => names,
        }
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
