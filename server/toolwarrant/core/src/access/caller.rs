//! A caller: the proof that a request came with a live secret of a key.

use super::application::Application;
use super::key_nonces::{KeyNonces, UsedNonce};
use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;
use toolwarrant_base::Timestamp;
use toolwarrant_base::keyring::Digest;

/// The credentials of a request, unchecked. A transport fills them in.
#[derive(Clone, Copy)]
pub struct Credentials<'a> {
    /// The id of the key.
    pub key_id: &'a str,
    /// A live secret of the key.
    pub secret: &'a str,
}

/// A key and its application.
#[derive(Debug, Clone)]
pub struct Principal {
    /// The application that the key belongs to.
    pub application: Arc<Application>,
    /// The id of the key.
    pub key_id: Arc<str>,
    /// The nonces that the key has used.
    pub(crate) nonces: Arc<KeyNonces>,
}

/// Proof that a request came with a live secret of a key. Dereferences to the key and its
/// application.
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

/// The facts that a caller was checked by. Only authentication makes them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Proof {
    /// The verifier of the caller's secret.
    pub(super) verifier: Digest,
    pub(super) expires_at: Option<Timestamp>,
    /// The version of the directory.
    pub(super) version: u64,
}

impl Caller {
    /// Returns the time at which its key expires, unless that is changed.
    #[must_use]
    pub fn expires_at(&self) -> Option<Timestamp> {
        self.proof.expires_at
    }
}
