//! The life of a server that leads: when it must stop, and how it hands over.

use anyhow::{Result, anyhow};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};
use toolwarrant_operator::Shared;

pub(crate) struct ReplicaLife {
    pub(crate) shared: Shared,
}

impl ReplicaLife {
    /// Returns an error if this process may not lead any more.
    pub(crate) async fn wait_for_stop(this: Option<&mut Self>, stop: impl Future<Output = ()>) -> Result<()> {
        let leading = this.and_then(|Self { shared }| shared.leading.as_mut());
        let Some(leading) = leading else {
            stop.await;
            return Ok(());
        };
        tokio::select! {
            why = leading => Err(anyhow!("this process does not lead any more: {}", why?)),
            () = stop => Ok(()),
        }
    }

    /// Leaves at once. Nothing may be under way.
    pub(crate) async fn give_up(self) {
        let _ = timeout(GIVE_UP, self.shared.leave()).await;
    }

    /// Leaves, so that the process that waits leads. Then waits a moment until that answers:
    /// clients that have waited here are led to it.
    pub(crate) async fn hand_over(this: Option<Self>) {
        let Some(Self { shared }) = this else { return };
        let store = Arc::clone(&shared.store);
        shared.leave().await;
        let led = async {
            while matches!(store.leader().await, Ok(None)) {
                sleep(LOOK_EVERY).await;
            }
            sleep(NOTICED).await;
        };
        let _ = timeout(SUCCESSOR, led).await;
    }
}

const GIVE_UP: Duration = Duration::from_secs(1);

const LOOK_EVERY: Duration = Duration::from_millis(100);

/// For the successor to answer, and a balancer to notice it.
const NOTICED: Duration = Duration::from_secs(1);

const SUCCESSOR: Duration = Duration::from_millis(2_500);
