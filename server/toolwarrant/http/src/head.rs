//! The headers of a request that the server uses, found in one walk over all headers.

use axum::http::header::{HeaderMap, HeaderValue};

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RequestHead<'a> {
    pub(crate) host: HeaderCount<'a>,
    pub(crate) origin: HeaderCount<'a>,
    pub(crate) content_type: HeaderCount<'a>,
    pub(crate) content_encoding: HeaderCount<'a>,
    pub(crate) authorization: HeaderCount<'a>,
    pub(crate) api_key: HeaderCount<'a>,
    pub(crate) api_secret: HeaderCount<'a>,
    pub(crate) request_id: HeaderCount<'a>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum HeaderCount<'a> {
    #[default]
    Never,
    Once(&'a HeaderValue),
    Repeatedly(&'a HeaderValue),
}

impl<'a> From<&'a HeaderMap> for RequestHead<'a> {
    fn from(headers: &'a HeaderMap) -> Self {
        let mut head = Self::default();
        for (name, value) in headers {
            // Comparing texts of different lengths is immediate. A look-up hashes each name.
            let sent = match name.as_str() {
                "host" => &mut head.host,
                "origin" => &mut head.origin,
                "content-type" => &mut head.content_type,
                "content-encoding" => &mut head.content_encoding,
                "authorization" => &mut head.authorization,
                "x-api-key" => &mut head.api_key,
                "x-api-secret" => &mut head.api_secret,
                "x-request-id" => &mut head.request_id,
                _ => continue,
            };
            *sent = match *sent {
                HeaderCount::Never => HeaderCount::Once(value),
                HeaderCount::Once(first) | HeaderCount::Repeatedly(first) => HeaderCount::Repeatedly(first),
            };
        }
        head
    }
}

impl<'a> HeaderCount<'a> {
    /// Returns an outer `None` if the header occurs more than once, which is ambiguous.
    pub(crate) fn at_most_once(self) -> Option<Option<&'a HeaderValue>> {
        match self {
            Self::Never => Some(None),
            Self::Once(value) => Some(Some(value)),
            Self::Repeatedly(_) => None,
        }
    }

    pub(crate) fn first(self) -> Option<&'a HeaderValue> {
        match self {
            Self::Never => None,
            Self::Once(value) | Self::Repeatedly(value) => Some(value),
        }
    }
}
