//! Records the time of a server for the next start, and warns when the clock of the machine is set.

use std::sync::Arc;
use std::time::Duration;
use toolwarrant_base::BoxFuture;
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_core::store::DirectoryStore;
use toolwarrant_operator::until;

const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Between two records of the time.
const LOOKS: u32 = 12;

/// In milliseconds between two looks. Time servers correct by less.
const STEP: u64 = 2_000;

/// Records the time a last time after `stopped`.
pub(crate) async fn keep(clock: Clock, store: Arc<dyn DirectoryStore>, stopped: BoxFuture<'static, ()>) {
    until(stopped, watch(&clock, &*store)).await;
    record(&clock, &*store).await;
}

async fn watch(clock: &Clock, store: &dyn DirectoryStore) {
    let ahead = || (clock.wall(), clock.now());
    let mut before = ahead();
    // If this process is killed soon, the next one compares its clock with this time.
    record(clock, store).await;
    loop {
        for _ in 0..LOOKS {
            tokio::time::sleep(LOOK_EVERY).await;
            let now = ahead();
            tell(before, now);
            before = now;
        }
        clock.prove();
        record(clock, store).await;
    }
}

async fn record(clock: &Clock, store: &dyn DirectoryStore) {
    if let Err(error) = store.see(clock.floor()).await {
        tracing::error!(%error, "the time could not be recorded; the next start may go back behind it");
    }
}

fn tell((wall, now): (Timestamp, Timestamp), (wall_after, after): (Timestamp, Timestamp)) {
    let expected = Timestamp(wall.0.saturating_add(after.0 - now.0));
    let seconds = expected.0.abs_diff(wall_after.0) / 1000;
    if expected.0.abs_diff(wall_after.0) < STEP {
        return;
    }
    if wall_after > expected {
        tracing::warn!(seconds, "the machine's clock went ahead, or the machine slept; keys end by the later clock");
    } else {
        tracing::warn!(seconds, "the machine's clock was set back; times go on, and nothing that has ended comes back");
    }
}
