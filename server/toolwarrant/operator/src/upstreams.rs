//! The monitoring data of the upstreams that run a service's targets. Start at [`Upstreams`].

use crate::prometheus::Page;

/// The current state of the upstreams of a service whose targets run in other processes.
///
/// It never makes the service unready: it would not help if a load balancer removed the server. The
/// other upstreams work, and tasks can be read and continue. `/readyz` names unreachable upstreams
/// in its text. The metrics `upstream_reachable` and `upstream_age_seconds` are there for alarms.
pub trait Upstreams: Send + Sync + 'static {
    /// Returns the state of each upstream, in a stable order, from memory.
    fn states(&self) -> Vec<UpstreamState>;
}

/// The state of one upstream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpstreamState {
    /// Its name, from the configuration. As a label of metrics, it has no quote, backslash or line
    /// end.
    pub name: String,
    /// The kind of upstream.
    pub kind: &'static str,
    /// True if it answered the last call, and did not refuse the credentials.
    pub reachable: bool,
    /// The age of the known list of targets, in seconds. `None`: they were never read.
    pub age_seconds: Option<u64>,
    /// Number of its known targets.
    pub targets: u64,
    /// Number of calls since the start, by outcome. The set of outcomes never changes.
    pub calls: Vec<(&'static str, u64)>,
    /// Number of calls that wait for their turn.
    pub waiting: u64,
    /// Number of calls that its breaker has refused since the start.
    pub refused: u64,
    /// The kinds of calls that it does not serve, each with the seconds until the next try; 0 if
    /// the next such call tries.
    pub unserved: Vec<(&'static str, u64)>,
}

pub(crate) fn remark(states: &[UpstreamState]) -> Option<String> {
    let state = |UpstreamState { name, kind, reachable, age_seconds, .. }: &UpstreamState| {
        let known = match age_seconds {
            None => "its targets were never read".to_owned(),
            Some(age) => format!("the known state of its targets is {age} s old"),
        };
        (!reachable)
            .then(|| format!("the upstream {name} ({kind}) cannot be reached, or refuses the credentials: {known}"))
    };
    let unserved = states.iter().flat_map(|UpstreamState { name, kind, unserved, .. }| {
        unserved.iter().map(move |(call, seconds)| {
            let again = match seconds {
                0 => "with the next such call".to_owned(),
                _ => format!("in {seconds} s"),
            };
            format!(
                "the upstream {name} ({kind}) does not serve {call}, which is tried again {again}: check its address \
                     and the rights of the account"
            )
        })
    });
    let remarks: Vec<_> = states.iter().filter_map(state).chain(unserved).collect();
    (!remarks.is_empty()).then(|| remarks.join("\n"))
}

pub(crate) fn metrics(page: &mut Page<'_>, states: &[UpstreamState]) {
    let mut each = |name: &str, kind: &str, help: &str, value: &dyn Fn(&UpstreamState) -> Option<u64>| {
        page.head(name, kind, help);
        for state in states {
            let Some(value) = value(state) else { continue };
            page.sample(name, &[("upstream", &state.name)], value);
        }
    };
    let help = "1 if the upstream answered the last call, otherwise 0.";
    each("upstream_reachable", "gauge", help, &|state| Some(state.reachable.into()));
    let help = "Age of the known state of its targets; no sample if they were never read.";
    each("upstream_age_seconds", "gauge", help, &|state| state.age_seconds);
    each("upstream_targets", "gauge", "Number of its known targets.", &|state| Some(state.targets));
    each("upstream_waiting", "gauge", "Calls to it that wait for their turn.", &|state| Some(state.waiting));
    let help = "Kinds of calls that it was seen not to serve.";
    each("upstream_unserved_calls", "gauge", help, &|state| Some(state.unserved.len() as u64));
    let help = "Calls to it that its breaker has refused.";
    each("upstream_refused_total", "counter", help, &|state| Some(state.refused));
    let name = "upstream_calls_total";
    page.head(name, "counter", "Calls to it, by outcome.");
    for state in states {
        for (outcome, count) in &state.calls {
            page.sample(name, &[("upstream", &state.name), ("outcome", outcome)], count);
        }
    }
}
