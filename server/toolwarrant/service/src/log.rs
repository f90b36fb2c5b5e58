//! The output of the program: log and errors on standard error, the rest on standard output.
//! Nothing here waits for either.

use crate::outlet::Outlet;
use anyhow::{Context, Result};
use std::io::{stderr, stdout};
use std::panic::{self, PanicHookInfo};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};
use toolwarrant_base::text::clean;
use toolwarrant_core::counts::LOST_LINES;
use toolwarrant_operator::cli::{LogFormat, LogOptions};

/// A pipe without a reader must not keep the program from ending.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Dropping this waits for the last lines.
pub(crate) struct Streams {
    output: Outlet,
    error: Outlet,
}

impl Streams {
    pub(crate) fn start() -> Result<Self> {
        let no_thread = "cannot start a thread that writes what this program says";
        let output = Outlet::start("stdout", stdout(), || ()).context(no_thread)?;
        let error = Outlet::start("stderr", stderr(), report_lost).context(no_thread)?;
        Ok(Self { output, error })
    }

    pub(crate) fn log(&self, LogOptions { level, format }: LogOptions) {
        // The writer takes each event as one piece.
        let error = Arc::new(self.error.clone());
        let lines = tracing_subscriber::fmt().with_target(false).log_internal_errors(false).with_max_level(level);
        match format {
            LogFormat::Text => lines.with_writer(error).init(),
            LogFormat::Json => lines.with_writer(error).json().flatten_event(true).init(),
        }
        panic::set_hook(Box::new(log_panic));
    }

    pub(crate) fn say(&self, text: &str) {
        self.output.put(text.as_bytes());
    }

    pub(crate) fn complain(&self, text: &str) {
        self.error.put(text.as_bytes());
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        let end = Instant::now() + LAST_WORDS;
        self.output.flush(end);
        self.error.flush(end);
    }
}

/// Logs lost lines as errors, because they can have any level.
fn report_lost() {
    static REPORTED: AtomicU64 = AtomicU64::new(0);
    let lost = LOST_LINES.get();
    let lines = lost.saturating_sub(REPORTED.swap(lost, Relaxed));
    if lines > 0 {
        tracing::error!(lines, "lines were lost, because standard output or standard error did not take them");
    }
}

fn log_panic(panic: &PanicHookInfo<'_>) {
    let place = panic.location().map(ToString::to_string);
    let what = panic.payload_as_str().unwrap_or("without a word");
    tracing::error!(thread = thread::current().name(), place, what = &*clean(what), "panicked");
}
