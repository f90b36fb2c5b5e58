//! The monitoring data of a process with a store in PostgreSQL: its lease, and the health of the
//! server. Start at [`ReplicaStatus`].

use crate::metric;
use crate::prometheus::MetricsPage;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, timeout};
use toolwarrant_base::ignore_poison;
use toolwarrant_core::lease::Lease;
use toolwarrant_core::store::StoreError;
use toolwarrant_postgres::{Postgres, Safekeeping, ServerFigures};
use toolwarrant_store::{Integrity, IntegrityRule};

const SHOWN: Duration = Duration::from_secs(10);

const PATIENCE: Duration = Duration::from_secs(2);

const HORIZON_REMARKED: Duration = Duration::from_mins(10);

pub struct ReplicaStatus {
    store: Arc<Postgres>,
    lease: Lease,
    figures: Mutex<ShownFigures>,
}

#[derive(Default)]
struct ShownFigures {
    read_at: Option<Instant>,
    figures: Option<Figures>,
}

#[derive(Clone)]
struct Figures {
    server: ServerFigures,
    refunds: usize,
}

impl ReplicaStatus {
    #[must_use]
    pub fn new(store: Arc<Postgres>, lease: Lease) -> Self {
        Self { store, lease, figures: Mutex::default() }
    }

    pub(crate) async fn why_unready(&self) -> Option<String> {
        let why = "the lease of this process is over, because PostgreSQL does not confirm its beats";
        if self.lease.stands() { None } else { Some(self.explain(why.to_owned()).await) }
    }

    pub(crate) fn is_refused(&self) -> bool {
        self.store.describe_refusal().is_some()
    }

    pub(crate) async fn explain(&self, fault: String) -> String {
        match timeout(PATIENCE, self.store.find_obstacle()).await {
            Ok(Ok(Some(obstacle))) => format!("{fault}: {obstacle}"),
            Ok(Err(error)) => format!("{fault}: {error}"),
            _ => fault,
        }
    }

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

    pub(crate) fn refund_violations(&self) -> Option<usize> {
        self.figures().map(|figures| figures.refunds)
    }

    pub(crate) fn remarks(&self) -> Vec<String> {
        let refusal = self.store.describe_refusal();
        let Some(Figures { server, .. }) = self.figures() else { return refusal.into_iter().collect() };
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
        [refusal, unsafe_data, rows, open].into_iter().flatten().collect()
    }

    pub(crate) fn metrics(&self, page: &mut MetricsPage<'_>) {
        page.one(&metric::replica_epoch, self.store.epoch());
        page.one(&metric::replica_lease, u8::from(self.lease.stands()));
        page.one(&metric::replica_waits, 0);
        // Without an answer there is no sample, because an old number would hide a fault.
        let Some(Figures { server, .. }) = self.figures() else { return };
        let ServerFigures { safekeeping, has_standby, default_rows, dead_rows, horizon } = server;
        let servers = match safekeeping {
            Safekeeping::Nowhere => 0,
            Safekeeping::TwoServers if has_standby => 2,
            Safekeeping::OneServer | Safekeeping::TwoServers => 1,
        };
        page.one(&metric::store_safe_copies, servers);
        page.one(&metric::store_default_partition_rows, default_rows);
        for (table, rows) in &dead_rows {
            page.sample(&metric::store_dead_rows, &[table], rows);
        }
        page.one(&metric::store_horizon_seconds, horizon.as_secs());
    }
}
