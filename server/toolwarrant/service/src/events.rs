//! Lines of the log about the life of a server.

use std::time::Duration;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_operator::OperatorContext;

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
