//! The core of a server, over an opened data folder: audit, engine, nonces and pipeline. Programs
//! and test servers compose it.

use anyhow::{Context, Result};
use std::sync::Arc;
use toolwarrant_base::random::Random;
use toolwarrant_core::nonces::Nonces;
use toolwarrant_core::pipeline::{Handlers, Pipeline};
use toolwarrant_operator::OpenedData;
use toolwarrant_operator::data::{AUDIT, DataFolder};
use toolwarrant_operator::keeping::{AuditKeeper, AuditOptions};
use toolwarrant_tasks::engine::{Engine, Parts};
use toolwarrant_tasks::executor::Executor;

/// The parts from which a core is composed.
pub struct Core<'a> {
    /// Carries tasks out.
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

impl Core<'_> {
    /// Starts the audit, and reads what is in flight. Returns the pipeline, the engine, which does
    /// not run yet, and the keeper of the trail.
    pub async fn compose<H: Handlers>(self, handlers: H) -> Result<(Pipeline<H>, Arc<Engine>, AuditKeeper)> {
        let Self { executor, folder, data, random, audit, max_in_flight } = self;
        let OpenedData { registry, keyring, database, shared, clock } = data;
        let (trail, without_address) = (folder.join(AUDIT), audit.without_address);
        let audit = AuditKeeper::start(&trail, keyring, clock.clone(), database.clone(), audit).await;
        let (audit, keeper) = audit.with_context(|| format!("cannot write to {}", trail.display()))?;
        let engine = Engine::start(Parts {
            store: database.clone(),
            executor,
            catalogue: Some(H::CATALOGUE),
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
        let pipeline = Pipeline::new(handlers, registry.access(), audit, engine.clone(), nonces, clock.clone());
        let pipeline = if without_address { pipeline.without_addresses() } else { pipeline };
        Ok((pipeline, engine, keeper))
    }
}
