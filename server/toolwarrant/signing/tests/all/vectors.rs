//! The vectors in `vectors.json`, whose signatures another implementation computed.

use serde::Deserialize;
use toolwarrant_signing::{Request, header, is_nonce, read_header, read_timestamp, sign};

#[derive(Deserialize)]
struct File {
    vectors: Vec<Vector>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vector {
    title: String,
    key_id: String,
    secret: String,
    timestamp: String,
    nonce: String,
    method: String,
    target: String,
    path: String,
    query: String,
    idempotency_key: String,
    body: Option<String>,
    body_hex: Option<String>,
    canonical_request: String,
    signature: String,
}

#[test]
fn every_vector_has_the_canonical_request_and_the_signature_that_python_computes() {
    let File { vectors } = serde_json::from_str(include_str!("../../vectors.json")).unwrap();
    for vector in &vectors {
        let title = &vector.title;
        let body = body(vector);
        let request = Request {
            key_id: &vector.key_id,
            timestamp: &vector.timestamp,
            nonce: &vector.nonce,
            method: &vector.method,
            path: &vector.path,
            query: &vector.query,
            idempotency_key: &vector.idempotency_key,
            body: &body,
        };
        assert_eq!(request.canonical(), vector.canonical_request, "{title}");
        let signature = sign(&vector.secret, &vector.canonical_request);
        assert_eq!(header(&signature), vector.signature, "{title}");
        assert_eq!(read_header(&vector.signature), Some(signature), "{title}");

        assert_eq!(vector.canonical_request.lines().count(), 9, "{title}");
        let target = [&vector.path, "?", &vector.query].concat();
        let target = target.strip_suffix('?').filter(|_| !vector.target.ends_with('?')).unwrap_or(&target);
        assert!(vector.target.ends_with(target), "{title}: {target} is not of {}", vector.target);
        assert!(read_timestamp(&vector.timestamp).is_some() && is_nonce(&vector.nonce), "{title}");
    }
    assert!(vectors.len() >= 20);
}

fn body(vector: &Vector) -> Vec<u8> {
    let pair = |hex: &str, at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal digits");
    match (&vector.body, &vector.body_hex) {
        (Some(text), None) => text.clone().into_bytes(),
        (None, Some(hex)) => (0..hex.len()).step_by(2).map(|at| pair(hex, at)).collect(),
        _ => panic!("{}: it has one of body and body_hex", vector.title),
    }
}
