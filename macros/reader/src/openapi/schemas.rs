//! The components of the document: a schema for each named type of a twin, and the parts that
//! answers share.

use crate::model::{Contract, Field, Kind, Member, NamedType, Type};
use crate::{STATES, argument_schema, type_schema};
use serde_json::{Map, Value, json};

pub(super) const REQUEST_ID: &str = "X-Request-Id";
pub(super) const RETRY_AFTER: &str = "Retry-After";
pub(super) const LOCATION: &str = "Location";
pub(super) const ALLOW: &str = "Allow";
pub(super) const ETAG: &str = "ETag";

pub(super) struct Components<'a> {
    contract: &'a Contract,
    schemas: Map<String, Value>,
    responses: Map<String, Value>,
}

pub(super) fn reference(kind: &str, name: &str) -> Value {
    json!({"$ref": format!("#/components/{kind}/{name}")})
}

pub(super) fn headers(names: &[&str]) -> Value {
    names.iter().map(|name| ((*name).to_owned(), reference("headers", name))).collect::<Map<_, _>>().into()
}

impl<'a> Components<'a> {
    pub(super) fn new(contract: &'a Contract) -> Self {
        Self { contract, schemas: Map::new(), responses: Map::new() }
    }

    pub(super) fn finish(self, schemes: Map<String, Value>) -> Value {
        let Self { contract, mut schemas, mut responses } = self;
        schemas.sort_keys();
        responses.sort_keys();
        let mut components = json!({
            "securitySchemes": schemes,
            "headers": all_headers(),
            "responses": responses,
            "schemas": schemas,
        });
        let writes = contract.tools().any(|tool| tool.task().is_some() && tool.http.is_some());
        if let Some(read) = contract.read_tool().filter(|read| writes && read.http.is_some()) {
            let parameters = json!({"task_id": "$response.body#/task_id"});
            components["links"] = json!({&read.name: {"operationId": read.name, "parameters": parameters}});
        }
        components
    }

    pub(super) fn response(&mut self, name: &str, make: impl FnOnce(&mut Self) -> Value) -> Value {
        if !self.responses.contains_key(name) {
            let response = make(self);
            self.responses.insert(name.to_owned(), response);
        }
        reference("responses", name)
    }

    pub(super) fn reference(&mut self, ty: &NamedType) -> Value {
        let mut schema = match &ty.kind {
            Kind::Object(fields) => {
                let is_argument = self.contract.is_argument(&ty.name);
                self.object(fields, if is_argument { argument_schema } else { type_schema })
            }
            Kind::Map { values, .. } => {
                let mut schema = type_schema(ty);
                let each = schema["additionalProperties"].take();
                schema["additionalProperties"] = self.reference_types(values, each);
                schema
            }
            _ => type_schema(ty),
        };
        schema["description"] = match &ty.kind {
            Kind::Enum(members) => self.meanings(&ty.doc, members),
            _ => ty.doc.clone(),
        }
        .into();
        self.schema(&ty.name, schema)
    }

    /// Numbers a derived type whose name another one has.
    pub(super) fn schema(&mut self, name: &str, schema: Value) -> Value {
        let numbered = (2..).map(|n| format!("{name}{n}"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        let fits = |name: &String| self.schemas.get(name).is_none_or(|known| *known == schema);
        let name = names.find(fits).unwrap_or_default();
        let reference = reference("schemas", &name);
        self.schemas.insert(name, schema);
        reference
    }

    pub(super) fn object(&mut self, fields: &[Field], make: fn(&NamedType) -> Value) -> Value {
        let whole = Kind::Object(fields.to_vec());
        let mut schema = make(&NamedType { name: String::new(), doc: String::new(), kind: whole });
        for field in fields {
            let property = &mut schema["properties"][&field.name];
            let mut typed = self.reference_types(&field.ty, property.take());
            if field.nullable && typed.get("$ref").is_some() {
                typed = json!({"anyOf": [typed, {"type": "null"}]});
            }
            typed["description"] = field.doc.clone().into();
            *property = typed;
        }
        schema
    }

    pub(super) fn reference_types(&mut self, ty: &Type, mut schema: Value) -> Value {
        match ty {
            Type::Named(named) => self.reference(named),
            Type::List(inner) => {
                let items = schema["items"].take();
                schema["items"] = self.reference_types(inner, items);
                schema
            }
            Type::String | Type::Integer | Type::Boolean | Type::Timestamp | Type::Url | Type::Picture => schema,
        }
    }

    fn meanings(&self, doc: &str, members: &[Member]) -> String {
        let states = members.iter().map(|member| member.name.as_str()).eq(STATES);
        let state = |name: &str| self.contract.states.iter().find(|state| states && state.name == name);
        let lines = members.iter().filter_map(|Member { name, doc }| {
            let meaning = state(name).map_or(doc, |state| &state.meaning);
            (!meaning.is_empty()).then(|| format!("\n- `{name}`: {meaning}"))
        });
        let lines: String = lines.collect();
        if lines.is_empty() { doc.to_owned() } else { format!("{doc}\n{lines}") }
    }
}

fn all_headers() -> Value {
    let header = |text: &str, schema: Value| json!({"description": text, "required": true, "schema": schema});
    json!({
        REQUEST_ID: header("Names the request in the server's log.", json!({"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"})),
        RETRY_AFTER: header("Seconds to wait before a repeat.", json!({"type": "integer", "minimum": 0})),
        LOCATION: header("Where the task is read.", json!({"type": "string", "format": "uri-reference"})),
        ALLOW: header("The methods that the path takes.", json!({"type": "string"})),
        ETAG: header("Names this state of the document.", json!({"type": "string"})),
    })
}
