//! Makes the fields and types that a contract does not write.

use crate::model::{Field, Kind, NamedType, Type};
use std::sync::Arc;

/// The fields of the answers about tasks, without the one for the target.
pub(super) const FIELDS: &str = "task_id tool status terminal idempotent_hit request_matches poll_after_seconds next_step created_at \
    deadline_at finished_at evidence refund";

/// Makes a required field without flags.
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
        default: None,
        formerly: Vec::new(),
    }
}

/// Makes a field for a text in the service's own words.
pub(super) fn ours(name: &str, doc: &str) -> Field {
    Field { ours: true, ..plain(name, doc, Type::String) }
}

/// Makes a field whose doc clients get, because its name is not enough.
pub(super) fn field_with_doc(name: &str, doc: &str, ty: Type) -> Field {
    Field { told: true, ..plain(name, doc, ty) }
}

/// Makes a named type.
pub(super) fn make_type(name: &str, doc: &str, kind: Kind) -> Arc<NamedType> {
    Arc::new(NamedType { name: name.to_owned(), doc: doc.to_owned(), kind })
}
