//! The text format in which Prometheus reads metrics, version 0.0.4.
//!
//! <https://prometheus.io/docs/instrumenting/exposition_formats/>. Names, labels and their values are the program's own and
//! need no escape; nothing that a client sends stands here.

use super::{Durations, SPANS};
use std::fmt::{Display, Write};

/// The media type of such a page.
pub const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A page that is being written.
#[derive(Debug, Default)]
pub struct Page(String);

/// Labels of a sample: names and values.
pub type Labels<'a> = &'a [(&'a str, &'a str)];

impl Page {
    /// A number that only grows.
    pub fn counter(&mut self, name: &str, help: &str, count: u64) {
        self.head(name, "counter", help).sample(name, &[], count);
    }

    /// Numbers that only grow, told apart by one label.
    pub fn counters(&mut self, name: &str, help: &str, label: &str, counts: impl Iterator<Item = (&'static str, u64)>) {
        self.head(name, "counter", help);
        for (value, count) in counts {
            self.sample(name, &[(label, value)], count);
        }
    }

    /// A number that grows and shrinks.
    pub fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.head(name, "gauge", help).sample(name, &[], value);
    }

    /// How long things took, as a histogram in seconds; the caller has written the head.
    pub fn histogram(&mut self, name: &str, (label, value): (&str, &str), durations: &Durations) {
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
    pub fn head(&mut self, name: &str, kind: &str, help: &str) -> &mut Self {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
        self
    }

    /// One sample.
    pub fn sample(&mut self, name: &str, labels: Labels<'_>, value: impl Display) {
        self.0 += name;
        for (n, (label, value)) in labels.iter().enumerate() {
            let _ = write!(self.0, "{}{label}=\"{value}\"", if n == 0 { "{" } else { "," });
        }
        let _ = writeln!(self.0, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    /// The page as it is sent.
    #[must_use]
    pub fn text(self) -> String {
        self.0
    }
}

#[expect(clippy::cast_precision_loss, reason = "a sum of milliseconds beyond 2^53 is no longer one of this process")]
fn seconds(millis: u64) -> f64 {
    millis as f64 / 1_000.0
}
