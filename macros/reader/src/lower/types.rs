//! Lowers types with their limits, and fields.

use super::derived::{self, count_of_altered, plain};
pub(crate) use super::fields::FieldPlace;
use super::fields::{FieldCheck, any_text, is_free};
use super::require::{at, require_distinct, require_text, require_wire_name, tools_of};
use crate::model::{Field, Kind, Member, NamedType, StringSpec, Type};
use crate::names;
use crate::names::fill_resource;
use crate::raw::{self, At, Files, KindName, Named, Unread, Values};
use crate::report::Report;
use crate::rules::Rule;
use crate::source::TYPES;
use std::ops::Range;
use std::sync::Arc;
use toolwarrant_common::MAX_INTEGER;

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
            let help = "leave one of these out; a type of `kind = \"json\"` can nest".to_owned();
            report.add(Rule::TypeCycle, at(TYPES, key.span()), format!("a type contains itself: {circle}"), Some(help));
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
    let raw::Type { kind, doc: _, max_length, min, max, values, max_items, max_bytes, include, fields, .. } = raw;
    let before = report.count();
    check_owners(raw, report);
    let mut wrong = |span, message: &str| report.add(Rule::Bounds, at(TYPES, span), message, None);
    let size = |limit: &Option<At<u32>>| limit.as_ref().map_or(0, |limit| **limit as usize);
    let lowered = match **kind {
        KindName::String => Kind::String(string(raw, wrong)),
        KindName::Text => {
            if size(max_length) == 0 {
                wrong(kind.span(), "a text needs a `max_length`");
            }
            Kind::Text(size(max_length))
        }
        KindName::Integer => {
            let (Some(min), Some(max)) = (min, max) else {
                wrong(kind.span(), "an integer needs `min` and `max`");
                return None;
            };
            check_order(Some(min), Some(max), &mut wrong);
            for (key, bound) in [("min", min), ("max", max)] {
                #[expect(clippy::cast_precision_loss, reason = "2^53 - 1 has an exact float")]
                if bound.abs() > MAX_INTEGER as f64 {
                    wrong(bound.span(), &format!("`{key}` is beyond 2^53 - 1, which JSON readers round"));
                } else if bound.fract() != 0.0 {
                    wrong(bound.span(), &format!("`{key}` is no integer"));
                }
            }
            #[expect(clippy::cast_possible_truncation, reason = "it is an integer within the limits")]
            let [min, max] = [**min as i64, **max as i64];
            Kind::Integer { min, max }
        }
        KindName::Number => {
            check_order(min.as_ref(), max.as_ref(), &mut wrong);
            for bound in [min, max].into_iter().flatten().filter(|bound| !bound.is_finite()) {
                wrong(bound.span(), "a bound is a finite number; without one, leave it out");
            }
            let [min, max] = [min, max].map(|bound| bound.as_ref().map(|bound| **bound));
            Kind::Number { min, max }
        }
        KindName::Enum => {
            let values = values.as_ref();
            if let Some(ty) = values.filter(|values| values.ty().is_some()) {
                wrong(ty.span(), "the `values` of an enum are names, each with its meaning");
            }
            let members = members(TYPES, values.and_then(|values| values.members()), report);
            if members.is_empty() {
                let help = Some("add `values.NAME = \"what it means\"`".to_owned());
                report.add(Rule::Bounds, at(TYPES, kind.span()), "an enum needs `values`", help);
            }
            Kind::Enum(members)
        }
        KindName::Object => Kind::Object(object(include.as_ref(), fields.as_ref(), (types, place), report)?),
        KindName::Map => {
            if size(max_items) == 0 {
                wrong(kind.span(), "a map needs `max_items`");
            }
            Kind::Map { values: map_values(kind, values.as_ref(), (types, place), report)?, max_items: size(max_items) }
        }
        KindName::Json => {
            if size(max_bytes) < "{}".len() {
                wrong(kind.span(), "free JSON needs `max_bytes`");
            }
            Kind::Json(size(max_bytes))
        }
    };
    (report.count() == before || matches!(lowered, Kind::Object(_))).then_some(lowered)
}

