//! One of two platforms stalls. Measured are the answers to clients of the other one, the ends of
//! writes, the monitoring, and the time until recovery.
//!
//! A twin of the program, whose platforms do not stall, gets the same requests in turn, so that the
//! influence of the machine is visible in both.

use super::double;
use super::rig::{FAR, Rig, call, time_list, wait_until_listed};
use crate::serving::{self, quantile};
use anyhow::{Context, Result, ensure};
use driver::{Instance, KeyPair};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// Limit for the 99th percentile of lists while one platform stalls, relative to the one before.
const RATIO: f64 = 1.2;

/// Pads of the platform that does not stall.
const OTHERS: u32 = 1_000;

/// Time from one request of the client to the next.
const PACE: Duration = Duration::from_millis(10);

/// Time in milliseconds that the stalled platform waits before it carries out a call. It is longer
/// than any timeout of the program.
const STALL_MS: u64 = 30_000;

/// Longest time of a write on these platforms: the deadline of a restart, and one more reading.
const WRITES_END: Duration = Duration::from_secs(100 + 60);

/// Longest pause of the breaker, and the time of a list.
const WHOLE_AGAIN: Duration = Duration::from_secs(30 + 15);

/// Writes of each kind that are under way when the stall begins.
const WRITES: usize = 4;

/// The program and the client of each series.
const ASKED: [&str; 4] =
    ["client of the other platform", "the same at the twin", "client of both platforms", "the same at the twin"];

/// The durations of the lists in milliseconds, in ascending order, for each entry of [`ASKED`].
#[derive(Default)]
struct Took([Vec<f64>; 4]);

/// Two programs that get requests in turn.
struct Pair {
    program: Instance,
    /// The keys of the client that sees only the phones of the other platform, and of the client
    /// that sees all.
    keys: [KeyPair; 2],
    twin: Instance,
    twins: [KeyPair; 2],
}

/// Measures it. Returns the faults.
pub(super) async fn measure(rig: &Rig) -> Result<Vec<String>> {
    let slow = ["restart_ms=25000", "task_ms=25000"];
    let stalls = double::start(&rig.double, rig.pads, &slow).await?;
    let calm = double::start(&rig.double, rig.pads, &slow).await?;
    let quiet = double::start(&rig.double, OTHERS, &[]).await?;
    let pads: Vec<String> = double::codes(&stalls).await?.iter().map(|code| format!("pads-{code}")).collect();
    let others: Vec<String> = double::codes(&quiet).await?.iter().map(|code| format!("quiet-{code}")).collect();
    // The first page of the client that sees all has only pads that stall, because their ids come
    // first.
    let program = rig.serve("program", &[("pads", &stalls), ("quiet", &quiet)]).await?;
    let twin = rig.serve("twin", &[("pads", &calm), ("quiet", &quiet)]).await?;
    for serving in [&program, &twin] {
        wait_until_listed(serving, "pads", rig.pads).await?;
        wait_until_listed(serving, "quiet", OTHERS).await?;
    }
    let keys = async |serving: &Instance| {
        anyhow::Ok([serving::key(serving, "others", &others).await?, serving::key(serving, "all", &[]).await?])
    };
    let pair = Pair { keys: keys(&program).await?, twins: keys(&twin).await?, program, twin };
    let mut writes = Writes { pads: pads.into_iter(), tasks: Vec::new() };

    println!(
        "\none platform of {} pads stalls for {} s; another one of {OTHERS} does not",
        rig.pads,
        rig.stall.as_secs()
    );
    println!("{:>7}  {}", "before", pair.monitors().await?);
    let before = pair.ask(rig.seconds).await?;
    for (tool, arguments) in [RESTART, PROXY] {
        writes.accept_writes("sent before", &pair, tool, arguments, WRITES).await?;
    }
    let (began, pending) = (Instant::now(), "task_sends_total{outcome=\"pending\"}");
    while pair.program.metric(pending).await? != Some(2 * WRITES as u64) {
        ensure!(began.elapsed() < WRITES_END, "the platform did not take {} writes", 2 * WRITES);
        sleep(Duration::from_millis(50)).await;
    }
    writes.accept_writes("not sent before", &pair, RESTART.0, RESTART.1, WRITES).await?;
    let charged = pair.entries().await?;
    stalls.switch(None, &json!({"stall_ms": STALL_MS})).await?;
    let began = Instant::now();
    let (during, refused, watched) =
        tokio::join!(pair.ask(rig.stall), writes.on_and_on(&pair, began, rig.stall), pair.watch(began, rig.stall));
    watched?;
    let (during, refused, uncharged) = (during?, refused?, pair.entries().await?);
    stalls.switch(None, &json!({})).await?;
    let whole = pair.whole_again(&mut writes).await?;
    let after = pair.ask(rig.seconds).await?;
    println!("{:>7}  {}", "after", pair.monitors().await?);
    let ends = writes.ends(&pair).await?;
    let entries = [charged, uncharged, pair.entries().await?];
    let seen = StallFigures { took: [before, during, after], refused, ends, entries, whole };
    seen.print();
    let mut faults = seen.faults();
    for (name, serving) in [("program", pair.program), ("twin", pair.twin)] {
        if serving.log()?.contains("panicked") {
            faults.push(format!("the {name} panicked"));
        }
    }
    Ok(faults)
}

