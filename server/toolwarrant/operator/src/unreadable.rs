//! Since when targets cannot be read, as far as this process has seen.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex};
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::ignore_poison;

/// The targets of a resource that cannot be read, each with the time at which that was first seen.
pub(crate) type UnreadableSince = BTreeMap<String, Timestamp>;

#[derive(Default)]
pub struct UnreadTargets(Mutex<HashMap<&'static str, Arc<UnreadableSince>>>);

impl UnreadTargets {
    /// Replaces those of a resource, and keeps the times of those that were known.
    pub(crate) fn note(&self, resource: &'static str, ids: HashSet<String>, now: Timestamp) -> Arc<UnreadableSince> {
        let mut all = ignore_poison(self.0.lock());
        let known = all.entry(resource).or_default();
        let noted = ids.into_iter().map(|id| {
            let since = known.get(&id).copied().unwrap_or(now);
            (id, since)
        });
        *known = Arc::new(noted.collect());
        Arc::clone(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_keeps_its_time_until_it_can_be_read() {
        let unreadable = UnreadTargets::default();
        let note = |ids: &[&str], now| {
            let ids = ids.iter().map(|id| (*id).to_owned()).collect();
            let noted = unreadable.note("lamp", ids, Timestamp(now));
            noted.iter().map(|(id, since)| (id.clone(), since.0)).collect::<Vec<_>>()
        };
        assert_eq!(note(&["a", "b"], 1), [("a".to_owned(), 1), ("b".to_owned(), 1)]);
        assert_eq!(note(&["b"], 2), [("b".to_owned(), 1)]);
        assert_eq!(note(&["a", "b"], 3), [("a".to_owned(), 3), ("b".to_owned(), 1)]);
    }
}
