//! The schemas with which editors complete and check the files of a contract: those of the structs
//! that read the files, with the contract's own names as examples.

use crate::model::{Contract, Kind, NamedType};
use crate::raw::{ErrorsFile, ReservedFile, ServiceFile, ToolsFile, TypesFile};
use crate::rules::{REVISIONS, ROLES, STATES};
use serde_json::{Value, json};

pub(crate) fn schemas(contract: &Contract) -> [(&'static str, Value); 5] {
    let schemas = [
        ("service", ServiceFile::schema()),
        ("errors", ErrorsFile::schema()),
        ("types", TypesFile::schema()),
        ("reserved", ReservedFile::schema()),
        ("tools", ToolsFile::schema()),
    ];
    schemas.map(|(name, schema)| (name, add_names(schema, contract)))
}

const PLAIN: [&str; 6] = ["string", "integer", "boolean", "timestamp", "url", "picture"];

fn add_names(mut schema: Value, contract: &Contract) -> Value {
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
    schema
}

type Keys = &'static [(&'static str, &'static str)];

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
