//! The life of a server as one of several replicas: when it must stop, how it drains, and how it
//! leaves.

use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use toolwarrant_core::cluster::{Eviction, ReplicaState};
use toolwarrant_operator::{Shared, StoreOptions};
use toolwarrant_tasks::engine::Engine;

/// A server that shares its store.
pub(crate) struct ReplicaLife {
    /// The store and the membership.
    pub(crate) shared: Shared,
    /// Time for which it still answers when it has to stop.
    drain: Duration,
    /// Passes notices on, until this is dropped.
    _hearing: JoinSet<()>,
}

impl ReplicaLife {
    /// Returns the life of a replica; `None` for a server with a store of its own.
    pub(crate) fn new(shared: Option<Shared>, options: &StoreOptions, engine: &Arc<Engine>) -> Option<Self> {
        let drain = Duration::from_secs(options.drain_seconds);
        shared.map(|shared| {
            let hearing = JoinSet::from_iter([shared.hear(Arc::clone(engine))]);
            Self { shared, drain, _hearing: hearing }
        })
    }

    /// Waits until the program or this replica has to stop. Returns an error if it was evicted.
    pub(crate) async fn wait_for_stop(this: Option<&mut Self>, stop: impl Future<Output = ()>) -> Result<(), Eviction> {
        let Some(Self { shared, .. }) = this else {
            stop.await;
            return Ok(());
        };
        tokio::select! {
            () = stop => Ok(()),
            () = shared.sharing.member.wait_for_drain() => {
                tracing::info!("an operator has asked this replica to stop");
                Ok(())
            }
            ended = &mut shared.running => ended.unwrap_or(Ok(())),
        }
    }

    /// Says that it is about to leave, and waits until a balancer sends no more requests.
    pub(crate) async fn drain(&self) {
        self.shared.sharing.member.set_state(ReplicaState::Draining);
        tokio::time::sleep(self.drain).await;
    }

    /// Gives back what it holds, and leaves, so that others take its tasks over at once.
    pub(crate) async fn leave(self) {
        self.shared.sharing.budgets.give_back().await;
        self.shared.leave().await;
    }
}
