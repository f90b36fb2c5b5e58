//! Headers of answers that a browser shows: what a page may do is said here alone.

use axum::http::HeaderMap;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src blob:; connect-src 'self'; \
                      frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

pub(crate) fn protect(headers: &mut HeaderMap) {
    let lines = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (OPENER_POLICY, "same-origin"),
        (RESOURCE_POLICY, "same-origin"),
        (CACHE_CONTROL, "no-store"),
    ];
    headers.extend(lines.map(|(name, value)| (name, HeaderValue::from_static(value))));
}
