//! Failovers: a copy of the store, which can lag, replaces it.

use super::cluster::{Cluster, Strike};
use super::events::{Call, NAMES};
use super::wheels::Act;
use std::sync::Arc;
use std::time::Duration;
use toolwarrant_base::random::SplitMix;
use toolwarrant_core::cluster::Epoch;
use toolwarrant_memory::Memory;

/// Returns the events of a failover to a copy that is made at `at` and lags, in milliseconds.
pub(super) fn draw(random: &mut SplitMix, replicas: u64, at: u64, late: u64) -> Vec<(Duration, usize, Strike)> {
    let [one, other] = [0; 2].map(|_| random.below(replicas) as usize);
    let mut soon = |from: u64, span: u64| Duration::from_millis(from + random.below(span));
    let (late, strikes) = match soon(0, 3).as_millis() {
        // One misses beats of the other, which falls silent after as many as the copy lacks.
        0 => {
            let late = soon(1_500, 1_000).as_millis() as u64;
            let missed = (soon(at + late, 1), one, Strike::Mute(soon(1_500, 1_000)));
            (late, vec![missed, (soon(at + late + 1_000, 2_000), other, Strike::Freeze(Duration::from_secs(20)))])
        }
        // One starts again after the copy, takes a task on, and dies.
        1 => {
            let call = Call { application: NAMES[0].into(), wheel: 0, act: Act::Turn, key: None, patience: None };
            let stop = (soon(at - 4_000, 4_000), one, Strike::Stop(Duration::from_secs(1)));
            let call = (soon(at + 1_000, 1_500), one, Strike::Call(call, None));
            (3_000, vec![stop, call, (soon(at + 2_500, 500), one, Strike::Crash(Duration::from_secs(1)))])
        }
        _ => (late, Vec::new()),
    };
    let [copied, replaced] = [at, at + late].map(Duration::from_millis);
    [(copied, 0, Strike::Copy), (replaced, 0, Strike::FailOver)].into_iter().chain(strikes).collect()
}

impl Cluster {
    /// Makes a copy of the store.
    pub(super) fn copy_store(&self) {
        let holds = self.platters.holds.lock().expect("no panic").clone();
        *self.copy.lock().expect("no panic") = Some((self.platters.memory.copy(), holds));
    }

    /// Replaces the store by its copy. Its times of the tasks are behind. A run that the copy knows
    /// notices a loss: the one that was told, or one that has seen it.
    pub(super) fn fail_over(&self) {
        let Some((copy, holds)) = self.copy.lock().expect("no panic").take() else { return };
        let now = self.nature.clock.now();
        let (stores, seen) = (self.runs.stores.lock().expect("no panic"), self.runs.seen.lock().expect("no panic"));
        let lacks = |(epoch, store): (&Epoch, &Arc<Memory>)| {
            (store.count_acknowledged() > copy.count_writes(*epoch)).then_some(*epoch)
        };
        let can_notice =
            |lost: &Epoch| copy.knows(*lost) || seen.iter().any(|(epoch, newest)| newest >= lost && copy.knows(*epoch));
        let lost: Vec<_> = stores.iter().filter_map(lacks).collect();
        if !lost.is_empty() && !lost.iter().any(can_notice) {
            return;
        }
        self.disturb(now.plus(Duration::from_secs(10)));
        if !lost.is_empty() {
            self.nature.note(|| "the copy lacks acknowledged writes".to_owned());
            *self.clients.lost_at.lock().expect("no panic") = Some(now);
        }
        *self.platters.holds.lock().expect("no panic") = holds;
        self.platters.memory.fail_over(copy);
    }
}
