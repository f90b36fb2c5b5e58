//! Encryption at rest: one master key, and three keys derived from it.
//!
//! The pepper makes verifiers and fingerprints, the sealing key encrypts secrets that must be read
//! again, the chain key chains the audit trail. Without the master key, the stored data reveals
//! none of these. Start at [`KeyRing`].

use crate::clock::Timestamp;
use crate::random::Random;
use crate::text::Secret;
use chacha20poly1305::aead::{AeadInOut, KeyInit as _};
use chacha20poly1305::{Tag, XChaCha20Poly1305, XNonce};
use hkdf::Hkdf;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::fmt;
use std::net::IpAddr;
use zeroize::Zeroizing;

const NONCE: usize = 24;
const TAG: usize = 16;

/// A MAC under the pepper: HMAC-SHA256.
pub type Digest = [u8; 32];

#[derive(Clone)]
pub struct KeyRing {
    peppered: Hmac<Sha256>,
    cipher: XChaCha20Poly1305,
    chain: ChainKey,
    random: Random,
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyRing").finish_non_exhaustive()
    }
}

/// A valid hash of the audit trail cannot be made without it.
#[derive(Clone)]
pub struct ChainKey(Hmac<Sha256>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretRow {
    pub verifier: Digest,
    pub sealed: Vec<u8>,
    pub created_at: Option<Timestamp>,
    /// `None` if its key alone decides.
    pub ends_at: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretUse {
    pub key: String,
    pub verifier: Digest,
    /// To the minute.
    pub at: Timestamp,
    pub from: Option<IpAddr>,
}

/// Another master key, another purpose, or damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the seal does not fit: it was made with another master key, or damaged")]
pub struct BrokenSeal;

impl KeyRing {
    /// Derives the keys. The `salt` of a service never changes. Nonces come from `random`, which
    /// must never repeat itself.
    #[must_use]
    pub fn new(salt: &str, master: &[u8; 32], random: Random) -> Self {
        let (pepper, sealing) = (derive(salt, master, b"pepper"), derive(salt, master, b"seal"));
        let cipher = XChaCha20Poly1305::new((&*sealing).into());
        let chain = ChainKey(hmac_with(&derive(salt, master, b"audit chain")));
        Self { peppered: hmac_with(&pepper), cipher, chain, random }
    }

    #[must_use]
    pub fn chain_key(&self) -> ChainKey {
        self.chain.clone()
    }

    /// Returns the MAC of these parts: `["ab", "c"]` and `["a", "bc"]` differ.
    #[must_use]
    pub fn mac(&self, parts: &[&str]) -> Digest {
        let mut mac = self.peppered.clone();
        for part in parts {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part.as_bytes());
        }
        mac.finalize().into_bytes().into()
    }

    /// Seals for one `purpose`, as XChaCha20-Poly1305: nonce, ciphertext, tag.
    pub fn seal(&self, purpose: &str, text: &str) -> Result<Vec<u8>, getrandom::Error> {
        let nonce = self.random.bytes::<NONCE>()?;
        let mut sealed = Vec::with_capacity(NONCE + text.len() + TAG);
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(text.as_bytes());
        let body = &mut sealed[NONCE..];
        let Ok(tag) = self.cipher.encrypt_inout_detached(&XNonce::from(nonce), purpose.as_bytes(), body.into()) else {
            return Err(getrandom::Error::UNEXPECTED); // Only beyond 256 GB.
        };
        sealed.extend_from_slice(&tag);
        Ok(sealed)
    }

    pub fn open(&self, purpose: &str, sealed: &[u8]) -> Result<Secret<String>, BrokenSeal> {
        let (nonce, rest) = sealed.split_first_chunk::<NONCE>().ok_or(BrokenSeal)?;
        let (body, tag) = rest.split_last_chunk::<TAG>().ok_or(BrokenSeal)?;
        let mut body = body.to_vec();
        let (nonce, tag) = (XNonce::from(*nonce), Tag::from(*tag));
        let opened = self.cipher.decrypt_inout_detached(&nonce, purpose.as_bytes(), body.as_mut_slice().into(), &tag);
        opened.map_err(|_| BrokenSeal)?;
        String::from_utf8(body).map(Secret::new).map_err(|_| BrokenSeal)
    }
}

impl ChainKey {
    /// Returns the MAC of the parts, whose lengths the caller must fix.
    #[must_use]
    pub fn mac(&self, parts: &[&[u8]]) -> Digest {
        let mut mac = self.0.clone();
        parts.iter().for_each(|part| mac.update(part));
        mac.finalize().into_bytes().into()
    }
}

fn hmac_with(key: &[u8; 32]) -> Hmac<Sha256> {
    // HMAC pads a short key with zeroes. A key of a whole block cannot have a wrong length.
    let mut block = Zeroizing::new([0; 64]);
    block[..key.len()].copy_from_slice(key);
    Hmac::new((&*block).into())
}

fn derive(salt: &str, master: &[u8; 32], what: &[u8]) -> Zeroizing<[u8; 32]> {
    let mut key = Zeroizing::new([0; 32]);
    let derived = Hkdf::<Sha256>::new(Some(salt.as_bytes()), master).expand(what, &mut *key);
    debug_assert!(derived.is_ok(), "32 bytes can be had");
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_opens_for_its_purpose_and_key_and_as_long_as_no_bit_changes() {
        let keyring = KeyRing::new("test", &[7; 32], Random::System);
        let sealed = keyring.seal("task_1", "hunter2").unwrap();
        assert_ne!(sealed, keyring.seal("task_1", "hunter2").unwrap(), "a nonce repeats");
        assert!(!sealed.windows(4).any(|part| part == b"hunt"));
        let opened = |purpose: &str, sealed: &[u8]| keyring.open(purpose, sealed).map(|text| text.expose().clone());
        assert_eq!(opened("task_1", &sealed).as_deref(), Ok("hunter2"));
        assert_eq!(keyring.open("task_2", &sealed), Err(BrokenSeal));
        assert_eq!(KeyRing::new("test", &[8; 32], Random::System).open("task_1", &sealed), Err(BrokenSeal));
        for bit in 0..sealed.len() * 8 {
            let mut other = sealed.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(keyring.open("task_1", &other), Err(BrokenSeal), "bit {bit}");
        }
        for length in 0..sealed.len() {
            assert_eq!(keyring.open("task_1", &sealed[..length]), Err(BrokenSeal), "length {length}");
        }
        assert_eq!(opened("", &keyring.seal("", "").unwrap()).as_deref(), Ok(""));
    }

    #[test]
    fn a_mac_tells_its_parts_apart() {
        let keyring = KeyRing::new("test", &[7; 32], Random::System);
        assert_eq!(keyring.mac(&["ab", "c"]), keyring.mac(&["ab", "c"]));
        for other in [&["a", "bc"][..], &["abc"], &["ab", "c", ""], &["ab", "d"]] {
            assert_ne!(keyring.mac(&["ab", "c"]), keyring.mac(other), "{other:?}");
        }
        assert_ne!(keyring.mac(&["a"]), KeyRing::new("test", &[8; 32], Random::System).mac(&["a"]));
    }
}
