//! Lowers types and fields.

use super::derived::{self, plain};
use super::fields::FieldCheck;
use super::kinds::kind;
use super::require::{at, require_distinct, require_text, require_wire_name, tools_of};
use crate::model::{Field, Kind, Member, NamedType, Type};
use crate::names;
use crate::names::fill_resource;
use crate::raw::{self, At, Files, KindName, Named, Unread};
use crate::report::Report;
use crate::rules::Rule;
use crate::source::TYPES;
use std::sync::Arc;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldPlace {
    Argument,
    /// Of an object that only arguments have.
    ArgumentPart,
    Result,
}

/// The kinds of types that a field cannot name by themselves.
const KINDS: [&str; 6] = ["text", "number", "enum", "object", "map", "json"];

pub(crate) struct Types {
    pub(super) done: Vec<Arc<NamedType>>,
    /// Already reported. A use of such a type is not another problem.
    broken: Vec<String>,
    /// The declared types that arguments contain.
    sent: Vec<String>,
    /// Those that results and errors contain.
    shown: Vec<String>,
    unread: Unread,
    unread_resources: Unread,
}

impl Types {
    pub(crate) fn lower(files: &Files, framework: Vec<Arc<NamedType>>, report: &mut Report) -> Self {
        let (raw, resources) = (&files.types.r#type, &files.service.resource);
        let [sent, shown] = uses(files);
        let mut types = Self {
            done: of_resources(resources),
            broken: Vec::new(),
            sent,
            shown,
            unread: raw.unread.clone(),
            unread_resources: resources.unread.clone(),
        };
        for name in raw.keys() {
            if !names::is_pascal(name) {
                let help = Some("types are UpperCamelCase".to_owned());
                let message = format!("`{name}` is no usable name", name = **name);
                report.add(Rule::Name, at(TYPES, name.span()), message, help);
            }
            if types.find(name).is_some() {
                let message = format!("`{name}` is derived from a resource", name = **name);
                let help = Some("choose another name for the type".to_owned());
                report.add(Rule::DuplicateName, at(TYPES, name.span()), message, help);
            }
            let is_object = raw.get(name).is_some_and(|ty| *ty.kind == KindName::Object);
            if is_object && types.sent.contains(name) && types.shown.contains(name) {
                let message = format!("`{name}` is of arguments and of results", name = **name);
                let help = "declare another object for one of them: only results say whose a text is";
                report.add(Rule::Field, at(TYPES, name.span()), message, Some(help.to_owned()));
            }
        }
        types.done.extend(framework);
        for name in raw.keys() {
            types.complete(name, raw, &mut Vec::new(), report);
        }
        types
    }

    /// Lowers a type after the types that it contains, and finds cycles. `open` are those that are
    /// being lowered.
    fn complete<'a>(&mut self, name: &str, raw: &'a Named<raw::Type>, open: &mut Vec<&'a str>, report: &mut Report) {
        let Some((key, ty)) = raw.iter().find(|(key, _)| key.as_str() == name) else { return };
        if self.find(name).is_some() || self.broken.iter().any(|broken| broken == name) {
            return;
        }
        if open.contains(&name) {
            let circle = format!("{} -> {name}", open.join(" -> "));
            report.add(Rule::TypeCycle, at(TYPES, key.span()), format!("a type contains itself: {circle}"), None);
            self.broken.push(name.to_owned());
            return;
        }
        open.push(key);
        let parts = ty.fields.iter().flat_map(Named::iter).map(|(_, field)| element(&field.r#type).0);
        let values = ty.values.as_ref().and_then(|values| values.ty());
        for part in parts.chain(ty.include.iter().map(|include| include.as_str())).chain(values) {
            self.complete(part, raw, open, report);
        }
        open.pop();
        require_text(TYPES, &ty.doc, report);
        let has = |names: &[String]| names.iter().any(|known| known == name);
        let is_part = has(&self.sent) && !has(&self.shown);
        let place = if is_part { FieldPlace::ArgumentPart } else { FieldPlace::Result };
        match kind(ty, self, place, report) {
            Some(kind) => self.done.push(derived::make_type(name, &ty.doc, kind)),
            None => self.broken.push(name.to_owned()),
        }
    }

    pub(crate) fn find_named(&self, file: usize, name: &At<String>, report: &mut Report) -> Option<Arc<NamedType>> {
        let found = self.find(name);
        if found.is_none() && !self.is_noted(name) {
            let known = self.done.iter().map(|ty| ty.name.as_str());
            report.unknown(Rule::UnknownType, at(file, name.span()), "type", name, known);
        }
        found
    }

    pub(crate) fn fields(
        &self,
        file: usize,
        raw: Option<&Named<raw::Field>>,
        place: FieldPlace,
        report: &mut Report,
    ) -> Vec<Field> {
        require_distinct(file, raw.into_iter().flat_map(Named::keys), report);
        let raw = raw.into_iter().flat_map(Named::iter);
        raw.filter_map(|(name, field)| self.field(file, name, field, place, report)).collect()
    }

    fn is_noted(&self, name: &str) -> bool {
        let resource = name.strip_suffix("Capability").or_else(|| name.strip_suffix("Capabilities"));
        self.broken.iter().any(|broken| broken == name)
            || self.unread.may_be(name)
            || resource.is_some_and(|resource| self.unread_resources.may_be(&names::snake(resource)))
    }

    fn find(&self, name: &str) -> Option<Arc<NamedType>> {
        self.done.iter().find(|ty| ty.name == name).cloned()
    }

    fn field(
        &self,
        file: usize,
        name: &At<String>,
        raw: &raw::Field,
        place: FieldPlace,
        report: &mut Report,
    ) -> Option<Field> {
        let raw::Field { r#type, doc, optional, nullable, secret, untrusted, ours, told, max_items, default, formerly } =
            raw;
        require_wire_name(file, name, report);
        require_text(file, doc, report);
        let ty = self.ty(file, r#type, report)?;
        let argument = place != FieldPlace::Result;
        if argument && !self.is_argument(&ty) {
            let help = "an argument is any type but a `url`, an object of the framework and a list of lists";
            let message = "this type cannot be an argument's";
            report.add(Rule::Field, at(file, r#type.span()), message, Some(help.to_owned()));
        }
        FieldCheck { file, name, raw, ty: &ty, place, report }.check();
        let is = |flag: &Option<At<bool>>| flag.as_ref().is_some_and(|flag| **flag);
        Some(Field {
            name: name.to_string(),
            doc: doc.to_string(),
            ty,
            // The author of a `nullable` argument meant an optional one.
            optional: is(optional) || (argument && is(nullable)),
            nullable: is(nullable),
            secret: is(secret),
            untrusted: is(untrusted),
            ours: is(ours),
            told: is(told),
            derived: false,
            max_items: max_items.as_ref().map(|max| **max as usize),
            default: default.as_ref().map(|value| (**value).clone()),
            formerly: formerly.as_ref().map(|names| names.names().to_vec()).unwrap_or_default(),
        })
    }

    fn is_argument(&self, ty: &Type) -> bool {
        match ty {
            Type::String | Type::Integer | Type::Boolean | Type::Timestamp => true,
            Type::Url | Type::Picture => false,
            Type::Named(named) => !matches!(named.kind, Kind::Object(_)) || self.sent.contains(&named.name),
            Type::List(inner) => !matches!(**inner, Type::List(_)) && self.is_argument(inner),
        }
    }

    pub(super) fn ty(&self, file: usize, name: &At<String>, report: &mut Report) -> Option<Type> {
        let (inner, list) = element(name);
        let ty = match inner {
            "string" => Type::String,
            "integer" => Type::Integer,
            "boolean" => Type::Boolean,
            "timestamp" => Type::Timestamp,
            "url" => Type::Url,
            "picture" => Type::Picture,
            inner => match self.find(inner) {
                Some(found) => Type::Named(found),
                None if self.is_noted(inner) => return None,
                None if KINDS.contains(&inner) => {
                    let message = format!("`{inner}` is a kind, and needs its limits");
                    let help = Some(format!("declare `[type.NAME]` with `kind = \"{inner}\"` in types.toml"));
                    report.add(Rule::UnknownType, at(file, name.span()), message, help);
                    return None;
                }
                None => {
                    let basic = ["string", "integer", "boolean", "timestamp", "url", "picture"];
                    let known = self.done.iter().map(|ty| ty.name.as_str()).chain(basic);
                    report.unknown(Rule::UnknownType, at(file, name.span()), "type", inner, known);
                    return None;
                }
            },
        };
        Some(if list { Type::List(Box::new(ty)) } else { ty })
    }
}

fn element(name: &str) -> (&str, bool) {
    name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).map_or((name, false), |inner| (inner, true))
}

/// Returns the declared types that arguments contain, and those that results and errors contain.
fn uses(files: &Files) -> [Vec<String>; 2] {
    let named = |fields: &Option<Named<raw::Field>>| -> Vec<String> {
        fields.iter().flat_map(Named::iter).map(|(_, field)| element(&field.r#type).0.to_owned()).collect()
    };
    let reach = |mut open: Vec<String>| {
        let mut reached = Vec::new();
        while let Some(name) = open.pop() {
            if let (Some(ty), false) = (files.types.r#type.get(&name), reached.contains(&name)) {
                open.extend(named(&ty.fields));
                open.extend(ty.include.iter().map(|include| include.to_string()));
                open.extend(ty.values.iter().filter_map(|values| values.ty()).map(|ty| element(ty).0.to_owned()));
                reached.push(name);
            }
        }
        reached
    };
    let results = tools_of(files).filter_map(|(_, tool)| tool.result.as_ref()).map(|name| String::clone(name));
    let told = files.errors.error.iter().flat_map(|(_, error)| named(&error.fields));
    let sent = tools_of(files).flat_map(|(_, tool)| named(&tool.args));
    [reach(sent.collect()), reach(results.chain(told).collect())]
}

/// Returns true for lines of text, and for members that no contract names.
pub(super) fn is_free(ty: &Type) -> bool {
    let is = |named: &Arc<NamedType>| matches!(named.kind, Kind::Text(_) | Kind::Map { .. } | Kind::Json(_));
    ty.element().as_named().is_some_and(is)
}

pub(super) fn any_text(ty: &Type) -> bool {
    match ty.element() {
        Type::String => true,
        Type::Named(named) if matches!(&named.kind, Kind::String(rule) if rule.charset.is_empty()) => true,
        _ => is_free(ty),
    }
}

fn of_resources(resources: &Named<raw::Resource>) -> Vec<Arc<NamedType>> {
    let both = |(name, resource): (&At<String>, &raw::Resource)| {
        let capabilities = resource.capability.iter().flat_map(Named::iter);
        let members: Vec<Member> =
            capabilities.map(|(name, doc)| Member { name: name.to_string(), doc: doc.to_string() }).collect();
        let flags = members.iter().map(|member| plain(&member.name, &member.doc, Type::Boolean)).collect();
        let (prefix, name) = (names::pascal(name), &**name);
        let [operation, offer] = ["An operation that a {resource} may offer.", "What a {resource} offers at present."]
            .map(|text| fill_resource(text, name));
        [
            derived::make_type(&format!("{prefix}Capability"), &operation, Kind::Enum(members)),
            derived::make_type(&format!("{prefix}Capabilities"), &offer, Kind::Object(flags)),
        ]
    };
    resources.iter().flat_map(both).collect()
}

pub(super) fn members(file: usize, raw: Option<&Named<At<String>>>, report: &mut Report) -> Vec<Member> {
    let Some(raw) = raw else { return Vec::new() };
    require_distinct(file, raw.keys(), report);
    let lower = |(name, doc): (&At<String>, &At<String>)| {
        require_wire_name(file, name, report);
        require_text(file, doc, report);
        Member { name: name.to_string(), doc: doc.to_string() }
    };
    raw.iter().map(lower).collect()
}
