//! The text format in which Prometheus reads metrics, version 0.0.4.
//!
//! <https://prometheus.io/docs/instrumenting/exposition_formats/>. Names, labels and their values are the program's own and
//! need no escape; nothing that a client sends stands here.

use std::fmt::{Display, Write};
use toolwarrant_core::clock::Timestamp;
use toolwarrant_core::counts::{Durations, SPANS};

/// A page that is being written. Its metrics are a service's own: their names begin with that of the service.
#[derive(Debug)]
pub(crate) struct Page<'a> {
    prefix: &'a str,
    text: String,
}

/// Labels of a sample: names and values.
pub(crate) type Labels<'a> = &'a [(&'a str, &'a str)];

impl<'a> Page<'a> {
    /// A page without a metric.
    pub(crate) fn new(prefix: &'a str) -> Self {
        Self { prefix, text: String::new() }
    }

    /// When the process began; the one name that all programs share.
    pub(crate) fn start_time(&mut self, begun: Timestamp) {
        let name = "process_start_time_seconds";
        let _ = writeln!(self.text, "# HELP {name} When the program began, since the epoch.\n# TYPE {name} gauge");
        let _ = writeln!(self.text, "{name} {}", begun.0 / 1_000);
    }

    /// A number that only grows.
    pub(crate) fn counter(&mut self, name: &str, help: &str, count: u64) {
        self.head(name, "counter", help).sample(name, &[], count);
    }

    /// Numbers that only grow, told apart by one label.
    pub(crate) fn counters(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        counts: impl Iterator<Item = (&'static str, u64)>,
    ) {
        self.head(name, "counter", help);
        for (value, count) in counts {
            self.sample(name, &[(label, value)], count);
        }
    }

    /// A number that grows and shrinks.
    pub(crate) fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.head(name, "gauge", help).sample(name, &[], value);
    }

    /// How long things took, as a histogram in seconds; the caller has written the head.
    pub(crate) fn histogram(&mut self, name: &str, (label, value): (&str, &str), durations: &Durations) {
        let (spans, millis) = durations.get();
        let ends = SPANS.iter().map(|end| seconds(*end).to_string()).chain(["+Inf".to_owned()]);
        let mut all = 0;
        for (end, count) in ends.zip(spans) {
            all += count;
            self.sample(&format!("{name}_bucket"), &[(label, value), ("le", &end)], all);
        }
        self.sample(&format!("{name}_sum"), &[(label, value)], seconds(millis));
        self.sample(&format!("{name}_count"), &[(label, value)], all);
    }

    /// What comes before the samples of a metric.
    pub(crate) fn head(&mut self, name: &str, kind: &str, help: &str) -> &mut Self {
        let prefix = self.prefix;
        let _ = writeln!(self.text, "# HELP {prefix}{name} {help}\n# TYPE {prefix}{name} {kind}");
        self
    }

    /// One sample.
    pub(crate) fn sample(&mut self, name: &str, labels: Labels<'_>, value: impl Display) {
        self.text += self.prefix;
        self.text += name;
        for (n, (label, value)) in labels.iter().enumerate() {
            let _ = write!(self.text, "{}{label}=\"{value}\"", if n == 0 { "{" } else { "," });
        }
        let _ = writeln!(self.text, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    /// The page as it is sent.
    pub(crate) fn text(self) -> String {
        self.text
    }
}

#[expect(clippy::cast_precision_loss, reason = "a sum of milliseconds beyond 2^53 is no longer one of this process")]
fn seconds(millis: u64) -> f64 {
    millis as f64 / 1_000.0
}
