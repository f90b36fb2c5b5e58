//! Signatures of the platform's requests. Both schemes use the same pair of keys.
//!
//! V4 does not cover the path, so a signature is valid for every endpoint until it expires; V2
//! leaves out the bodies of commands. TLS protects the requests. The signed bytes are exactly the
//! sent bytes.

#[cfg(test)]
mod tests;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use toolwarrant::Timestamp;
use toolwarrant::base::hex;
use toolwarrant::text::Secret;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// HMAC-SHA256 with a key derived from the day, on all three platforms.
    V4,
    /// SHA-256 over secret key, time, path and body, on VMOS Cloud and VSPhone.
    V2,
}

#[derive(Debug)]
pub struct AccountKeys {
    pub access_key: String,
    pub secret_key: Secret<String>,
}

#[derive(Clone, Copy, Debug)]
pub struct Signable<'a> {
    pub host: &'a str,
    pub path: &'a str,
    /// Empty if the scheme leaves it out.
    pub body: &'a str,
    /// The platform accepts a difference of 5 minutes.
    pub at: Timestamp,
}

/// V4 signs exactly this text.
const CONTENT_TYPE: &str = "application/json;charset=UTF-8";

const SERVICE: &str = "armcloud-paas";
const SIGNED_HEADERS: &str = "content-type;host;x-content-sha256;x-date";

impl AccountKeys {
    /// Returns headers. They are not secret, but good for the same request for 5 minutes.
    #[must_use]
    pub fn headers(&self, scheme: Scheme, request: Signable<'_>) -> Vec<(&'static str, String)> {
        match scheme {
            Scheme::V4 => {
                let (date, signature) = (date(request.at), self.v4(request));
                let access_key = &self.access_key;
                let authorization = format!(
                    "HMAC-SHA256 Credential={access_key}, SignedHeaders={SIGNED_HEADERS}, Signature={signature}"
                );
                vec![
                    ("content-type", CONTENT_TYPE.to_owned()),
                    ("x-host", request.host.to_owned()),
                    ("x-date", date),
                    ("authorization", authorization),
                ]
            }
            Scheme::V2 => vec![
                ("content-type", "application/json".to_owned()),
                ("x-access-key", self.access_key.clone()),
                ("x-timestamp", seconds(request.at)),
                ("x-sign", self.v2(request)),
            ],
        }
    }

    fn v4(&self, request: Signable<'_>) -> String {
        let Signable { host, path: _, body, at } = request;
        let (date, hash) = (date(at), hex::encode(&Sha256::digest(body)));
        let day = date.get(..8).unwrap_or_default();
        let canonical = format!(
            "host:{host}\nx-date:{date}\ncontent-type:{CONTENT_TYPE}\nsignedHeaders:{SIGNED_HEADERS}\nx-content-sha256:{hash}"
        );
        let hash = hex::encode(&Sha256::digest(canonical));
        let text = format!("HMAC-SHA256\n{date}\n{day}/{SERVICE}/request\n{hash}");
        let by_day = mac(self.secret_key.expose().as_bytes(), day);
        let key = mac(&mac(&by_day, SERVICE), "request");
        hex::encode(&mac(&key, &text))
    }

    fn v2(&self, request: Signable<'_>) -> String {
        let Signable { host: _, path, body, at } = request;
        let mut sha = Sha256::new();
        for part in [self.secret_key.expose(), seconds(at).as_str(), path, body] {
            sha.update(part);
        }
        hex::encode(&sha.finalize())
    }
}

fn date(at: Timestamp) -> String {
    let text = at.to_string();
    let digits = text.chars().take_while(|c| *c != '.').filter(|c| c.is_ascii_alphanumeric());
    digits.chain(['Z']).collect()
}

fn seconds(at: Timestamp) -> String {
    (at.0 / 1_000).to_string()
}

fn mac(key: &[u8], text: &str) -> [u8; 32] {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { unreachable!("HMAC takes keys of any length") };
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().into()
}
