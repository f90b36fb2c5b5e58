//! The schemas that editors use to complete and check the files of a contract.
//!
//! The committed schemas know the framework alone. A contract adds its own names as examples, which
//! editors complete.

use crate::model::{Contract, Kind, NamedType};
use crate::rules::{REVISIONS, ROLES, STATES};
use serde_json::{Value, json};

/// The committed schemas, each with the name of the file that it describes and its text.
pub(crate) const WRITTEN: [(&str, &str); 5] = [
    ("service", include_str!("../editor/service.schema.json")),
    ("errors", include_str!("../editor/errors.schema.json")),
    ("types", include_str!("../editor/types.schema.json")),
    ("reserved", include_str!("../editor/reserved.schema.json")),
    ("tools", include_str!("../editor/tools.schema.json")),
];

#[cfg(feature = "editor")]
pub use made::editor_schemas;

/// The types of fields that have no name in a contract.
const PLAIN: [&str; 5] = ["string", "integer", "boolean", "timestamp", "url"];

/// Adds the names of a contract to a schema, as the examples of each key that takes one.
#[must_use]
pub fn add_names(schema: &str, contract: &Contract) -> String {
    let mut schema: Value = serde_json::from_str(schema).unwrap_or_default();
    for (keys, names) in names(contract) {
        for (table, key) in keys {
            let place = format!("/$defs/{table}/properties/{key}");
            let items = format!("{place}/items");
            let place = if schema.pointer(&items).is_some() { items } else { place };
            if let Some(Value::Object(key)) = schema.pointer_mut(&place) {
                key.insert("examples".to_owned(), json!(names));
            }
        }
    }
    format!("{schema:#}\n")
}

/// The keys of tables that take a name, each with its table.
type Keys = &'static [(&'static str, &'static str)];

/// Returns the names that a contract has, with the keys that take them.
fn names(contract: &Contract) -> [(Keys, Vec<&str>); 12] {
    let Contract { permissions, resources, probes, errors, types, domains, .. } = contract;
    let types = |such: fn(&NamedType) -> bool| {
        let types = types.iter().filter(move |ty| such(ty));
        types.map(|ty| ty.name.as_str())
    };
    let mut capabilities: Vec<_> = resources.iter().flat_map(|resource| &resource.capabilities).collect();
    capabilities.sort_by_key(|capability| &capability.name);
    capabilities.dedup_by_key(|capability| &capability.name);
    [
        (&[("Service", "tools")], domains.iter().map(|domain| domain.name.as_str()).collect()),
        (&[("Protocol", "served")], REVISIONS.into()),
        (&[("Permission", "implies"), ("Tool", "permission")], permissions.iter().map(|it| it.name.as_str()).collect()),
        (&[("Resource", "id")], types(|ty| matches!(ty.kind, Kind::String(_))).collect()),
        (&[("Error", "role")], ROLES.into()),
        (&[("Tool", "errors")], errors.iter().map(|error| error.code.as_str()).collect()),
        (&[("Tool", "result"), ("Type", "include")], types(|ty| matches!(ty.kind, Kind::Object(_))).collect()),
        (&[("Field", "type")], PLAIN.into_iter().chain(types(|_| true)).collect()),
        (&[("Target", "resource")], resources.iter().map(|resource| resource.name.as_str()).collect()),
        (&[("Target", "requires")], capabilities.into_iter().map(|capability| capability.name.as_str()).collect()),
        (&[("Task", "probe"), ("Terms", "probe")], probes.iter().map(|probe| probe.name.as_str()).collect()),
        (&[("Task", "usually_ends")], STATES.into()),
    ]
}

#[cfg(feature = "editor")]
mod made {
    use crate::raw::{At, ErrorsFile, Named, ReservedFile, ServiceFile, ToolsFile, TypesFile};
    use schemars::{JsonSchema, Schema, SchemaGenerator, schema_for};
    use std::borrow::Cow;

    /// Makes the schemas from the structs that read the files. Returns each with the name of the
    /// file that it describes and its text.
    #[must_use]
    pub fn editor_schemas() -> [(&'static str, String); 5] {
        let schemas = [
            ("service", schema_for!(ServiceFile)),
            ("errors", schema_for!(ErrorsFile)),
            ("types", schema_for!(TypesFile)),
            ("reserved", schema_for!(ReservedFile)),
            ("tools", schema_for!(ToolsFile)),
        ];
        schemas.map(|(name, mut schema)| {
            let required: &[&str] = match name {
                "service" => &["service"],
                "types" => &["type"],
                "tools" => &["tool"],
                _ => &[],
            };
            schema.insert("required".to_owned(), required.into());
            (name, format!("{:#}\n", schema.to_value()))
        })
    }

    impl<T: JsonSchema> JsonSchema for At<T> {
        fn schema_name() -> Cow<'static, str> {
            T::schema_name()
        }
        fn json_schema(generator: &mut SchemaGenerator) -> Schema {
            T::json_schema(generator)
        }
        fn inline_schema() -> bool {
            T::inline_schema()
        }
    }

    impl<T: JsonSchema> JsonSchema for Named<T> {
        fn schema_name() -> Cow<'static, str> {
            format!("Named{}", T::schema_name()).into()
        }
        fn json_schema(generator: &mut SchemaGenerator) -> Schema {
            <std::collections::BTreeMap<String, T>>::json_schema(generator)
        }
        fn inline_schema() -> bool {
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn each_key_that_takes_a_name_has_the_names_of_the_contract_as_examples() {
        let shop = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/services/print_shop/spec");
        let contract = crate::load(&shop).unwrap();
        let schemas: Vec<Value> =
            WRITTEN.iter().map(|(_, text)| serde_json::from_str(&add_names(text, &contract)).unwrap()).collect();
        let examples = |table: &str, key: &str| {
            let place = format!("/$defs/{table}/properties/{key}");
            let places = [format!("{place}/items/examples"), format!("{place}/examples")];
            schemas.iter().find_map(|schema| places.iter().find_map(|place| schema.pointer(place))).cloned()
        };
        for (keys, names) in names(&contract) {
            keys.iter().for_each(|(table, key)| assert_eq!(examples(table, key), Some(json!(names)), "{table}.{key}"));
        }
        assert_eq!(examples("Tool", "permission"), Some(json!(["look", "print", "service"])));
        assert_eq!(examples("Target", "requires"), Some(json!(["paper", "refill", "rollers"])));
        assert_eq!(examples("Task", "probe"), Some(json!(["page_counter"])));
        let has = |examples: Option<Value>, name| examples.is_some_and(|names| names.to_string().contains(name));
        assert!(has(examples("Tool", "errors"), "\"out_of_ink\"") && has(examples("Field", "type"), "\"Copies\""));
    }
}
