//! The log, on standard error.

use toolwarrant_operator::cli::{Log, LogFormat};

/// Begins the log.
pub(crate) fn begin(Log { level, format }: Log) {
    // Where it goes may be full or gone; that must not end a thread.
    let lines = tracing_subscriber::fmt().with_writer(std::io::stderr).with_target(false).log_internal_errors(false);
    let lines = lines.with_max_level(level);
    match format {
        LogFormat::Text => lines.init(),
        LogFormat::Json => lines.json().flatten_event(true).init(),
    }
}
