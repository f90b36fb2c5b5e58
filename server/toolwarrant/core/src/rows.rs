//! The rows of applications and keys, as a store holds them.

use crate::access::Grants;
use std::collections::BTreeMap;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::keyring::SecretRow;

/// Short texts by name.
pub type Labels = BTreeMap<String, String>;

/// A stored application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplicationRow {
    /// Its id in the audit and in storage.
    pub id: String,
    /// Its name for people; unique.
    pub name: String,
    /// The permissions that it was granted, by name.
    pub permissions: Vec<String>,
    /// Its request budget in any 60 seconds.
    pub requests_per_minute: u32,
    /// The targets that it sees.
    pub grants: Grants,
    /// The time of its creation.
    pub created_at: Timestamp,
    /// Short texts by name, for people.
    pub labels: Labels,
    /// The time since which it may call nothing; `None` if it is not suspended.
    pub suspended_at: Option<Timestamp>,
    /// The time of its deletion. Its keys have then ended for good, and its name is free.
    pub deleted_at: Option<Timestamp>,
}

impl ApplicationRow {
    /// Deletes it: takes its permissions, grants and labels away.
    pub fn delete(&mut self, now: Timestamp) {
        (self.deleted_at, self.suspended_at) = (Some(now), None);
        (self.permissions, self.grants, self.labels) = (Vec::new(), Grants::nothing(), Labels::new());
    }
}

/// A stored key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRow {
    /// Its id; not secret.
    pub id: String,
    /// The id of its application.
    pub application: String,
    /// Its live secrets, the latest first, at most two. A revoked key has none.
    pub secrets: Vec<SecretRow>,
    /// The time of its creation.
    pub created_at: Timestamp,
    /// The time when it expires; `None` if it does not expire.
    pub expires_at: Option<Timestamp>,
    /// Short texts by name, for people.
    pub labels: Labels,
    /// The time since which it may not be used; `None` if it is not suspended.
    pub suspended_at: Option<Timestamp>,
}
