//! Who has called lately, for each thread.
//!
//! What a [`Caller`](super::Caller) keeps of the directory is counted where threads do not share the count. Start at [`Recent::principal`].

use super::Application;
use std::sync::Arc;

/// A key and its application.
#[derive(Debug)]
pub struct Principal {
    /// The application that the key belongs to.
    pub application: Arc<Application>,
    /// The id of the key.
    pub key_id: Arc<str>,
}

/// Principals of the latest requests, by where their key lies in memory.
pub(super) struct Recent([Option<Arc<Principal>>; RECENT]);

/// Most principals that a thread remembers. What it has forgotten is made anew.
const RECENT: usize = 64;

impl Default for Recent {
    fn default() -> Self {
        Self([const { None }; RECENT])
    }
}

impl Recent {
    /// Returns the principal of a key that is in force.
    pub(super) fn principal(&mut self, key_id: &Arc<str>, application: &Arc<Application>) -> Arc<Principal> {
        // Allocators mostly give out multiples of 16.
        let place = key_id.as_ptr().addr() / 16 % RECENT;
        let known = self.0[place]
            .as_ref()
            .filter(|known| Arc::ptr_eq(&known.key_id, key_id) && Arc::ptr_eq(&known.application, application));
        if let Some(known) = known {
            return Arc::clone(known);
        }
        let principal = Principal { application: Arc::clone(application), key_id: Arc::clone(key_id) };
        Arc::clone(self.0[place].insert(Arc::new(principal)))
    }
}
