//! Writes metrics in the
//! [Prometheus text format](https://prometheus.io/docs/instrumenting/exposition_formats/), version
//! 0.0.4. Names and label values come from the program, so they need no escaping. Start at
//! [`MetricsPage`].

use crate::metric::Metric;
use crate::names::Names;
use std::fmt::{Display, Write};
use toolwarrant_core::counts::{Durations, SPANS};

/// The caller adds the samples of a metric one after the other; the first one adds its head.
#[derive(Debug)]
pub(crate) struct MetricsPage<'a> {
    names: &'a Names,
    last: Option<&'static Metric>,
    text: String,
}

impl<'a> MetricsPage<'a> {
    pub(crate) fn new(names: &'a Names) -> Self {
        Self { names, last: None, text: String::new() }
    }

    pub(crate) fn one(&mut self, metric: &'static Metric, value: impl Display) {
        self.sample(metric, &[], value);
    }

    /// Adds a sample for each value of the only label.
    pub(crate) fn each<'v>(&mut self, metric: &'static Metric, counts: impl Iterator<Item = (&'v str, u64)>) {
        counts.for_each(|(value, count)| self.sample(metric, &[value], count));
    }

    /// The values are those of the labels of the row, in its order.
    pub(crate) fn sample(&mut self, metric: &'static Metric, values: &[&str], value: impl Display) {
        self.line(metric, "", values, None, value);
    }

    /// Adds durations in seconds.
    pub(crate) fn histogram(&mut self, metric: &'static Metric, values: &[&str], durations: &Durations) {
        let (spans, micros) = durations.get();
        let ends = SPANS.iter().map(|end| seconds(*end).to_string()).chain(["+Inf".to_owned()]);
        let mut all = 0;
        for (end, count) in ends.zip(spans) {
            all += count;
            self.line(metric, "_bucket", values, Some(&end), all);
        }
        self.line(metric, "_sum", values, None, seconds(micros));
        self.line(metric, "_count", values, None, all);
    }

    fn line(&mut self, metric: &'static Metric, part: &str, values: &[&str], end: Option<&str>, value: impl Display) {
        let Metric { name, kind, labels, help } = metric;
        let prefix = metric.prefix(self.names);
        if self.last.replace(metric) != Some(metric) {
            let _ = writeln!(self.text, "# HELP {prefix}{name} {help}\n# TYPE {prefix}{name} {kind}");
        }
        let _ = write!(self.text, "{prefix}{name}{part}");
        let labels = labels.iter().zip(values).chain(end.as_ref().map(|end| (&"le", end)));
        let labels: Vec<_> = labels.map(|(label, value)| format!("{label}=\"{value}\"")).collect();
        let _ = match labels.is_empty() {
            true => writeln!(self.text, " {value}"),
            false => writeln!(self.text, "{{{}}} {value}", labels.join(",")),
        };
    }

    pub(crate) fn text(self) -> String {
        self.text
    }
}

#[expect(clippy::cast_precision_loss, reason = "a sum of 2^53 microseconds is of 285 years")]
fn seconds(micros: u64) -> f64 {
    micros as f64 / 1_000_000.0
}
