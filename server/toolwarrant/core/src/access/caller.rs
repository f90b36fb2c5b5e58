//! A caller: the proof that a request came with a live secret of a key.

use super::application::Application;
use super::key_nonces::{KeyNonces, UsedNonce};
use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;
use toolwarrant_base::Timestamp;
use toolwarrant_base::keyring::Digest;

/// Unchecked credentials of a request.
#[derive(Clone, Copy)]
pub struct Credentials<'a> {
    pub key_id: &'a str,
    pub secret: &'a str,
}

#[derive(Debug, Clone)]
pub struct Principal {
    pub application: Arc<Application>,
    pub key_id: Arc<str>,
    pub(crate) nonces: Arc<KeyNonces>,
}

/// Proof that a request came with a live secret of a key. Dereferences to key and application.
#[derive(Debug, Clone)]
pub struct Caller {
    pub(super) principal: Principal,
    /// The nonce of a signed request.
    pub nonce: Option<Arc<UsedNonce>>,
    /// The address of the client, if it is recorded.
    pub from: Option<IpAddr>,
    pub(super) proof: Proof,
}

impl Deref for Caller {
    type Target = Principal;
    fn deref(&self) -> &Principal {
        &self.principal
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Proof {
    pub(super) verifier: Digest,
    pub(super) expires_at: Option<Timestamp>,
    pub(super) version: u64,
}

impl Caller {
    /// Returns the time at which its key expires.
    #[must_use]
    pub fn expires_at(&self) -> Option<Timestamp> {
        self.proof.expires_at
    }
}
