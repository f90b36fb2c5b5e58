//! Writes metrics in the
//! [Prometheus text format](https://prometheus.io/docs/instrumenting/exposition_formats/), version
//! 0.0.4. Names and label values come from the program, so they need no escaping. Start at
//! [`Page`].

use std::fmt::{Display, Write};
use toolwarrant_base::clock::Timestamp;
use toolwarrant_core::counts::{Durations, SPANS};

#[derive(Debug)]
pub(crate) struct Page<'a> {
    prefix: &'a str,
    text: String,
}

pub(crate) type Labels<'a> = &'a [(&'a str, &'a str)];

impl<'a> Page<'a> {
    pub(crate) fn new(prefix: &'a str) -> Self {
        Self { prefix, text: String::new() }
    }

    /// Uses a name that is the same in all programs and therefore has no prefix.
    pub(crate) fn start_time(&mut self, started_at: Timestamp) {
        let name = "process_start_time_seconds";
        let _ =
            writeln!(self.text, "# HELP {name} Start time of the process, since the Unix epoch.\n# TYPE {name} gauge");
        let _ = writeln!(self.text, "{name} {}", started_at.0 / 1_000);
    }

    pub(crate) fn counter(&mut self, name: &str, help: &str, count: u64) {
        self.head(name, "counter", help).sample(name, &[], count);
    }

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

    pub(crate) fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.head(name, "gauge", help).sample(name, &[], value);
    }

    /// Adds durations in seconds. The caller adds the head.
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

    pub(crate) fn head(&mut self, name: &str, kind: &str, help: &str) -> &mut Self {
        let prefix = self.prefix;
        let _ = writeln!(self.text, "# HELP {prefix}{name} {help}\n# TYPE {prefix}{name} {kind}");
        self
    }

    pub(crate) fn sample(&mut self, name: &str, labels: Labels<'_>, value: impl Display) {
        self.text += self.prefix;
        self.text += name;
        for (n, (label, value)) in labels.iter().enumerate() {
            let _ = write!(self.text, "{}{label}=\"{value}\"", if n == 0 { "{" } else { "," });
        }
        let _ = writeln!(self.text, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    pub(crate) fn text(self) -> String {
        self.text
    }
}

#[expect(clippy::cast_precision_loss, reason = "no process runs for 2^53 milliseconds")]
fn seconds(millis: u64) -> f64 {
    millis as f64 / 1_000.0
}
