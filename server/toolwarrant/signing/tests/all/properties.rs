//! Properties of every request and every header, whatever its content.

use proptest::prelude::*;
use toolwarrant_signing::{Request, header, is_nonce, read_header, read_timestamp};

/// In the order of the canonical request, and the body, which comes last.
type Fields = ([String; 7], Vec<u8>);

/// Fields are so short that a new value for one of them is often the same.
fn fields() -> impl Strategy<Value = Fields> {
    let field = short;
    let fields = [field(), field(), field(), field(), field(), field(), field()];
    (fields, short().prop_map(String::into_bytes))
}

fn short() -> &'static str {
    "[a?/]{0,1}|aa|//|[?]a"
}

/// Fields have no line feeds, as in HTTP.
fn any_fields() -> impl Strategy<Value = Fields> {
    let field = || "[^\n]{0,40}";
    let fields = [field(), field(), field(), field(), field(), field(), field()];
    (fields, proptest::collection::vec(any::<u8>(), 0..200))
}

fn canonical((fields, body): &Fields) -> String {
    let [key_id, timestamp, nonce, method, path, query, idempotency_key] = fields;
    Request { key_id, timestamp, nonce, method, path, query, idempotency_key, body }.canonical()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn two_requests_have_the_same_canonical_request_exactly_if_they_are_the_same(
        one in fields(),
        at in 0..8_usize,
        text in short(),
    ) {
        let mut other = one.clone();
        match other.0.get_mut(at) {
            Some(field) => *field = text,
            None => other.1 = text.into_bytes(),
        }
        prop_assert_eq!(canonical(&one) == canonical(&other), one == other);
    }

    #[test]
    fn a_canonical_request_has_nine_lines_which_are_its_fields((fields, body) in any_fields()) {
        let canonical = canonical(&(fields.clone(), body));
        let lines: Vec<&str> = canonical.split('\n').collect();
        prop_assert_eq!(lines.len(), 9);
        prop_assert_eq!(&lines[1..8], &fields[..]);
    }

    #[test]
    fn a_signature_is_read_as_it_was_written(signature: [u8; 32]) {
        prop_assert_eq!(read_header(&header(&signature)), Some(signature));
    }

    #[test]
    fn a_text_is_a_signature_a_time_or_a_nonce_exactly_if_it_has_the_form(text in "\\PC{0,70}|[0-9a-f]{64}|[0-9]{9,11}|[A-Za-z0-9_-]{14,66}") {
        let all = |known: fn(&u8) -> bool| text.as_bytes().iter().all(known);
        let hex = all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte));
        prop_assert_eq!(read_header(&text).is_some(), text.len() == 64 && hex);
        let time = (text.len() == 10 && all(u8::is_ascii_digit)).then(|| text.parse::<u64>().unwrap());
        prop_assert_eq!(read_timestamp(&text), time);
        let plain = all(|byte| byte.is_ascii_alphanumeric() || [b'_', b'-'].contains(byte));
        prop_assert_eq!(is_nonce(&text), (16..=64).contains(&text.len()) && plain);
    }
}
