//! Lowers types and fields.

use super::derived::{self, plain};
use super::require::{at, require_distinct, require_text, require_wire_name, tools_of};
use crate::model::{Field, Kind, Member, NamedType, StringSpec, Type};
use crate::names::fill_resource;
use crate::raw::{self, At, Files, KindName, Named, Unread};
use crate::report::Report;
use crate::rules::Rule;
use crate::source::TYPES;
use crate::{fit, names};
use std::ops::Range;
use std::sync::Arc;
use toolwarrant_common::MAX_INTEGER;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldPlace {
    Argument,
    /// Of an object that only arguments have, which is a mistake itself.
    ArgumentPart,
    Result,
}

pub(crate) struct Types {
    pub(super) done: Vec<Arc<NamedType>>,
    /// Already reported. A use of such a type is not another problem.
    broken: Vec<String>,
    of_arguments: Vec<String>,
    unread: Unread,
    unread_resources: Unread,
}

impl Types {
    pub(crate) fn lower(files: &Files, framework: Vec<Arc<NamedType>>, report: &mut Report) -> Self {
        let (raw, resources) = (&files.types.r#type, &files.service.resource);
        let mut types = Self {
            done: of_resources(resources),
            broken: Vec::new(),
            of_arguments: of_arguments_alone(files),
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
        for part in parts.chain(ty.include.iter().map(|include| include.as_str())) {
            self.complete(part, raw, open, report);
        }
        open.pop();
        require_text(TYPES, &ty.doc, report);
        let is_part = self.of_arguments.iter().any(|known| known == name);
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
        raw::Field { r#type, doc, optional, nullable, secret, untrusted, ours, told, default, formerly }: &raw::Field,
        place: FieldPlace,
        report: &mut Report,
    ) -> Option<Field> {
        require_wire_name(file, name, report);
        require_text(file, doc, report);
        let ty = self.ty(file, r#type, report)?;
        let is = |flag: &Option<At<bool>>| flag.as_ref().is_some_and(|flag| **flag);
        let argument = place == FieldPlace::Argument;
        let text = matches!(ty.element(), Type::String);
        let misplaced = [
            (is(optional) && !argument, optional, "`optional` is for arguments; a result's field may be `nullable`"),
            (is(nullable) && argument, nullable, "`nullable` is for results; an argument may be `optional`"),
            (is(untrusted) && (argument || !text), untrusted, "`untrusted` is for results of type `string`"),
            (is(ours) && (argument || !text), ours, "`ours` is for results of type `string`"),
            (is(told) && argument, told, "`told` is for results; clients are told the doc of every argument"),
            (
                is(secret) && !is_text(ty.element()) && !matches!(ty, Type::Url),
                secret,
                "`secret` is for texts, which can be wiped: a string, a list of strings, or a url",
            ),
            (is(ours) && is(untrusted), ours, "a text is `ours` or `untrusted`"),
        ];
        for (_, flag, message) in misplaced.into_iter().filter(|(wrong, ..)| *wrong) {
            report.add(Rule::Field, at(file, flag.as_ref().map_or(name.span(), At::span)), message, None);
        }
        if let (Some(formerly), false) = (formerly, argument) {
            report.add(Rule::Field, at(file, formerly.span()), "`formerly` is for arguments", None);
        }
        if argument && !is_argument(&ty) {
            let help = Some("arguments are strings, integers, booleans, enums and lists of these".to_owned());
            report.add(Rule::Field, at(file, r#type.span()), "this type cannot be an argument's", help);
        }
        if place == FieldPlace::Result && any_text(&ty) && ![secret, untrusted, ours].into_iter().any(is) {
            let message = format!("`{name}` does not say whose text it is", name = **name);
            let help = match text {
                true => {
                    "add `untrusted = true` for text from outside, which is cleaned and capped, `secret = true` for a secret, or \
                     `ours = true` for the service's own words; an address is a `url`"
                }
                false => "give its type a `charset`, or make the field a `string` and say it there",
            };
            report.add(Rule::UnmarkedText, at(file, r#type.span()), message, Some(help.to_owned()));
        }
        if is(nullable) && !argument && !doc.contains("null") {
            let help = Some("say it with the word `null`, for whoever reads the result".to_owned());
            report.add(Rule::UnexplainedNull, at(file, doc.span()), "the text does not say what null means", help);
        }
        if let Some(default) = default {
            if !is(optional) {
                report.add(Rule::Field, at(file, default.span()), "only an `optional` argument has a default", None);
            } else if is(secret) {
                report.add(Rule::Field, at(file, default.span()), "a default is no secret: the schema shows it", None);
            } else if let Err(why) = fit::fits(&ty, default) {
                report.add(Rule::Field, at(file, default.span()), format!("the default does not fit: {why}"), None);
            }
        }
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
            default: default.as_ref().map(|value| (**value).clone()),
            formerly: formerly.as_ref().map(|names| names.names().to_vec()).unwrap_or_default(),
        })
    }

    fn ty(&self, file: usize, name: &At<String>, report: &mut Report) -> Option<Type> {
        let (inner, list) = element(name);
        let ty = match inner {
            "string" => Type::String,
            "integer" => Type::Integer,
            "boolean" => Type::Boolean,
            "timestamp" => Type::Timestamp,
            "url" => Type::Url,
            inner => match self.find(inner) {
                Some(found) => Type::Named(found),
                None if self.is_noted(inner) => return None,
                None => {
                    let basic = ["string", "integer", "boolean", "timestamp", "url"];
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

/// Returns the types that arguments have and no result or error has, with all that they contain.
fn of_arguments_alone(files: &Files) -> Vec<String> {
    let named = |fields: &Option<Named<raw::Field>>| -> Vec<String> {
        fields.iter().flat_map(Named::iter).map(|(_, field)| element(&field.r#type).0.to_owned()).collect()
    };
    let reach = |mut open: Vec<String>| {
        let mut reached = Vec::new();
        while let Some(name) = open.pop() {
            if !reached.contains(&name) {
                open.extend(files.types.r#type.get(&name).iter().flat_map(|ty| named(&ty.fields)));
                reached.push(name);
            }
        }
        reached
    };
    let results = tools_of(files).filter_map(|(_, tool)| tool.result.as_ref()).map(|name| String::clone(name));
    let told = files.errors.error.iter().flat_map(|(_, error)| named(&error.fields));
    let shown = reach(results.chain(told).collect());
    let mut sent = reach(tools_of(files).flat_map(|(_, tool)| named(&tool.args)).collect());
    sent.retain(|name| !shown.contains(name));
    sent
}

fn any_text(ty: &Type) -> bool {
    match ty.element() {
        Type::String => true,
        Type::Named(named) => matches!(&named.kind, Kind::String(rule) if rule.charset.is_empty()),
        _ => false,
    }
}

fn is_text(ty: &Type) -> bool {
    match ty {
        Type::String => true,
        Type::Named(named) => matches!(named.kind, Kind::String(_)),
        _ => false,
    }
}

fn is_argument(ty: &Type) -> bool {
    match ty {
        Type::String | Type::Integer | Type::Boolean => true,
        Type::Timestamp | Type::Url => false,
        Type::Named(named) => !matches!(named.kind, Kind::Object(_)),
        Type::List(inner) => !matches!(**inner, Type::List(_)) && is_argument(inner),
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

fn kind(raw: &raw::Type, types: &Types, place: FieldPlace, report: &mut Report) -> Option<Kind> {
    let raw::Type { kind, doc: _, min_length, max_length, prefix, charset, min, max, values, include, fields } = raw;
    let of = |wanted, key, span: Option<Range<usize>>| (**kind != wanted).then_some((wanted, key, span?));
    let misplaced = [
        of(KindName::String, "min_length", min_length.as_ref().map(At::span)),
        of(KindName::String, "max_length", max_length.as_ref().map(At::span)),
        of(KindName::String, "prefix", prefix.as_ref().map(At::span)),
        of(KindName::String, "charset", charset.as_ref().map(At::span)),
        of(KindName::Integer, "min", min.as_ref().map(At::span)),
        of(KindName::Integer, "max", max.as_ref().map(At::span)),
        of(KindName::Enum, "values", values.as_ref().map(|_| kind.span())),
        of(KindName::Object, "include", include.as_ref().map(At::span)),
        of(KindName::Object, "fields", fields.as_ref().map(|_| kind.span())),
    ];
    let mut whole = true;
    let mut wrong = |span, message: String| {
        report.add(Rule::Bounds, at(TYPES, span), message, None);
        whole = false;
    };
    for (owner, key, span) in misplaced.into_iter().flatten() {
        wrong(span, format!("`{key}` belongs to the kind `{}`", format!("{owner:?}").to_lowercase()));
    }
    let lowered = match **kind {
        KindName::String => Kind::String(string(raw, &mut wrong)),
        KindName::Integer => {
            let (Some(min), Some(max)) = (min, max) else {
                wrong(kind.span(), "an integer needs `min` and `max`".to_owned());
                return None;
            };
            if **min > **max {
                wrong(max.span(), "`max` is smaller than `min`".to_owned());
            }
            for (key, bound) in [("min", min), ("max", max)] {
                if !(-MAX_INTEGER..=MAX_INTEGER).contains(&**bound) {
                    wrong(bound.span(), format!("`{key}` is beyond 2^53 - 1, which JSON readers round"));
                }
            }
            Kind::Integer { min: **min, max: **max }
        }
        KindName::Enum => {
            let before = report.count();
            let members = members(TYPES, values.as_ref(), report);
            if members.is_empty() {
                let help = Some("add `values.NAME = \"what it means\"`".to_owned());
                report.add(Rule::Bounds, at(TYPES, kind.span()), "an enum needs `values`", help);
            }
            whole &= report.count() == before;
            Kind::Enum(members)
        }
        KindName::Object => Kind::Object(object(include.as_ref(), fields.as_ref(), (types, place), report)?),
    };
    whole.then_some(lowered)
}

fn string(raw: &raw::Type, mut wrong: impl FnMut(Range<usize>, String)) -> StringSpec {
    let raw::Type { kind, min_length, max_length, prefix, charset, .. } = raw;
    let rule = StringSpec {
        min: min_length.as_ref().map_or(0, |min| **min as usize),
        max: max_length.as_ref().map_or(0, |max| **max as usize),
        prefix: prefix.as_ref().map(|prefix| prefix.to_string()).unwrap_or_default(),
        charset: charset.as_ref().map(|set| ranges(set)).unwrap_or_default(),
    };
    if rule.max == 0 || rule.max < rule.min || rule.max < rule.prefix.len() {
        wrong(kind.span(), "a string needs a `max_length` that leaves something to choose".to_owned());
    }
    // Providers refuse a list whose patterns have control characters.
    let is_printable = |c| matches!(c, ' '..='~');
    if let Some(charset) = charset.as_ref().filter(|set| !set.chars().all(is_printable) || rule.charset.is_empty()) {
        wrong(charset.span(), "a charset is made of printable ASCII characters and ranges such as `a-z`".to_owned());
    }
    let is_plain = |prefix: &str| prefix.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
    if let Some(prefix) = prefix.as_ref().filter(|prefix| !is_plain(prefix)) {
        wrong(prefix.span(), "a prefix is made of ASCII letters, digits, `_` and `-`".to_owned());
    }
    rule
}

fn object(
    include: Option<&At<String>>,
    fields: Option<&Named<raw::Field>>,
    (types, place): (&Types, FieldPlace),
    report: &mut Report,
) -> Option<Vec<Field>> {
    let (mut all, mut whole) = (Vec::new(), true);
    if let Some(include) = include {
        match types.find_named(TYPES, include, report).as_deref() {
            Some(NamedType { kind: Kind::Object(fields), .. }) => all.extend(fields.iter().cloned()),
            Some(_) => report.add(Rule::Bounds, at(TYPES, include.span()), "only an object can be included", None),
            None => whole = false,
        }
    }
    for (name, _) in fields.iter().flat_map(|fields| fields.iter()) {
        if all.iter().any(|field| field.name == **name) {
            let message = format!("`{name}` is included already", name = **name);
            report.add(Rule::DuplicateName, at(TYPES, name.span()), message, None);
        }
    }
    let own = types.fields(TYPES, fields, place, report);
    whole &= own.len() == fields.map_or(0, |fields| fields.iter().count());
    all.extend(own);
    whole.then_some(all)
}

/// Splits `a-z0-9-`. A `-` at either end stands for itself.
fn ranges(charset: &str) -> Vec<(char, char)> {
    let chars: Vec<char> = charset.chars().collect();
    let mut ranges = Vec::new();
    let mut n = 0;
    while n < chars.len() {
        let last = if n + 2 < chars.len() && chars[n + 1] == '-' { n + 2 } else { n };
        if chars[last] < chars[n] {
            return Vec::new();
        }
        ranges.push((chars[n], chars[last]));
        n = last + 1;
    }
    ranges
}
