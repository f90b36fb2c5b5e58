//! Matches the double's records with the tasks. A target has one write in flight, so a request for
//! a pad belongs to the task that was accepted last on it. A deed names the platform's own task,
//! and by it the request that caused it.

use super::super::load::TaskView;
use super::super::platforms::{Pads, WRITES};
use super::{AuditBooks, Task};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::fs;

#[derive(Default)]
pub(super) struct Figures {
    tasks: BTreeMap<(&'static str, String), u64>,
    /// Requests that arrived, those that the platform acted on, and those whose answer did not
    /// arrive whole.
    arrived: u64,
    acted: u64,
    unanswered: u64,
    deeds: u64,
    false_refunds: u64,
}

#[derive(Default)]
struct PadAccount<'a> {
    arrived: usize,
    acted: usize,
    deeds: Vec<&'a Deed>,
}

struct Deed {
    at: i64,
    is_restart: bool,
    host: Option<String>,
    task: u64,
}

impl Figures {
    pub(super) fn rows(&self) -> impl Iterator<Item = (String, u64)> {
        let Self { tasks, arrived, acted, unanswered, deeds, false_refunds } = self;
        let figures = [
            ("write requests that reached the pads' platform", *arrived),
            ("of these, acted on", *acted),
            ("of these, without a whole answer", *unanswered),
            ("effects on pads", *deeds),
            ("refunds of effects that did happen on a pad", *false_refunds),
        ];
        let ends = tasks.iter().map(|((account, status), count)| (format!("{account}, ended as {status}"), *count));
        figures.map(|(what, figure)| (what.to_owned(), figure)).into_iter().chain(ends)
    }
}

impl AuditBooks {
    pub(super) fn agrees_with_the_double(&mut self, tasks: &HashMap<String, Task>, told: &[TaskView], pads: &Pads) {
        let text = fs::read_to_string(pads.journal()).expect("the double's journal");
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let lines: Vec<&Value> = lines.iter().filter(|line| pad(line) != Some(pads.operators())).collect();
        let mut figures = Figures::default();
        let mut by_pad = HashMap::<String, Vec<(&str, &Task)>>::new();
        for (id, task) in tasks {
            if let Some((account @ ("pads" | "blind"), code)) = task.target.split_once('-')
                && !pads.operators().eq_ignore_ascii_case(code)
            {
                let account = if account == "pads" { "pads, readings shown" } else { "pads, readings not shown" };
                *figures.tasks.entry((account, task.status.clone())).or_default() += 1;
                by_pad.entry(code.to_uppercase()).or_default().push((id, task));
            }
        }
        by_pad.values_mut().for_each(|tasks| tasks.sort_by_key(|(_, task)| task.ready_at));
        let requested = self.requests(&lines, &by_pad, &mut figures);
        let deeds = deeds(&lines);
        figures.deeds = deeds.values().map(|deeds| deeds.len() as u64).sum();
        let mut accounts = HashMap::<&str, PadAccount<'_>>::new();
        let mut task_of = HashMap::new();
        for (id, platforms) in requested {
            let account = accounts.entry(id).or_default();
            account.arrived += 1;
            account.acted += usize::from(!platforms.is_empty());
            task_of.extend(platforms.into_iter().map(|task| (task, id)));
        }
        for (pad, deeds) in &deeds {
            for deed in deeds {
                match task_of.get(&deed.task) {
                    Some(id) => accounts.entry(id).or_default().deeds.push(deed),
                    None => {
                        self.repeated += 1;
                        self.violations.push(format!("{pad} was written to by {}, which no client wanted", deed.task));
                    }
                }
            }
        }
        let hosts = hosts(told);
        for (pad, tasks) in &by_pad {
            let deeds = deeds.get(pad.as_str()).map_or(&[][..], Vec::as_slice);
            for (id, task) in tasks {
                let account = accounts.remove(id).unwrap_or_default();
                self.once(id, task, &account);
                self.truly(id, task, &account, deeds, hosts.get(id), &mut figures);
            }
        }
        self.pads = Some(figures);
    }

