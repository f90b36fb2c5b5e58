//! The monitoring data of a replica: its lease, the other replicas, and the health of the server
//! that they share.

use crate::context::Shared;
use crate::prometheus::Page;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, timeout};
use toolwarrant_base::ignore_poison;
use toolwarrant_core::cluster::{Cluster, Membership, StoreTrust};
use toolwarrant_core::store::StoreError;
use toolwarrant_postgres::{COUNTED_MAX, Postgres, Safekeeping, ServerFigures};
use toolwarrant_store::{Integrity, IntegrityRule};

/// Time for which figures are shown before they are read again, however often monitors ask.
const SHOWN: Duration = Duration::from_secs(10);

/// Time for the server to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Age of the oldest transaction from which it is remarked.
const HORIZON_REMARKED: Duration = Duration::from_mins(10);

/// The status of a replica.
pub struct ReplicaStatus {
    store: Arc<Postgres>,
    member: Arc<Membership>,
    figures: Mutex<ShownFigures>,
}

/// The figures that were read last.
#[derive(Default)]
struct ShownFigures {
    read_at: Option<Instant>,
    /// `None` if the server has not answered.
    figures: Option<Figures>,
}

#[derive(Clone)]
struct Figures {
    server: ServerFigures,
    /// Number of violations of the rule about refunds.
    refunds: usize,
}

impl ReplicaStatus {
    /// Returns the status of the replica that this store was joined as.
    #[must_use]
    pub fn new(Shared { store, sharing, .. }: &Shared) -> Self {
        Self { store: Arc::clone(store), member: Arc::clone(&sharing.member), figures: Mutex::default() }
    }

    /// Returns the reason why the replica may not answer, if there is one.
    pub(crate) fn why_unready(&self) -> Option<String> {
        if self.member.lease().stands() {
            return None;
        }
        Some(match &*self.member.trust().borrow() {
            StoreTrust::Settled => {
                "the lease of this replica is over, because the store does not confirm its beats".to_owned()
            }
            StoreTrust::Unsettled => {
                "a copy has replaced the store, and not every replica has looked for its writes in it".to_owned()
            }
            StoreTrust::Lost(why) => {
                format!("the store has lost acknowledged writes: {why}; `cluster accept-loss` goes on without them")
            }
        })
    }

    /// Reads the figures again if they are old.
    pub(crate) async fn refresh(&self) {
        {
            let mut shown = ignore_poison(self.figures.lock());
            if shown.read_at.is_some_and(|at| at.elapsed() < SHOWN) {
                return;
            }
            shown.read_at = Some(Instant::now());
        }
        let figures = timeout(PATIENCE, self.read()).await;
        ignore_poison(self.figures.lock()).figures = figures.ok().and_then(Result::ok);
    }

    async fn read(&self) -> Result<Figures, StoreError> {
        let server = self.store.server_figures().await?;
        Ok(Figures { server, refunds: self.store.violations(IntegrityRule::Refunds).await?.len() })
    }

    fn figures(&self) -> Option<Figures> {
        ignore_poison(self.figures.lock()).figures.clone()
    }

    /// Returns the number of violations of the rule about refunds, if it is known.
    pub(crate) fn refund_violations(&self) -> Option<usize> {
        self.figures().map(|figures| figures.refunds)
    }

    /// Returns the problems of the server with which a replica works.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let Some(Figures { server, .. }) = self.figures() else { return Vec::new() };
        let ServerFigures { safekeeping, default_rows, horizon, .. } = server;
        let unsafe_data = (safekeeping != Safekeeping::TwoServers)
            .then(|| format!("acknowledged data is {}", safekeeping.describe()));
        let rows = (default_rows > 0).then(|| {
            format!("default partitions have {default_rows} rows, which keep days from having partitions; see `doctor`")
        });
        let open = (horizon >= HORIZON_REMARKED).then(|| {
            let minutes = horizon.as_secs() / 60;
            format!("a transaction has been open for {minutes} minutes, so dead rows slow the store down; see `doctor`")
        });
        [unsafe_data, rows, open].into_iter().flatten().collect()
    }

    /// Adds the metrics.
    pub(crate) fn metrics(&self, page: &mut Page<'_>) {
        page.gauge("replica_epoch", "The run of this replica; a later run has a greater one.", self.member.epoch());
        let help = "1 while this replica may answer, 0 after the end of its lease.";
        page.gauge("replica_lease", help, u8::from(self.member.lease().stands()));
        // Without an answer there is no sample, because an old number would hide a fault.
        let Some(Figures { server, .. }) = self.figures() else { return };
        let ServerFigures { safekeeping, replicas, orphans, default_rows, dead_rows, horizon } = server;
        page.gauge("replicas", "Replicas that share the store and have not ended.", replicas);
        let help = "Tasks in flight whose replica has ended, and that no other has adopted yet.";
        page.gauge("tasks_without_owner", help, orphans);
        let servers = match safekeeping {
            Safekeeping::Nowhere => 0,
            Safekeeping::OneServer => 1,
            Safekeeping::TwoServers => 2,
        };
        page.gauge("store_safe_copies", "Servers that have a write when it is acknowledged.", servers);
        let help = format!("Rows in default partitions, of each at most {COUNTED_MAX} counted.");
        page.gauge("store_default_partition_rows", &help, default_rows);
        page.head("store_dead_rows", "gauge", "Dead rows in the tables that change often.");
        for (table, rows) in &dead_rows {
            page.sample("store_dead_rows", &[("table", table)], rows);
        }
        let help = "Age of the oldest transaction that keeps dead rows.";
        page.gauge("store_horizon_seconds", help, horizon.as_secs());
    }
}
