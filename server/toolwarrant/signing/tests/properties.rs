//! Properties of every request and every header, whatever its content.

use proptest::prelude::*;
use toolwarrant_signing::{Request, header, is_nonce, read_header, read_timestamp};

/// The fields of a request in the order of its canonical request, and the body, which comes last.
type Fields = ([String; 7], Vec<u8>);

/// Makes requests with fields so short that a new value for one of them is often the same.
fn fields() -> impl Strategy<Value = Fields> {
    let field = short;
    let fields = [field(), field(), field(), field(), field(), field(), field()];
    (fields, short().prop_map(String::into_bytes))
}

/// Returns a pattern that matches seven texts.
fn short() -> &'static str {
    "[a?/]{0,1}|aa|//|[?]a"
}

/// Makes requests with any text without line feeds, which no field of an HTTP request contains.
fn any_fields() -> impl Strategy<Value = Fields> {
    let field = || "[^\n]{0,40}";
    let fields = [field(), field(), field(), field(), field(), field(), field()];
    (fields, proptest::collection::vec(any::<u8>(), 0..200))
}

fn canonical((fields, body): &Fields) -> String {
    let [key_id, timestamp, nonce, method, path, query, idempotency_key] = fields;
    Request { key_id, timestamp, nonce, method, path, query, idempotency_key, body }.canonical()
}

/// Returns a text with one octet changed.
fn damage(text: &str, at: usize, octet: char) -> String {
    text.char_indices().map(|(here, c)| if here == at { octet } else { c }).collect()
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
    fn what_moves_from_a_field_to_the_next_changes_the_canonical_request(
        (fields, body) in any_fields(),
        at in 0..6_usize,
        moved in "[^\n]{1,3}",
    ) {
        let (mut one, mut other) = (fields.clone(), fields);
        one[at] += &moved;
        other[at + 1].insert_str(0, &moved);
        prop_assert_ne!(canonical(&(one, body.clone())), canonical(&(other, body)));
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
    fn a_header_with_another_octet_is_no_signature(signature: [u8; 32], at in 0..64_usize, octet in "[A-Fg-z +]|[^0-9a-f]") {
        let octet = octet.chars().next().unwrap();
        prop_assert_eq!(read_header(&damage(&header(&signature), at, octet)), None);
    }

    #[test]
    fn a_header_of_another_length_is_no_signature(text in "[0-9a-f]{0,63}|[0-9a-f]{65,130}") {
        prop_assert_eq!(read_header(&text), None);
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
