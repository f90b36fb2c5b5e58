//! The life of a server that leads: when it must stop, and how it hands over.

use anyhow::{Result, anyhow};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};
use toolwarrant_operator::Shared;

/// A server that shares its store.
pub(crate) struct ReplicaLife {
    /// The store and the membership.
    pub(crate) shared: Shared,
}

impl ReplicaLife {
    /// Waits until the program or this replica has to stop. Returns an error if it may not lead any
    /// more.
    pub(crate) async fn wait_for_stop(this: Option<&mut Self>, stop: impl Future<Output = ()>) -> Result<()> {
        let Some(Self { shared: Shared { claim, sharing, running, .. }, .. }) = this else {
            stop.await;
            return Ok(());
        };
        let lost = async {
            match claim {
                Some(claim) => claim.wait_for_end().await,
                None => pending().await,
            }
        };
        tokio::select! {
            why = lost => Err(anyhow!("this process does not lead any more, because its session has ended: {why}")),
            () = stop => Ok(()),
            () = sharing.member.wait_for_drain() => {
                tracing::info!("an operator has asked this replica to stop");
                Ok(())
            }
            ended = running => Ok(ended.unwrap_or(Ok(()))?),
        }
    }

    /// Leaves at once, because it does not lead any more. Nothing of it may be under way.
    pub(crate) async fn give_up(self) {
        self.shared.sharing.member.end_lease();
        let _ = timeout(GIVE_UP, self.shared.leave()).await;
    }

    /// Gives back what it holds, and leaves, so that the process that waits leads at once. Then
    /// waits until that answers, for a moment at most: clients that have waited here are led to it.
    pub(crate) async fn hand_over(self) {
        let Self { shared, .. } = self;
        shared.sharing.budgets.give_back().await;
        let store = Arc::clone(&shared.store);
        shared.leave().await;
        let led = async {
            while !store.has_leader().await.unwrap_or(true) {
                sleep(LOOK_EVERY).await;
            }
            sleep(NOTICED).await;
        };
        let _ = timeout(SUCCESSOR, led).await;
    }
}

/// Time in which a process that does not lead any more tells the store that it has left.
const GIVE_UP: Duration = Duration::from_secs(1);

/// Interval at which a process that has left looks for its successor.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Time in which the successor answers and a balancer notices that.
const NOTICED: Duration = Duration::from_secs(1);

/// Time that a process that has left waits for all of this.
const SUCCESSOR: Duration = Duration::from_millis(2_500);
