//! Sets up the log, which goes to standard error.

use toolwarrant_operator::cli::{LogFormat, LogOptions};

/// Starts the log.
pub(crate) fn start(LogOptions { level, format }: LogOptions) {
    // Standard error may be full or closed, which must not end a thread.
    let lines = tracing_subscriber::fmt().with_writer(std::io::stderr).with_target(false).log_internal_errors(false);
    let lines = lines.with_max_level(level);
    match format {
        LogFormat::Text => lines.init(),
        LogFormat::Json => lines.json().flatten_event(true).init(),
    }
}
