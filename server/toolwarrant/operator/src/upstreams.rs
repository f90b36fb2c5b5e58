//! What those who watch a service see of the upstreams that run its targets: whether each can be reached, and how old what is known is.

use crate::prometheus::Page;

/// The upstreams of a service, as they are now. A service that has none, or asks its own process, needs no such thing.
///
/// No state of an upstream makes the service unready. A load balancer that took the server away would help nobody: what the others run
/// is whole, tasks are read and go on, and writes to what cannot be reached are refused with a reason and charge nothing. This holds also
/// where every upstream is down or was never read, as at a start. `/readyz` names those that cannot be reached in its text; the metrics
/// `upstream_reachable` and `upstream_age_seconds` are there to raise an alarm.
pub trait Upstreams: Send + Sync + 'static {
    /// The state of each, in a steady order. It is asked by whoever watches, so it reads memory and asks no upstream.
    fn states(&self) -> Vec<UpstreamState>;
}

/// The state of one upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamState {
    /// Its name, from the configuration. It is a label of metrics, so it has no quote, backslash or line end.
    pub name: String,
    /// What kind of upstream it is.
    pub kind: &'static str,
    /// Whether it answered when it was asked last.
    pub reachable: bool,
    /// For how many seconds what is known of its targets has been known. `None`: they were never read.
    pub age_seconds: Option<u64>,
    /// How many targets it is known to have.
    pub targets: u64,
    /// How many calls there were since the start, by outcome. The outcomes are the same at any time.
    pub calls: Vec<(&'static str, u64)>,
    /// How many calls wait for their turn.
    pub waiting: u64,
    /// How many calls its breaker has refused since the start.
    pub refused: u64,
}

/// What a service that is ready says of the upstreams that it cannot reach, if there is one.
pub(crate) fn remark(states: &[UpstreamState]) -> Option<String> {
    let state = |UpstreamState { name, kind, reachable, age_seconds, .. }: &UpstreamState| {
        let known = match age_seconds {
            None => "its targets were never read".to_owned(),
            Some(age) => format!("what is known of its targets is {age} s old"),
        };
        (!reachable).then(|| format!("the upstream {name} ({kind}) cannot be reached: {known}"))
    };
    let down: Vec<_> = states.iter().filter_map(state).collect();
    (!down.is_empty()).then(|| down.join("\n"))
}

/// Adds the metrics of all upstreams.
pub(crate) fn metrics(page: &mut Page<'_>, states: &[UpstreamState]) {
    let mut each = |name: &str, kind: &str, help: &str, value: &dyn Fn(&UpstreamState) -> Option<u64>| {
        page.head(name, kind, help);
        for state in states {
            let Some(value) = value(state) else { continue };
            page.sample(name, &[("upstream", &state.name)], value);
        }
    };
    let help = "Whether the upstream answered when it was asked last.";
    each("upstream_reachable", "gauge", help, &|state| Some(state.reachable.into()));
    let help = "Age of what is known of its targets; no sample where they were never read.";
    each("upstream_age_seconds", "gauge", help, &|state| state.age_seconds);
    each("upstream_targets", "gauge", "Targets that it is known to have.", &|state| Some(state.targets));
    each("upstream_waiting", "gauge", "Calls to it that wait for their turn.", &|state| Some(state.waiting));
    let help = "Calls to it that its breaker has refused.";
    each("upstream_refused_total", "counter", help, &|state| Some(state.refused));
    let name = "upstream_calls_total";
    page.head(name, "counter", "Calls to it, by what came of them.");
    for state in states {
        for (outcome, count) in &state.calls {
            page.sample(name, &[("upstream", &state.name), ("outcome", outcome)], count);
        }
    }
}
