//! The lines of the log about the life of a server: its start, its stop, and keys that end.

use crate::server::Server;
use std::time::Duration;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_operator::OperatorContext;

impl Server {
    pub(crate) async fn log_start(&self) {
        let Self { listener, url, monitor, replica, layout, context, engine, names, folder, .. } = self;
        let listens = listener.local_addr().ok().map(tracing::field::display);
        let monitor = monitor.as_ref().map(|monitor| tracing::field::display(monitor.address()));
        let store = match replica {
            None => folder.path().display().to_string(),
            Some(life) => format!("PostgreSQL, as the replica {}", life.shared.store.name()),
        };
        let applications = context.registry.applications().await.len();
        let keys = context.registry.keys(|key| !key.secrets.is_empty()).await.len();
        let (version, tasks_in_flight, last_stop) = (names.version, engine.in_flight(), folder.begin_run());
        tracing::info!(
            version,
            listens,
            url,
            monitor,
            store,
            layout,
            applications,
            keys,
            tasks_in_flight,
            last_stop,
            "the server starts"
        );
    }
}

pub(crate) fn log_stop(why: &str, tasks_in_flight: usize, uptime: Duration) {
    tracing::info!(why, tasks_in_flight, uptime_seconds = uptime.as_secs(), "the server stops");
}

/// Logs each key whose time has ended after `since`, and returns the moment until which it looked.
pub(crate) async fn log_ended_keys(context: &OperatorContext, since: Timestamp) -> Timestamp {
    let now = context.clock.latest();
    let ended = |end: Timestamp| since < end && end <= now;
    for key in context.registry.keys(|key| !key.secrets.is_empty() && key.expires_at.is_some_and(ended)).await {
        let application = context.registry.find(&key.application).await.map(|row| row.name).unwrap_or_default();
        tracing::info!(key = key.id, application, "a key has expired");
    }
    now
}
