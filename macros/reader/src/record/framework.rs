//! Behaviour of the framework that no file of a contract says. A test holds each fact against the
//! code that acts by it.

use serde_json::{Value, json};
use toolwarrant_common::{
    MAX_INTEGER, MAX_WAIT_SECONDS, REMARK_MAX_CHARS, TASKS_KEPT_DAYS, UNTRUSTED_MAX_CHARS, URL_MAX_CHARS,
};

pub(super) fn facts() -> [(&'static str, Value); 15] {
    [
        (
            "canonical_request",
            json!([
                "scheme",
                "key_id",
                "timestamp",
                "nonce",
                "method",
                "path",
                "query",
                "idempotency_key",
                "body_sha256"
            ]),
        ),
        ("integer_max", json!(MAX_INTEGER)),
        ("kept_days", json!(TASKS_KEPT_DAYS)),
        ("max_wait_seconds", json!(MAX_WAIT_SECONDS)),
        ("refunded", json!(["failed_silent"])),
        ("remark_max_chars", json!(REMARK_MAX_CHARS)),
        ("signature_scheme", json!("CP1-HMAC-SHA256")),
        ("signature_skew_seconds", json!(300)),
        ("terminal", json!(["success", "success_unverified", "failed", "failed_silent", "timeout"])),
        ("unknown_arguments", json!("left out unless misspelt")),
        ("untrusted_max_chars", json!(UNTRUSTED_MAX_CHARS)),
        ("url_max_chars", json!(URL_MAX_CHARS)),
        ("write_in_flight", json!("answers the same task")),
        ("write_key", json!(["application", "tool", "target", "arguments"])),
        ("write_key_named", json!(["application", "idempotency_key"])),
    ]
}
