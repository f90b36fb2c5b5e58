//! The schemas that editors use to complete and check the files of a contract.

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
