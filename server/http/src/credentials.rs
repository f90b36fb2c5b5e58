//! Where a request carries its credentials: two headers, or one bearer token.

use axum::http::header::{AUTHORIZATION, AsHeaderName, HeaderMap, HeaderName, HeaderValue};
use toolwarrant_core::access::Credentials;

static KEY_HEADER: HeaderName = HeaderName::from_static("x-api-key");
static SECRET_HEADER: HeaderName = HeaderName::from_static("x-api-secret");

/// The credentials of a request; `None` where they are missing or malformed.
///
/// The pair of headers decides where both are there, else the bearer; the other form is not looked at.
pub(crate) fn read(headers: &HeaderMap) -> Option<Credentials<'_>> {
    let key_id = at_most_one(headers, &KEY_HEADER)?;
    let secret = at_most_one(headers, &SECRET_HEADER)?;
    if let (Some(key_id), Some(secret)) = (key_id, secret) {
        return Some(Credentials { key_id: text(key_id)?, secret: text(secret)? });
    }
    let (scheme, pair) = text(at_most_one(headers, &AUTHORIZATION)??)?.split_once(' ')?;
    let (key_id, secret) = pair.trim_start_matches(' ').split_once(':')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(Credentials { key_id, secret })
}

/// The header's value, if there is one; of two copies no one can say which was meant.
fn at_most_one(headers: &HeaderMap, name: impl AsHeaderName) -> Option<Option<&HeaderValue>> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    values.next().is_none().then_some(first)
}

/// The value as text; no credential has anything but ASCII in it.
fn text(value: &HeaderValue) -> Option<&str> {
    value.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Its name, the header lines, and the application that they prove.
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

    /// The application whose keys these are.
    fn who(keys: &[(&str, &str, &str)], lines: &[(&str, &str)]) -> Option<String> {
        let headers = headers(lines);
        let shown = read(&headers)?;
        let owner = keys.iter().find(|(id, _, secret)| (*id, *secret) == (shown.key_id, shown.secret));
        owner.map(|(_, owner, _)| (*owner).to_owned())
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
            ("two secrets", &[(KEY, k), (SECRET, s), (SECRET, s)], None),
            ("two keys and no secret, right bearer", &[(KEY, k), (KEY, k), (BEARER, right)], None),
            ("two bearers", &[(BEARER, right), (BEARER, right)], None),
            ("scheme in lower case", &[(BEARER, &bearer("bearer K:S"))], Some("one")),
            ("scheme in upper case", &[(BEARER, &bearer("BEARER K:S"))], Some("one")),
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
            assert_eq!(who(&keys, lines).as_deref(), *expected, "{case}");
        }
    }

    /// No key that is issued has a colon in its secret, so that this is all that tells the first colon from the last.
    #[test]
    fn a_bearer_is_split_at_its_first_colon() {
        let keys = [("key_1", "one", "a:b"), ("key_1:a", "two", "b")];
        assert_eq!(who(&keys, &[(BEARER, "Bearer key_1:a:b")]).as_deref(), Some("one"));
    }
}