    fn requests<'a>(
        &mut self,
        lines: &[&Value],
        by_pad: &HashMap<String, Vec<(&'a str, &Task)>>,
        figures: &mut Figures,
    ) -> Vec<(&'a str, Vec<u64>)> {
        let mut requests = Vec::new();
        let writes = |line: &&&Value| WRITES.iter().any(|endpoint| line["endpoint"] == *endpoint);
        for line in lines.iter().filter(writes) {
            let platforms =
                line["tasks"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect::<Vec<_>>();
            figures.arrived += 1;
            figures.acted += u64::from(!platforms.is_empty());
            figures.unanswered += u64::from(line["answer"] != "sent");
            let at = line["at"].as_i64().expect("a time");
            let of_pad = pad(line).and_then(|pad| by_pad.get(pad)).map_or(&[][..], Vec::as_slice);
            let task = of_pad.iter().rfind(|(_, task)| task.ready_at <= at);
            let is_meant = |task: &Task| (task.tool == "set_power") == (line["endpoint"] == "restart");
            match task {
                Some((id, task)) if is_meant(task) => requests.push((*id, platforms)),
                task => {
                    self.repeated += 1;
                    self.violations.push(format!(
                        "{line} belongs to no task; the last task of the pad is {:?}",
                        task.map(|(id, _)| id)
                    ));
                }
            }
        }
        requests
    }

    fn once(&mut self, id: &str, task: &Task, account: &PadAccount<'_>) {
        let PadAccount { arrived, acted, deeds } = account;
        let attempts = task.attempts as usize;
        let may = if task.idempotent { attempts } else { attempts.min(1) };
        let too_often =
            deeds.len().saturating_sub(may).max(acted.saturating_sub(may)).max(arrived.saturating_sub(attempts));
        if too_often > 0 {
            self.repeated += too_often as u64;
            let sent = format!("{arrived} requests, {acted} of them taken, {} effects", deeds.len());
            self.violations.push(format!("{id} on {}: {sent}; at most {may} are allowed", task.target));
        }
        if *acted > 0 && !task.left {
            self.violations.push(format!("{id} on {} was taken, but its task says that nothing was sent", task.target));
        }
    }

    /// Compares all effects on the pad (`deeds`) with the host that the client asked for (`told`).
    fn truly(
        &mut self,
        id: &str,
        task: &Task,
        account: &PadAccount<'_>,
        deeds: &[Deed],
        told: Option<&Option<String>>,
        figures: &mut Figures,
    ) {
        let PadAccount { arrived: _, acted, deeds: own } = account;
        let end = task.finished_at.unwrap_or(i64::MAX);
        let is_power = task.tool == "set_power";
        let wanted = told.cloned().or_else(|| own.first().map(|deed| deed.host.clone()));
        if let Some(wanted) = wanted.as_ref().filter(|_| !is_power)
            && own.iter().any(|deed| deed.host != *wanted)
        {
            self.violations.push(format!("{id} on {} did not do what the client asked for", task.target));
        }
        let happened = match is_power {
            true => own.iter().any(|deed| deed.at <= end),
            false => {
                let last = deeds.iter().rfind(|deed| !deed.is_restart && deed.at <= end);
                last.is_some_and(|deed| wanted.as_ref() == Some(&deed.host))
            }
        };
        let is_shown = task.target.starts_with("pads-");
        let sound = match task.status.as_str() {
            "success" => happened,
            "success_unverified" => *acted > 0,
            "failed_silent" => is_shown && *acted > 0 && !happened,
            _ => true,
        };
        figures.false_refunds += u64::from(task.status == "failed_silent" && happened);
        if !sound {
            let done = own.iter().map(|deed| (deed.at, deed.host.as_deref())).collect::<Vec<_>>();
            self.violations.push(format!(
                "{id} ({}) on {} says {} at {end}; taken {acted} times, done {done:?}, happened {happened}",
                task.tool, task.target, task.status
            ));
        }
    }
}

fn pad(line: &Value) -> Option<&str> {
    line["pad"].as_str().or_else(|| line["pads"][0].as_str())
}

fn deeds(lines: &[&Value]) -> HashMap<String, Vec<Deed>> {
    let mut deeds = HashMap::<String, Vec<Deed>>::new();
    for line in lines.iter().filter(|line| line["kind"] == "did") {
        let is_restart = match line["operation"].as_str() {
            Some("restart") => true,
            Some("set_proxy") => false,
            _ => continue,
        };
        let (at, task) = (line["at"].as_i64().expect("a time"), line["task"].as_u64().expect("a number"));
        let host = line["proxy"]["host"].as_str().map(str::to_owned);
        let deed = Deed { at, is_restart, host, task };
        deeds.entry(pad(line).expect("a pad").to_owned()).or_default().push(deed);
    }
    deeds
}

/// Covers hosts as far as a client got an answer; `None` for other writes.
fn hosts(told: &[TaskView]) -> HashMap<&str, Option<String>> {
    let host =
        |(wish, answer): &'_ TaskView| wish.arguments["host"].as_str().map(str::to_owned).filter(|_| answer.is_ok());
    let told = told.iter().filter(|(_, answer)| answer.is_ok());
    told.filter_map(|view| Some((view.1.as_ref().ok()?["task_id"].as_str()?, host(view)))).collect()
}
