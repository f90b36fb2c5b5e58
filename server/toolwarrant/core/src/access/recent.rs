//! The latest callers of each thread.
//!
//! A [`Caller`](super::Caller) counts its references to the directory here, so that threads do not
//! share the count. Start at [`Recent::principal`].

use super::application::Application;
use std::sync::Arc;

/// A key and its application.
#[derive(Debug)]
pub struct Principal {
    /// The application that the key belongs to.
    pub application: Arc<Application>,
    /// The id of the key.
    pub key_id: Arc<str>,
}

/// Principals of the latest requests. The address of the key in memory gives the place.
pub(super) struct Recent([Option<Arc<Principal>>; RECENT]);

/// Most principals that a thread remembers. A forgotten one is made again.
const RECENT: usize = 64;

impl Default for Recent {
    fn default() -> Self {
        Self([const { None }; RECENT])
    }
}

impl Recent {
    /// Returns the principal of a key that is in force.
    pub(super) fn principal(&mut self, key_id: &Arc<str>, application: &Arc<Application>) -> Arc<Principal> {
        // Allocators mostly return multiples of 16.
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

#[cfg(test)]
mod tests {
    use super::super::{Access, Credentials, Grants};
    use super::*;
    use crate::catalogue::PermissionSet;
    use crate::limit::Window;
    use toolwarrant_base::clock::{Clock, Timestamp};
    use toolwarrant_base::keyring::KeyRing;
    use toolwarrant_base::random::Random;

    #[test]
    fn calls_of_a_thread_share_a_principal_and_a_change_drops_the_former_ones() {
        let application = || {
            let window = Arc::new(Window::new(300));
            Arc::new(Application::new("one", "one", PermissionSet(1), Grants::everything(), window))
        };
        let (access, clock) =
            (Access::new(KeyRing::new("test", &[7; 32], Random::System)), Clock::manual(Timestamp(0)));
        let former = application();
        let secret = access.secret("one", "key", "secret").expect("random");
        access.change(|directory| directory.put_key("key", &former, std::slice::from_ref(&secret), None));
        let shown = Credentials { key_id: "key", secret: "secret" };
        let [one, other] = [(), ()].map(|()| access.authenticate(shown, &clock).expect("a live key"));
        assert!(std::ptr::eq(&*one, &*other));
        drop((one, other));

        let former = {
            let kept = Arc::downgrade(&former);
            drop(former);
            kept
        };
        access.change(|directory| directory.put_application(&application()));
        assert!(former.upgrade().is_none());
    }
}
