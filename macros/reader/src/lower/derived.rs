//! Makes the fields and types that a contract does not write.

use super::words::Words;
use crate::model::{Field, Kind, Member, NamedType, PermissionSpec, ProbeSpec, StringSpec, Type};
use crate::rules::STATES;
use std::sync::Arc;
use toolwarrant_common::{MAX_WAIT_SECONDS, REMARK_MAX_CHARS};

/// Without the field for the target.
pub(super) const FIELDS: &str = "task_id tool status terminal idempotent_hit request_matches poll_after_seconds next_step created_at \
    deadline_at finished_at evidence refund";

pub(super) fn plain(name: &str, doc: &str, ty: Type) -> Field {
    Field {
        name: name.to_owned(),
        doc: doc.to_owned(),
        ty,
        optional: false,
        nullable: false,
        secret: false,
        untrusted: false,
        ours: false,
        told: false,
        derived: false,
        max_items: None,
        default: None,
        formerly: Vec::new(),
    }
}

pub(super) fn ours(name: &str, doc: &str) -> Field {
    Field { ours: true, ..plain(name, doc, Type::String) }
}

pub(super) fn field_with_doc(name: &str, doc: &str, ty: Type) -> Field {
    Field { told: true, ..plain(name, doc, ty) }
}

/// Counts the characters that an object's texts of others write out.
pub(super) fn count_of_altered() -> Field {
    let doc = "The number of characters that are written as `⟨U+202E⟩` or the like; absent if it is zero.";
    Field { optional: true, derived: true, ..plain("altered", doc, Type::Integer) }
}

pub(super) fn make_type(name: &str, doc: &str, kind: Kind) -> Arc<NamedType> {
    Arc::new(NamedType { name: name.to_owned(), doc: doc.to_owned(), kind })
}

/// Puts each type after those that it contains. Most are about tasks: a contract without tasks does
/// not have them.
pub(super) fn framework_types(
    permissions: &[Arc<PermissionSpec>],
    probes: &[Arc<ProbeSpec>],
    words: &Words,
) -> Vec<Arc<NamedType>> {
    let member = |name: &String, doc: &String| Member { name: name.clone(), doc: doc.clone() };
    let granted = permissions.iter().map(|permission| member(&permission.name, &permission.doc)).collect();
    let mut types = vec![make_type("Permission", "What an application may be granted.", Kind::Enum(granted))];
    if !probes.is_empty() {
        let read = probes.iter().map(|probe| member(&probe.name, &probe.doc)).collect();
        types.push(make_type("Probe", "What can be read to verify a task.", Kind::Enum(read)));
    }
    if words.has_tasks() {
        let tasks = [idempotency_key(), task_id(), wait_seconds(), task_status(), upstream_report(), refund()];
        types.extend(tasks);
        types.push(evidence(probes, words));
    }
    types
}

pub(super) fn idempotency_key() -> Arc<NamedType> {
    let rule = StringSpec { min: 1, max: 128, prefix: String::new(), charset: vec![('!', '~')] };
    make_type("IdempotencyKey", "Names one intended write.", Kind::String(rule))
}

pub(super) fn task_id() -> Arc<NamedType> {
    let rule = StringSpec { min: 37, max: 37, prefix: "task_".to_owned(), charset: vec![('0', '9'), ('a', 'f')] };
    make_type("TaskId", "Identifier of a task.", Kind::String(rule))
}

pub(super) fn wait_seconds() -> Arc<NamedType> {
    let seconds = Kind::Integer { min: 0, max: MAX_WAIT_SECONDS.into() };
    make_type("WaitSeconds", "How long an answer may be held.", seconds)
}

pub(super) fn task_status() -> Arc<NamedType> {
    let members = STATES.map(|name| Member { name: name.to_owned(), doc: String::new() });
    make_type("TaskStatus", "State of a task.", Kind::Enum(members.into()))
}

fn upstream_report() -> Arc<NamedType> {
    let members = [
        ("success", "It is done."),
        ("failure", "It failed."),
        ("no_answer", "Nothing that could be understood; it may have been done."),
        ("not_sent", "Nothing was asked of it: no request ever left."),
        ("busy", "It was busy and refused it."),
    ];
    let members = members.map(|(name, doc)| Member { name: name.to_owned(), doc: doc.to_owned() });
    make_type("UpstreamReport", "What the platform said of a write.", Kind::Enum(members.into()))
}

pub(super) fn refund() -> Arc<NamedType> {
    let fields =
        vec![plain("units", "Units given back.", Type::Integer), plain("refunded_at", "When.", Type::Timestamp)];
    make_type("Refund", "A refund.", Kind::Object(fields))
}

pub(super) fn evidence(probes: &[Arc<ProbeSpec>], words: &Words) -> Arc<NamedType> {
    let probes: String = probes.iter().map(|probe| format!("`{}`, ", probe.name)).collect();
    let checked = match probes.is_empty() {
        true => "What was read: `upstream_answer`, since nothing on the {resource} can be.".to_owned(),
        false => format!("What was read: {probes}or `upstream_answer` where nothing on the {{resource}} could be."),
    };
    let rule = StringSpec { min: 0, max: REMARK_MAX_CHARS, prefix: String::new(), charset: Vec::new() };
    let remark = Type::Named(make_type("Remark", "Text from outside.", Kind::String(rule)));
    let remark = |name, doc| Field { untrusted: true, ..plain(name, doc, remark.clone()) };
    let report = Type::Named(upstream_report());
    let fields = vec![
        ours("checked", &words.fill(&checked)),
        remark("expected", "What would have shown the effect."),
        remark("observed", "What was seen."),
        field_with_doc("reported", "What the platform said, which is not what happened.", report),
        plain("checked_at", "When it was seen.", Type::Timestamp),
    ];
    make_type("Evidence", "What the end of a task rests on.", Kind::Object(fields))
}
