//! Headers of answers that a browser shows: what a page may do is said here alone. [`people`] is
//! the listener of a site for people.

pub mod people;

use axum::http::HeaderMap;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};

/// For a page that shows pictures of targets, and has no forms.
pub(crate) const OF_SERVICE: PagePolicy = PagePolicy {
    content: "default-src 'none'; script-src 'self'; style-src 'self'; img-src blob:; connect-src 'self'; \
              frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    referrer: "no-referrer",
    cache: "no-store",
};

/// For pages with forms. Without a referrer, a browser would send forms with the origin `null`.
const OF_PEOPLE: PagePolicy = PagePolicy {
    content: "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
              frame-ancestors 'none'; base-uri 'none'; form-action 'self'; require-trusted-types-for 'script'; \
              trusted-types console",
    referrer: "same-origin",
    cache: "no-store",
};

pub(crate) struct PagePolicy {
    content: &'static str,
    referrer: &'static str,
    cache: &'static str,
}

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

pub(crate) fn protect(headers: &mut HeaderMap, PagePolicy { content, referrer, cache }: &PagePolicy) {
    let lines = [
        (CONTENT_SECURITY_POLICY, *content),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, *referrer),
        (OPENER_POLICY, "same-origin"),
        (RESOURCE_POLICY, "same-origin"),
        (CACHE_CONTROL, *cache),
    ];
    headers.extend(lines.map(|(name, value)| (name, HeaderValue::from_static(value))));
}
