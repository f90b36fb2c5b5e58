//! The monitoring data of the upstreams that run a service's targets. Start at [`Upstreams`].

use crate::metric;
use crate::prometheus::MetricsPage;
use crate::view::answer_types;

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
    /// The beginning of the ids of all its targets, if no other target's id begins so.
    pub prefix: Option<String>,
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

answer_types! {
    /// An upstream in the overview.
    pub struct UpstreamRow {
        upstream: String,
        kind: &'static str,
        reachable: bool => verdict,
        prefix: Option<String>,
        targets: u64,
        read_seconds_ago: Option<u64>,
        waiting: u64,
        refused: u64,
        does_not_serve: Vec<&'static str>,
    }
}

impl From<UpstreamState> for UpstreamRow {
    fn from(state: UpstreamState) -> Self {
        let UpstreamState { name, kind, reachable, prefix, age_seconds, targets, calls: _, waiting, refused, unserved } =
            state;
        let does_not_serve = unserved.into_iter().map(|(call, _)| call).collect();
        let (upstream, read_seconds_ago) = (name, age_seconds);
        Self { upstream, kind, reachable, prefix, targets, read_seconds_ago, waiting, refused, does_not_serve }
    }
}

pub(crate) fn metrics(page: &mut MetricsPage<'_>, states: &[UpstreamState]) {
    let mut each = |metric, value: &dyn Fn(&UpstreamState) -> Option<u64>| {
        page.each(metric, states.iter().filter_map(|state| Some((&*state.name, value(state)?))));
    };
    each(&metric::upstream_reachable, &|state| Some(state.reachable.into()));
    each(&metric::upstream_age_seconds, &|state| state.age_seconds);
    each(&metric::upstream_targets, &|state| Some(state.targets));
    each(&metric::upstream_waiting, &|state| Some(state.waiting));
    each(&metric::upstream_unserved_calls, &|state| Some(state.unserved.len() as u64));
    each(&metric::upstream_refused_total, &|state| Some(state.refused));
    for UpstreamState { name, calls, .. } in states {
        for (outcome, count) in calls {
            page.sample(&metric::upstream_calls_total, &[name, outcome], count);
        }
    }
}