fn check_owners(raw: &raw::Type, report: &mut Report) {
    use KindName::{Enum, Integer, Json, Map, Number, Object, String, Text};
    let raw::Type { kind, doc: _, min_length, max_length, prefix, charset, .. } = raw;
    let raw::Type { min, max, values, max_items, max_bytes, include, fields, .. } = raw;
    let of = |owners: &'static [KindName], key, span: Option<Range<usize>>| {
        (!owners.contains(kind)).then_some((owners, key, span?))
    };
    let keys = [
        of(&[String], "min_length", min_length.as_ref().map(At::span)),
        of(&[String, Text], "max_length", max_length.as_ref().map(At::span)),
        of(&[String], "prefix", prefix.as_ref().map(At::span)),
        of(&[String], "charset", charset.as_ref().map(At::span)),
        of(&[Integer, Number], "min", min.as_ref().map(At::span)),
        of(&[Integer, Number], "max", max.as_ref().map(At::span)),
        of(&[Enum, Map], "values", values.as_ref().map(|_| kind.span())),
        of(&[Map], "max_items", max_items.as_ref().map(At::span)),
        of(&[Json], "max_bytes", max_bytes.as_ref().map(At::span)),
        of(&[Object], "include", include.as_ref().map(At::span)),
        of(&[Object], "fields", fields.as_ref().map(|_| kind.span())),
    ];
    for (owners, key, span) in keys.into_iter().flatten() {
        let names: Vec<_> = owners.iter().map(|owner| format!("`{}`", format!("{owner:?}").to_lowercase())).collect();
        let kinds = if names.len() == 1 { "kind" } else { "kinds" };
        let message = format!("`{key}` belongs to the {kinds} {}", names.join(" and "));
        report.add(Rule::Bounds, at(TYPES, span), message, None);
    }
}

fn check_order(min: Option<&At<f64>>, max: Option<&At<f64>>, wrong: &mut impl FnMut(Range<usize>, &str)) {
    if let (Some(min), Some(max)) = (min, max)
        && **min > **max
    {
        wrong(max.span(), "`max` is smaller than `min`");
    }
}

fn map_values(
    kind: &At<KindName>,
    values: Option<&At<Values>>,
    (types, place): (&Types, FieldPlace),
    report: &mut Report,
) -> Option<Type> {
    let Some((written, name)) = values.and_then(|values| Some((values, values.ty()?))) else {
        let help = Some("add `values = \"TYPE\"`".to_owned());
        report.add(Rule::Bounds, at(TYPES, kind.span()), "a map needs the type of its `values`", help);
        return None;
    };
    let ty = types.ty(TYPES, &written.with(name.to_owned()), report)?;
    if matches!(ty, Type::List(_) | Type::Url | Type::Picture) {
        let help = Some("make an object with such a field, and use it as `values`".to_owned());
        report.add(
            Rule::Bounds,
            at(TYPES, written.span()),
            "the values of a map are no lists, addresses or pictures",
            help,
        );
    }
    if place == FieldPlace::Result && ty.as_named().is_some() && any_text(&ty) && !is_free(&ty) {
        let help = Some("give it a `charset`, or use `string` or a text".to_owned());
        report.add(
            Rule::UnmarkedText,
            at(TYPES, written.span()),
            "these texts can have any character, and nothing cleans them",
            help,
        );
    }
    Some(ty)
}

fn string(raw: &raw::Type, mut wrong: impl FnMut(Range<usize>, &str)) -> StringSpec {
    let raw::Type { kind, min_length, max_length, prefix, charset, .. } = raw;
    let rule = StringSpec {
        min: min_length.as_ref().map_or(0, |min| **min as usize),
        max: max_length.as_ref().map_or(0, |max| **max as usize),
        prefix: prefix.as_ref().map(|prefix| prefix.to_string()).unwrap_or_default(),
        charset: charset.as_ref().map(|set| ranges(set)).unwrap_or_default(),
    };
    if rule.max == 0 || rule.max < rule.min || rule.max < rule.prefix.len() {
        wrong(kind.span(), "a string needs a `max_length` that leaves something to choose");
    }
    // Providers refuse a list whose patterns have control characters.
    let is_printable = |c| matches!(c, ' '..='~');
    if let Some(charset) = charset.as_ref().filter(|set| !set.chars().all(is_printable) || rule.charset.is_empty()) {
        wrong(charset.span(), "a charset is made of printable ASCII characters and ranges such as `a-z`");
    }
    let is_plain = |prefix: &str| prefix.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
    if let Some(prefix) = prefix.as_ref().filter(|prefix| !is_plain(prefix)) {
        wrong(prefix.span(), "a prefix is made of ASCII letters, digits, `_` and `-`");
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
    all.retain(|field| !field.derived);
    if all.iter().any(|field| field.untrusted && is_free(&field.ty)) {
        let mut names = fields.into_iter().flat_map(Named::keys);
        let own = names.find(|name| name.as_str() == "altered");
        let included = include.filter(|_| all.iter().any(|field| field.name == "altered"));
        if let Some(name) = own.or(included) {
            let help = Some("choose another name: the framework counts in it what it writes out".to_owned());
            report.add(Rule::DuplicateName, at(TYPES, name.span()), "`altered` is derived from the texts", help);
        }
        all.push(count_of_altered());
    }
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
