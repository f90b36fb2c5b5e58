//! The rows of applications and keys, as a store holds them.

use crate::access::Grants;
use std::collections::BTreeMap;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::keyring::SecretRow;

/// Short texts by name, for people.
pub type Labels = BTreeMap<String, String>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplicationRow {
    pub id: String,
    /// For people; unique.
    pub name: String,
    pub permissions: Vec<String>,
    pub requests_per_minute: u32,
    pub grants: Grants,
    pub created_at: Timestamp,
    pub labels: Labels,
    /// Since when it may call nothing.
    pub suspended_at: Option<Timestamp>,
    /// Its keys have then ended for good, and its name is free.
    pub deleted_at: Option<Timestamp>,
}

impl ApplicationRow {
    pub fn delete(&mut self, now: Timestamp) {
        (self.deleted_at, self.suspended_at) = (Some(now), None);
        (self.permissions, self.grants, self.labels) = (Vec::new(), Grants::nothing(), Labels::new());
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRow {
    /// Not secret.
    pub id: String,
    pub application: String,
    /// Live secrets, the latest first, at most two. A revoked key has none.
    pub secrets: Vec<SecretRow>,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
    pub labels: Labels,
    /// Since when it may not be used.
    pub suspended_at: Option<Timestamp>,
}
