//! The headers of a request that the server uses, found in one walk over all headers.
//!
//! This module reports each value and the number of its occurrences. The caller interprets values
//! and repetitions.

use axum::http::header::{HeaderMap, HeaderValue};

/// The headers of a request that the server uses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Head<'a> {
    pub(crate) host: Sent<'a>,
    pub(crate) origin: Sent<'a>,
    pub(crate) content_type: Sent<'a>,
    pub(crate) authorization: Sent<'a>,
    pub(crate) api_key: Sent<'a>,
    pub(crate) api_secret: Sent<'a>,
    pub(crate) request_id: Sent<'a>,
}

/// The number of times that a header was sent, with its first value.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Sent<'a> {
    #[default]
    Never,
    Once(&'a HeaderValue),
    /// With the first value.
    Repeatedly(&'a HeaderValue),
}

impl<'a> From<&'a HeaderMap> for Head<'a> {
    fn from(headers: &'a HeaderMap) -> Self {
        let mut head = Self::default();
        for (name, value) in headers {
            // Comparing texts of different lengths is immediate. A look-up hashes each name.
            let sent = match name.as_str() {
                "host" => &mut head.host,
                "origin" => &mut head.origin,
                "content-type" => &mut head.content_type,
                "authorization" => &mut head.authorization,
                "x-api-key" => &mut head.api_key,
                "x-api-secret" => &mut head.api_secret,
                "x-request-id" => &mut head.request_id,
                _ => continue,
            };
            *sent = match *sent {
                Sent::Never => Sent::Once(value),
                Sent::Once(first) | Sent::Repeatedly(first) => Sent::Repeatedly(first),
            };
        }
        head
    }
}

impl<'a> Sent<'a> {
    /// Returns the value of a header that may occur once. The outer `None` means that it occurs
    /// more than once, which is ambiguous.
    pub(crate) fn at_most_once(self) -> Option<Option<&'a HeaderValue>> {
        match self {
            Self::Never => Some(None),
            Self::Once(value) => Some(Some(value)),
            Self::Repeatedly(_) => None,
        }
    }

    /// Returns the value, or the first of several.
    pub(crate) fn first(self) -> Option<&'a HeaderValue> {
        match self {
            Self::Never => None,
            Self::Once(value) | Self::Repeatedly(value) => Some(value),
        }
    }
}