/// The results of a stall.
struct StallFigures {
    /// Before, during and after the stall.
    took: [Took; 3],
    refused: Refused,
    ends: Ends,
    /// Charges, reversals and refunds: at the beginning of the stall, at its end, and after all
    /// writes had ended.
    entries: [[u64; 3]; 3],
    /// Time from the end of the stall to full recovery.
    whole: Duration,
}

impl StallFigures {
    /// Returns the 99th percentile of lists during the stall relative to the one before, and this
    /// ratio relative to the twin's.
    fn ratios(&self, n: usize) -> [f64; 2] {
        let [before, during, _] = &self.took;
        let ratio = |n: usize| quantile(&during.0[n], 0.99) / quantile(&before.0[n], 0.99);
        // A twin that is slow on its own does not excuse the program.
        [ratio(n), if n.is_multiple_of(2) { ratio(n) / ratio(n + 1).max(1.0) } else { ratio(n) }]
    }

    fn print(&self) {
        println!(
            "\nlist_devices, limit 100; ms      before p50    p99   while p50    p99   after p50    p99  p99 while/before  by the twin"
        );
        for (n, who) in ASKED.iter().enumerate() {
            let ms = self.took.each_ref().map(|took| [0.5, 0.99].map(|share| quantile(&took.0[n], share)));
            let ms = ms.map(|[half, slow]| format!("{half:12.1} {slow:6.1}"));
            let [ratio, by_twin] = self.ratios(n);
            println!("{who:31} {} {ratio:16.2} {by_twin:12.2}", ms.join(""));
        }
        println!("\nwrites on the stalled platform");
        for ((group, tool, end), count) in &self.ends {
            println!("{group:16} {tool:10} {end:32} {count:4}");
        }
        println!("{}", self.refused);
        let [began, ended, last] = self.entries;
        println!(
            "charges, reversals, refunds: {began:?} at its start, {ended:?} at its end, {last:?} after all writes"
        );
        println!("recovered after {:.1} s: listed, and a write is accepted", self.whole.as_secs_f64());
    }

    fn faults(&self) -> Vec<String> {
        let Self { took: _, refused, ends, entries: [_, _, entries], whole } = self;
        let mut faults: Vec<String> = refused.faults().collect();
        for n in [0, 2] {
            let [_, ratio] = self.ratios(n);
            if ratio > FAR * RATIO {
                faults.push(format!("the lists of {} took {ratio:.2} times as long; {RATIO} are allowed", ASKED[n]));
            }
        }
        let count = |wanted: &dyn Fn(&str, &str) -> bool| -> u64 {
            ends.iter().filter(|((group, _, end), _)| wanted(group, end)).map(|(_, count)| count).sum()
        };
        if count(&|group, end| group == "sent before" && end.starts_with("failed")) > 0 {
            faults.push("what the platform had taken ended as failed".to_owned());
        }
        let [charges, reversals, refunds] = *entries;
        if refunds > 0 || charges > reversals + count(&|_, end| !end.ends_with(UNSENT)) {
            faults.push(format!("the ledger is not that of {ends:?}: {entries:?}"));
        }
        if whole.as_secs_f64() > FAR * WHOLE_AGAIN.as_secs_f64() {
            faults
                .push(format!("it was whole again {} s after the stall; {WHOLE_AGAIN:?} are allowed", whole.as_secs()));
        }
        faults
    }
}

