//! Reads credentials from a request: the headers `X-Api-Key` and `X-Api-Secret`, or one bearer
//! token. The pipeline decides whether they are valid.

use crate::head::RequestHead;
use axum::http::header::HeaderValue;
use toolwarrant_core::access::Credentials;

/// Reads both headers if both are present, otherwise the bearer token.
pub(crate) fn read<'a>(head: impl Into<RequestHead<'a>>) -> Option<Credentials<'a>> {
    let RequestHead { authorization, api_key, api_secret, .. } = head.into();
    let key_id = api_key.at_most_once()?;
    let secret = api_secret.at_most_once()?;
    if let (Some(key_id), Some(secret)) = (key_id, secret) {
        return Some(Credentials { key_id: text(key_id)?, secret: text(secret)? });
    }
    let (scheme, pair) = text(authorization.at_most_once()??)?.split_once(' ')?;
    let (key_id, secret) = pair.trim_start_matches(' ').split_once(':')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(Credentials { key_id, secret })
}

fn text(value: &HeaderValue) -> Option<&str> {
    value.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderMap, HeaderName};

    type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], Option<&'a str>);

    const KEY: &str = "X-Api-Key";
    const SECRET: &str = "X-Api-Secret";
    const BEARER: &str = "Authorization";

    fn headers(lines: &[(&str, &str)]) -> HeaderMap {
        let line = |(name, value): &(&str, &str)| {
            let value = HeaderValue::from_bytes(value.as_bytes()).expect("a header value");
            (HeaderName::from_bytes(name.as_bytes()).expect("a header name"), value)
        };
        let mut map = HeaderMap::new();
        for (name, value) in lines.iter().map(line) {
            map.append(name, value);
        }
        map
    }

    fn owner(keys: &[(&str, &str, &str)], lines: &[(&str, &str)]) -> Option<String> {
        let headers = headers(lines);
        let shown = read(&headers)?;
        let known = keys.iter().find(|(id, _, secret)| (*id, *secret) == (shown.key_id, shown.secret));
        known.map(|(_, owner, _)| (*owner).to_owned())
    }

    #[test]
    fn credentials_are_taken_as_the_protocol_says() {
        let (k, s, k2, s2) = ("key_1", "secret_a1", "key_2", "secret_b2");
        let keys = [(k, "one", s), (k2, "two", s2)];
        let bearer = |text: &str| text.replace('K', k).replace('S', s);
        let right = bearer("Bearer K:S");
        let right = right.as_str();

        let cases: &[Case<'_>] = &[
            ("nothing", &[], None),
            ("right headers", &[(KEY, k), (SECRET, s)], Some("one")),
            ("right bearer", &[(BEARER, right)], Some("one")),
            ("both right: headers decide", &[(KEY, k2), (SECRET, s2), (BEARER, right)], Some("two")),
            ("right headers, malformed bearer", &[(KEY, k), (SECRET, s), (BEARER, "Bearer \u{e9}")], Some("one")),
            ("right headers, two bearers", &[(KEY, k), (SECRET, s), (BEARER, "a"), (BEARER, "b")], Some("one")),
            ("wrong headers, right bearer", &[(KEY, k), (SECRET, "x"), (BEARER, right)], None),
            ("empty headers, right bearer", &[(KEY, ""), (SECRET, ""), (BEARER, right)], None),
            ("unknown key", &[(KEY, "key_0"), (SECRET, s)], None),
            ("a secret of another key", &[(KEY, k), (SECRET, s2)], None),
            ("key alone", &[(KEY, k)], None),
            ("secret alone", &[(SECRET, s)], None),
            ("key alone, right bearer", &[(KEY, "x"), (BEARER, right)], Some("one")),
            ("secret alone, right bearer", &[(SECRET, "x"), (BEARER, right)], Some("one")),
            ("non-ASCII key alone, right bearer", &[(KEY, "\u{e9}"), (BEARER, right)], Some("one")),
            ("key alone, wrong bearer", &[(KEY, k), (BEARER, "Bearer x:y")], None),
            ("two keys", &[(KEY, k), (KEY, k), (SECRET, s)], None),
            ("two keys, a secret, right bearer", &[(KEY, k), (KEY, k), (SECRET, s), (BEARER, right)], None),
            ("two secrets", &[(KEY, k), (SECRET, s), (SECRET, s)], None),
            ("two keys and no secret, right bearer", &[(KEY, k), (KEY, k), (BEARER, right)], None),
            ("two bearers", &[(BEARER, right), (BEARER, right)], None),
            ("scheme in lower case", &[(BEARER, &bearer("bearer K:S"))], Some("one")),
            ("scheme in upper case", &[(BEARER, &bearer("BEARER K:S"))], Some("one")),
            ("no scheme", &[(BEARER, &bearer("K:S"))], None),
            ("scheme alone", &[(BEARER, "Bearer")], None),
            ("an empty header", &[(BEARER, "")], None),
            ("no secret", &[(BEARER, &bearer("Bearer K:"))], None),
            ("several spaces", &[(BEARER, &bearer("Bearer   K:S"))], Some("one")),
            ("space after the colon", &[(BEARER, &bearer("Bearer K: S"))], None),
            ("no space", &[(BEARER, &bearer("BearerK:S"))], None),
            ("other scheme", &[(BEARER, &bearer("Basic K:S"))], None),
            ("no colon", &[(BEARER, &bearer("Bearer KS"))], None),
            ("colon after the secret", &[(BEARER, &bearer("Bearer K:S:"))], None),
            ("colon before the secret", &[(BEARER, &bearer("Bearer K::S"))], None),
            ("colon before the key", &[(BEARER, &bearer("Bearer :K:S"))], None),
            ("non-ASCII bearer", &[(BEARER, &bearer("Bearer K:S\u{e9}"))], None),
            ("non-ASCII secret", &[(KEY, k), (SECRET, "\u{e9}")], None),
            ("secret in upper case", &[(KEY, k), (SECRET, &s.to_uppercase())], None),
            ("empty bearer", &[(BEARER, "Bearer :")], None),
        ];
        for (case, lines, expected) in cases {
            assert_eq!(owner(&keys, lines).as_deref(), *expected, "{case}");
        }
    }

    /// Issued secrets contain no colon, so no other test distinguishes the first colon from the
    /// last.
    #[test]
    fn a_bearer_is_split_at_its_first_colon() {
        let keys = [("key_1", "one", "a:b"), ("key_1:a", "two", "b")];
        assert_eq!(owner(&keys, &[(BEARER, "Bearer key_1:a:b")]).as_deref(), Some("one"));
    }
}
