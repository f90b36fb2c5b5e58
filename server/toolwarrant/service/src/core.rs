//! The core of a server, over an opened data folder: audit, engine, nonces and pipeline. Programs
//! and test servers compose it.

use anyhow::{Context, Result};
use std::sync::Arc;
use toolwarrant_audit::Audit;
use toolwarrant_base::random::Random;
use toolwarrant_core::catalogue::Catalogue;
use toolwarrant_core::nonces::Nonces;
use toolwarrant_core::pipeline::{Handlers, Pipeline};
use toolwarrant_operator::OpenedData;
use toolwarrant_operator::data::{AUDIT, DataFolder};
use toolwarrant_operator::keeping::{AuditKeeper, AuditOptions};
use toolwarrant_tasks::engine::{Engine, Parts};
use toolwarrant_tasks::executor::Executor;

/// The parts of a core.
pub struct CoreParts<'a> {
    /// The contract.
    pub catalogue: &'static Catalogue,
    /// `None` for a contract without tasks.
    pub executor: Arc<dyn Executor>,
    /// The audit trail is written there.
    pub folder: &'a DataFolder,
    /// The opened data.
    pub data: &'a OpenedData,
    /// Randomness for ids.
    pub random: Random,
    /// The options of the audit.
    pub audit: AuditOptions,
    /// The most in flight.
    pub max_in_flight: usize,
}

/// A composed core. Only the writer of the audit runs yet.
pub struct Core {
    /// Does not run yet.
    pub engine: Arc<Engine>,
    /// The retention of the trail.
    pub keeper: AuditKeeper,
    audit: Audit,
    nonces: Nonces,
    without_address: bool,
}

impl Core {
    /// Starts the audit, and reads what is in flight.
    pub async fn compose(parts: CoreParts<'_>) -> Result<Self> {
        let CoreParts { catalogue, executor, folder, data, random, audit, max_in_flight } = parts;
        let OpenedData { registry, keyring, database, shared, clock } = data;
        let (trail, without_address) = (folder.join(AUDIT), audit.without_address);
        let audit = AuditKeeper::start(&trail, keyring, clock.clone(), database.clone(), audit).await;
        let (audit, keeper) = audit.with_context(|| format!("cannot write to {}", trail.display()))?;
        let engine = Engine::start(Parts {
            store: database.clone(),
            executor,
            catalogue: Some(catalogue),
            keyring: keyring.clone(),
            clock: clock.clone(),
            random,
            max_in_flight,
            lease: shared.as_ref().map(|shared| shared.lease.clone()),
        });
        let engine = engine.await.context("cannot read the tasks in flight")?;
        if let Some(unreadable) = engine.describe_unreadable() {
            tracing::warn!(
                "{unreadable}; nothing more is sent for them, and what no probe can show ends without a refund; `doctor` says why"
            );
        }
        let mut nonces = Nonces::new(clock.clone()).since(database.restored_at());
        if shared.is_some() {
            nonces = nonces.after_another_machine();
        }
        let read = engine.first_read().await.context("cannot read the nonces of signed requests")?;
        nonces = nonces.after_runs(&registry.access(), read.as_deref());
        Ok(Self { engine, keeper, audit, nonces, without_address })
    }

    /// Returns the pipeline and the other parts.
    pub fn pipeline<H: Handlers>(self, handlers: H, data: &OpenedData) -> (Pipeline<H>, Arc<Engine>, AuditKeeper) {
        let Self { engine, keeper, audit, nonces, without_address } = self;
        let OpenedData { registry, clock, .. } = data;
        let pipeline = Pipeline::new(handlers, registry.access(), audit, engine.clone(), nonces, clock.clone());
        let pipeline = if without_address { pipeline.without_addresses() } else { pipeline };
        (pipeline, engine, keeper)
    }
}
