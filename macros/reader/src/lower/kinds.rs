//! Lowers the kinds of types, with their limits.

use super::derived::count_of_altered;
use super::require::at;
use super::types::{FieldPlace, Types, any_text, is_free, members};
use crate::model::{Field, Kind, NamedType, StringSpec, Type};
use crate::raw::{self, At, KindName, Named, Values};
use crate::report::Report;
use crate::rules::Rule;
use crate::source::TYPES;
use std::ops::Range;
use toolwarrant_common::MAX_INTEGER;

pub(super) fn kind(raw: &raw::Type, types: &Types, place: FieldPlace, report: &mut Report) -> Option<Kind> {
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
                wrong(bound.span(), "a bound is a finite number");
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
        report.add(
            Rule::Bounds,
            at(TYPES, written.span()),
            "the values of a map are no lists, addresses or pictures",
            None,
        );
    }
    if place == FieldPlace::Result && ty.as_named().is_some() && any_text(&ty) && !is_free(&ty) {
        let help = Some("give it a `charset`, or use `string` or a text".to_owned());
        report.add(
            Rule::UnmarkedText,
            at(TYPES, written.span()),
            "texts of others are cleaned, and these are not",
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
        if let Some(name) = names.find(|name| name.as_str() == "altered") {
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