const RESTART: (&str, &str) = ("set_power", r#"{"action": "restart"}"#);
const PROXY: (&str, &str) = ("set_proxy", r#"{"scheme": "socks5", "host": "203.0.113.7", "port": 1080}"#);

/// The mark of a write that ended before any request was tried.
const UNSENT: &str = ", not sent";

/// The writes on the stalled platform, each on its own pad.
struct Writes {
    pads: std::vec::IntoIter<String>,
    /// The group of each write, with its task's id.
    tasks: Vec<(&'static str, String)>,
}

/// The writes during the stall, in order: the time of each, how long its answer took, and the
/// error.
struct Refused(Vec<(Duration, Duration, Option<String>)>);

/// The number of writes by group, tool and end.
type Ends = BTreeMap<(&'static str, String, String), u64>;

impl Writes {
    /// Requests one write. Returns `None` and records its task, or returns the code of the error.
    async fn one(&mut self, group: &'static str, pair: &Pair, tool: &str, arguments: &str) -> Result<Option<String>> {
        let mut arguments: Value = serde_json::from_str(arguments)?;
        arguments["device_id"] = json!(self.pads.next().context("more writes than pads: raise --pads")?);
        match call(&pair.program, &pair.keys[1], tool, &arguments).await? {
            Ok(task) => {
                self.tasks.push((group, task["task_id"].as_str().context("task_id")?.to_owned()));
                Ok(None)
            }
            Err(code) => Ok(Some(code)),
        }
    }

    async fn accept_writes(
        &mut self,
        group: &'static str,
        pair: &Pair,
        tool: &str,
        arguments: &str,
        many: usize,
    ) -> Result<()> {
        for _ in 0..many {
            let refused = self.one(group, pair, tool, arguments).await?;
            ensure!(refused.is_none(), "{tool} on a reachable platform is refused: {refused:?}");
        }
        Ok(())
    }

    /// Requests a restart each second during the stall.
    async fn on_and_on(&mut self, pair: &Pair, began: Instant, stall: Duration) -> Result<Refused> {
        let mut refused = Vec::new();
        while began.elapsed() < stall {
            let at = began.elapsed();
            let error = self.one("while it stalls", pair, RESTART.0, RESTART.1).await?;
            refused.push((at, began.elapsed() - at, error));
            sleep(Duration::from_secs(1)).await;
        }
        Ok(Refused(refused))
    }

    /// Waits until all writes have ended. Returns how they ended.
    async fn ends(&self, pair: &Pair) -> Result<Ends> {
        let began = Instant::now();
        while pair.program.metric("tasks_in_flight").await? != Some(0) {
            ensure!(began.elapsed() < WRITES_END, "writes did not end in {} s", WRITES_END.as_secs());
            sleep(Duration::from_millis(200)).await;
        }
        let tasks = pair.program.operator.json(["task", "list", "--limit", "1000"]).await?;
        let mut ends = Ends::new();
        for (group, id) in &self.tasks {
            let tasks = tasks.as_array().context("tasks")?;
            let task =
                tasks.iter().find(|task| task["task_id"] == id.as_str()).with_context(|| format!("{id} is lost"))?;
            let [tool, status] = ["tool", "status"].map(|name| task[name].as_str().unwrap_or("?").to_owned());
            let unsent = if task["attempts"] == 0 { UNSENT } else { "" };
            *ends.entry((group, tool, format!("{status}{unsent}"))).or_default() += 1;
        }
        Ok(ends)
    }
}

impl Refused {
    /// Returns the position of the first write that was refused at once, because the breaker was
    /// open.
    fn open(&self) -> Option<usize> {
        self.0.iter().position(|(_, took, error)| *took < Duration::from_secs(1) && error.is_some())
    }

    fn faults(&self) -> impl Iterator<Item = String> {
        let Some(open) = self.open() else { return vec!["the breaker never opened".to_owned()].into_iter() };
        let wrong = self.0.iter().skip(open).filter(|(_, _, error)| error.as_deref() != Some("upstream_unavailable"));
        let told =
            wrong.map(|(at, _, error)| format!("{} s after the stall began a write got {error:?}", at.as_secs()));
        told.collect::<Vec<_>>().into_iter()
    }
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let open = self.open().unwrap_or(self.0.len());
        for (at, took, error) in &self.0[..open] {
            let error = error.as_deref().unwrap_or("accepted");
            writeln!(f, "  {:5.1} s: {error} after {:.1} s", at.as_secs_f64(), took.as_secs_f64())?;
        }
        let rest = &self.0[open..];
        let slowest = rest.iter().map(|(_, took, _)| took.as_millis()).max().unwrap_or(0);
        let at = rest.first().map_or(f64::NAN, |(at, ..)| at.as_secs_f64());
        write!(f, "  {at:5.1} s: {} on end refused, within {slowest} ms each", rest.len())
    }
}

impl Pair {
    /// Lists devices for this time, in turn at both programs and for both clients.
    async fn ask(&self, span: Duration) -> Result<Took> {
        let Self { program, keys: [some, all], twin, twins: [twins_some, twins_all] } = self;
        let began = Instant::now();
        let mut took = Took::default();
        while began.elapsed() < span {
            for (n, (serving, key)) in
                [(program, some), (twin, twins_some), (program, all), (twin, twins_all)].into_iter().enumerate()
            {
                took.0[n].push(time_list(serving, key).await.with_context(|| format!("a list: {}", ASKED[n]))?);
                sleep(PACE).await;
            }
        }
        for took in &mut took.0 {
            took.sort_by(f64::total_cmp);
        }
        Ok(took)
    }

    /// Returns the monitoring values in a line.
    async fn monitors(&self) -> Result<String> {
        let ready = self.program.watch("/readyz").await?;
        let mut line = format!("/readyz {} {:?}", ready.status, ready.body.trim());
        for name in ["reachable", "age_seconds", "waiting", "refused_total"] {
            let value = self.program.metric(&format!("upstream_{name}{{upstream=\"pads\"}}")).await?;
            line.push_str(&format!("; {name} {}", value.map_or("-".to_owned(), |value| value.to_string())));
        }
        Ok(line)
    }

    /// Prints the monitoring values during the stall each time that one changes, except the age.
    async fn watch(&self, began: Instant, stall: Duration) -> Result<()> {
        let mut before = None;
        while began.elapsed() < stall {
            let reachable = self.program.metric("upstream_reachable{upstream=\"pads\"}").await?;
            if before != reachable {
                before = reachable;
                println!("{:5.1} s  {}", began.elapsed().as_secs_f64(), self.monitors().await?);
            }
            sleep(Duration::from_millis(500)).await;
        }
        println!("{:5.1} s  {}", began.elapsed().as_secs_f64(), self.monitors().await?);
        Ok(())
    }

    /// Returns charges, reversals and refunds.
    async fn entries(&self) -> Result<[u64; 3]> {
        let mut entries = [0; 3];
        for (entry, kind) in entries.iter_mut().zip(["charge", "reversal", "refund"]) {
            *entry = self.program.metric(&format!("ledger_entries_total{{kind=\"{kind}\"}}")).await?.context(kind)?;
        }
        Ok(entries)
    }

    /// Waits until the stalled platform is listed again and a write on it is accepted. Returns the
    /// time that it took.
    async fn whole_again(&self, writes: &mut Writes) -> Result<Duration> {
        let began = Instant::now();
        let reachable = "upstream_reachable{upstream=\"pads\"}";
        while self.program.metric(reachable).await? != Some(1)
            || writes.one("after", self, RESTART.0, RESTART.1).await?.is_some()
        {
            ensure!(
                began.elapsed() < Duration::from_mins(2),
                "the platform is not reached two minutes after the stall"
            );
            sleep(Duration::from_millis(200)).await;
        }
        Ok(began.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::Refused;
    use std::time::Duration;

    #[test]
    fn once_the_breaker_is_open_every_write_is_refused_for_that_reason() {
        let second = Duration::from_secs(1);
        let slow = || (second, 11 * second, Some("not_found".to_owned()));
        let quick = |error: &str| (12 * second, second / 100, Some(error.to_owned()));
        let faults = |all: Vec<_>| Refused(all).faults().count();
        assert_eq!(faults(vec![slow(), quick("upstream_unavailable"), quick("upstream_unavailable")]), 0);
        assert_eq!(faults(vec![slow(), quick("upstream_unavailable"), quick("internal"), (second, second, None)]), 2);
        assert_eq!(faults(vec![slow()]), 1, "it never opened");
    }
}
