//! The output of the program: log and errors on standard error, the rest on standard output.
//! Nothing here waits for either.

use crate::outlet::Outlet;
use anyhow::{Context, Result};
use rustix::fs::fstat;
use std::fmt;
use std::io::{stderr, stdout};
use std::panic::{self, PanicHookInfo};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use std::{env, thread};
use toolwarrant_base::text::clean;
use toolwarrant_core::counts::LOST_LINES;
use toolwarrant_operator::cli::{LogFormat, LogOptions};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::{Format, JsonFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

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
        let lines = tracing_subscriber::fmt().log_internal_errors(false).with_max_level(level).with_writer(error);
        let (text, json) =
            (Format::default().with_target(false), Format::default().with_target(false).json().flatten_event(true));
        match (format, is_journal()) {
            (LogFormat::Text, false) => lines.event_format(text).init(),
            // The journal has the time of each line, and no colours.
            (LogFormat::Text, true) => {
                lines.with_ansi(false).event_format(WithPriority(text.without_time().with_level(false))).init()
            }
            (LogFormat::Json, false) => lines.fmt_fields(JsonFields::new()).event_format(json).init(),
            (LogFormat::Json, true) => lines.fmt_fields(JsonFields::new()).event_format(WithPriority(json)).init(),
        }
        panic::set_hook(Box::new(log_panic));
    }

    pub(crate) fn say(&self, text: &str) {
        self.output.put(text.as_bytes());
    }

    pub(crate) fn complain(&self, text: &str) {
        if is_journal() {
            self.error.put(b"<3>");
        }
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

/// Begins each line with the priority of its level, which the journal takes from there.
struct WithPriority<F>(F);

impl<S, N, F> FormatEvent<S, N> for WithPriority<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut line: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let priority = match *event.metadata().level() {
            Level::ERROR => 3,
            Level::WARN => 4,
            Level::INFO => 6,
            _ => 7,
        };
        write!(line, "<{priority}>")?;
        let Self(format) = self;
        format.format_event(context, line, event)
    }
}

/// Returns true if standard error is the journal, as systemd says.
fn is_journal() -> bool {
    let journal = env::var("JOURNAL_STREAM").unwrap_or_default();
    fstat(stderr()).is_ok_and(|about| journal == format!("{}:{}", about.st_dev, about.st_ino))
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
