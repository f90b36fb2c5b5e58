//! The means by which the replicas of a service share state of the service itself.

use super::budgets::Budgets;
use super::cluster::Membership;
use super::documents::DocumentStore;
use std::sync::Arc;
use toolwarrant_base::keyring::{Digest, KeyRing};

/// The shared store of a replica, as its service uses it.
#[derive(Clone, Debug)]
pub struct Sharing {
    /// Stores small values with versions.
    pub documents: Arc<dyn DocumentStore>,
    /// The membership of this replica. Its lease does not stand before the first beat.
    pub member: Arc<Membership>,
    /// Shares budgets.
    pub budgets: Arc<Budgets>,
    keyring: KeyRing,
}

impl Sharing {
    /// Shares this store, whose replicas have the same master key.
    #[must_use]
    pub fn new(
        documents: Arc<dyn DocumentStore>,
        member: Arc<Membership>,
        budgets: Arc<Budgets>,
        keyring: KeyRing,
    ) -> Self {
        Self { documents, member, budgets, keyring }
    }

    /// Returns a code for these parts that only a replica of this store can make.
    #[must_use]
    pub fn authenticate(&self, parts: &[&str]) -> Digest {
        self.keyring.mac(parts)
    }
}
