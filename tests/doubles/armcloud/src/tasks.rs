//! Tasks: the work of an accepted operation, and its timing. A task runs independently from its
//! submission to its end.
//!
//! A restart shows the platform's usual sequence: pad status 10, 11, 10 again, and the task at 3
//! *before* the pad comes online.

use crate::shell::{self, Ran};
use crate::switches::{Asked, Switch, Switches};
use crate::truth::{Condition, Proxy, Seat};
use crate::world::{World, now};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// The work of a task.
#[derive(Clone, Debug)]
pub(crate) enum Deed {
    Restart,
    Reset,
    PowerOn,
    PowerOff,
    SetProxy(Option<Proxy>),
    /// A `setProxy` without a known field of a proxy: it is accepted, and does nothing.
    Nothing,
    /// The command's script.
    Command(String),
    ReadExit,
}

/// The settings of a task, taken from the switches when the task is created.
#[derive(Debug)]
pub(crate) struct Plan {
    submit: Option<String>,
    pub(crate) end: i64,
    effect: Option<String>,
    late: u64,
    queued: u64,
    absent: u64,
    pub(crate) never_ends: bool,
    end_time: Option<String>,
    output: Option<String>,
    ends_in: i64,
    clears_proxy: bool,
    restarts_host: bool,
}

impl Plan {
    pub(crate) fn take(switches: &mut Switches, asked: Asked<'_>) -> Self {
        let positive = |value: Option<i64>| value.and_then(|value| u64::try_from(value).ok()).unwrap_or_default();
        Self {
            submit: switches.take_text(Switch::Submit, asked),
            end: switches.take_number(Switch::TaskEnd, asked).unwrap_or(3),
            effect: switches.take_text(Switch::Effect, asked),
            late: positive(switches.take_number(Switch::EffectLate, asked)),
            queued: positive(switches.take_number(Switch::TaskQueued, asked)),
            absent: positive(switches.take_number(Switch::TaskAbsent, asked)),
            never_ends: switches.take_flag(Switch::TaskNeverEnds, asked),
            end_time: switches.take_text(Switch::EndTime, asked),
            output: switches.take_text(Switch::Output, asked),
            ends_in: switches.take_number(Switch::RestartEndsIn, asked).unwrap_or(10),
            clears_proxy: switches.take_flag(Switch::RestartClearsProxy, asked),
            restarts_host: switches.take_flag(Switch::RestartHost, asked),
        }
    }

    /// Returns true if the requested effect really happens.
    fn acts(&self) -> bool {
        match self.effect.as_deref() {
            Some("never" | "show") => false,
            Some(_) => true,
            None => self.end == 3 && !self.never_ends,
        }
    }
}

/// The answer to a submission.
#[derive(Debug)]
pub(crate) struct Submitted {
    pub(crate) task: Option<u64>,
    /// 1 if the task was added, -1 if such a task exists.
    pub(crate) status: i64,
    /// True if a task was created.
    pub(crate) is_made: bool,
}

/// Creates a task on a pad and starts it.
pub(crate) fn submit(world: &Arc<World>, seat: Seat, what: &'static str, deed: Deed, plan: Plan) -> Submitted {
    let mut truth = world.truth();
    let earlier = || {
        let own = truth.tasks.iter().filter(|(_, task)| task.seat == seat && task.what == what);
        own.map(|(id, task)| (*id, task.status)).max()
    };
    let exists = |task| Submitted { task, status: -1, is_made: false };
    match plan.submit.as_deref() {
        Some("exists_without_id") => return exists(None),
        Some("exists_while_running") => {
            if let Some((id, 1 | 2 | 9)) = earlier() {
                return exists(Some(id));
            }
        }
        Some(_) => return exists(earlier().map(|(id, _)| id)),
        None => {}
    }
    let id = truth.enter(seat, what, plan.absent);
    if plan.end_time.as_deref() == Some("early")
        && let Some(task) = truth.tasks.get_mut(&id)
    {
        task.ended = Some(now());
    }
    drop(truth);
    tokio::spawn(run(world.clone(), id, seat, deed, plan));
    Submitted { task: Some(id), status: 1, is_made: true }
}

/// Waits for the end of a task. Returns its status.
pub(crate) async fn wait_for_end(world: &World, id: u64) -> i64 {
    loop {
        let status = world.truth().tasks.get(&id).map_or(0, |task| task.status);
        if status == 3 || status < 0 {
            return status;
        }
        wait(5).await;
    }
}

async fn run(world: Arc<World>, id: u64, seat: Seat, deed: Deed, plan: Plan) {
    if plan.queued > 0 {
        set_status(&world, id, 9);
        wait(plan.queued).await;
        set_status(&world, id, 1);
    }
    let time = time(&world, seat, &deed);
    wait(time / 5).await;
    set_status(&world, id, 2);
    let is_early = plan.acts() && plan.late == 0;
    if is_early {
        begin(&world, seat, &deed);
    }
    wait(time - time / 5).await;
    let outcome = if is_early { perform(&world, id, seat, &deed, &plan).await } else { Outcome::Said(None) };
    if plan.effect.as_deref() == Some("show") && matches!(deed, Deed::PowerOn) {
        world.truth().pad_mut(seat).is_shown_up = true;
    }
    if !plan.never_ends {
        end(&world, id, &plan, &deed, &outcome);
    }
    let mut outcome = outcome;
    if plan.acts() && !is_early {
        wait(plan.late).await;
        begin(&world, seat, &deed);
        outcome = perform(&world, id, seat, &deed, &plan).await;
    }
    if let Outcome::Started(restarts) = outcome {
        let time = world.switches().time(Switch::OnlineTime, seat);
        wait(time).await;
        let mut truth = world.truth();
        let pad = truth.pad_mut(seat);
        // A later start of the pad has an online time of its own.
        if pad.restarts == restarts && pad.condition.pad_status == 10 {
            pad.change(now(), |condition| {
                condition.online = true;
                condition.cvm_status = 100;
            });
        }
    }
}

/// The outcome of the work.
#[derive(Debug)]
enum Outcome {
    /// The container has started; the number counts its starts.
    Started(u64),
    /// The output, if there is any.
    Said(Option<String>),
    /// The task failed with this status.
    Failed(i64),
    /// The task does not end.
    Hangs,
}

/// Makes the beginning of the work visible on the pad.
fn begin(world: &World, seat: Seat, deed: &Deed) {
    let (pad_status, cvm_status) = match deed {
        Deed::Restart => (11, 102),
        Deed::Reset => (12, 103),
        Deed::PowerOn => (20, 99),
        Deed::PowerOff => (19, 99),
        Deed::SetProxy(_) | Deed::Nothing | Deed::Command(_) | Deed::ReadExit => return,
    };
    let mut truth = world.truth();
    truth.pad_mut(seat).change(now(), |condition| {
        *condition = Condition { pad_status, online: false, cvm_status, proxy: condition.proxy.take() };
    });
}

/// Carries out the work.
async fn perform(world: &World, id: u64, seat: Seat, deed: &Deed, plan: &Plan) -> Outcome {
    let (what, more) = match deed {
        Deed::Command(script) => return command(world, id, seat, script).await,
        Deed::ReadExit => return Outcome::Said(Some(exit(world, seat))),
        Deed::Nothing => return Outcome::Said(None),
        Deed::Restart => ("restart", Value::Null),
        Deed::Reset => ("reset", Value::Null),
        Deed::PowerOn => ("power_on", Value::Null),
        Deed::PowerOff => ("power_off", Value::Null),
        Deed::SetProxy(proxy) => ("set_proxy", proxy.as_ref().map_or(Value::Null, Proxy::show)),
    };
    let mut truth = world.truth();
    if plan.restarts_host && matches!(deed, Deed::Restart | Deed::Reset) {
        truth.restart_host(seat);
    }
    let pad = truth.pad_mut(seat);
    let starts = matches!(deed, Deed::Restart | Deed::Reset | Deed::PowerOn);
    if starts {
        pad.start(now());
    }
    pad.change(now(), |condition| match deed {
        Deed::Restart | Deed::PowerOn | Deed::Reset => {
            condition.pad_status = plan.ends_in;
            if plan.clears_proxy || matches!(deed, Deed::Reset) {
                condition.proxy = None;
            }
        }
        Deed::PowerOff => condition.pad_status = 18,
        Deed::SetProxy(proxy) => condition.proxy.clone_from(proxy),
        Deed::Nothing | Deed::Command(_) | Deed::ReadExit => {}
    });
    let (code, restarts) = (pad.code.clone(), pad.restarts);
    drop(truth);
    let mut entry = json!({"operation": what, "pad": code, "task": id});
    if matches!(deed, Deed::SetProxy(_)) {
        entry["proxy"] = more;
    }
    world.did(entry);
    if starts { Outcome::Started(restarts) } else { Outcome::Said(None) }
}

async fn command(world: &World, id: u64, seat: Seat, script: &str) -> Outcome {
    let asked = Asked { endpoint: "", seats: &[seat] };
    let dead = world.switches().take_text(Switch::Shell, asked);
    match dead.as_deref() {
        Some("silent") => return Outcome::Said(None),
        Some("fails") => return Outcome::Failed(-1),
        Some(_) => return Outcome::Hangs,
        None => {}
    }
    let (code, is_up) = {
        let truth = world.truth();
        (truth.pad(seat).code.clone(), truth.pad(seat).is_up())
    };
    if !is_up {
        let fails = world.switches().look(Switch::OfflineCommand, seat).is_some_and(|how| how == "fails");
        return if fails { Outcome::Failed(-1) } else { Outcome::Said(None) };
    }
    world.did(json!({"operation": "command", "pad": code, "task": id, "script": script}));
    match shell::run(world, seat, script).await {
        Ok(Ran::Output(output)) => Outcome::Said(Some(output)),
        Ok(Ran::Killed) => Outcome::Failed(-4),
        Err(error) => {
            eprintln!("a command did not run: {error:#}");
            Outcome::Failed(-1)
        }
    }
}

/// Returns the platform's text about a pad's exit.
fn exit(world: &World, seat: Seat) -> String {
    let truth = world.truth();
    let proxy = truth.pad(seat).condition.proxy.as_ref();
    let own = crate::addresses::of_pad(seat.0);
    proxy.map_or(own, |proxy| crate::addresses::of_proxy(&proxy.host, proxy.port)).to_string()
}

fn end(world: &World, id: u64, plan: &Plan, deed: &Deed, outcome: &Outcome) {
    let status = match outcome {
        Outcome::Hangs => return,
        Outcome::Failed(status) => *status,
        Outcome::Started(_) | Outcome::Said(_) => plan.end,
    };
    let mut truth = world.truth();
    let Some(task) = truth.tasks.get_mut(&id) else { return };
    task.status = status;
    if plan.end_time.as_deref() != Some("never") {
        task.ended = Some(now());
    }
    if status != 3 {
        task.error = Some(if status == -4 { "task timed out" } else { "execution failed" }.to_owned());
        return;
    }
    let output = match (deed, outcome) {
        (Deed::Command(_) | Deed::ReadExit, Outcome::Said(output)) => output.clone().unwrap_or_default(),
        _ => "Success".to_owned(),
    };
    match plan.output.as_deref() {
        Some("empty") => task.result = Some(String::new()),
        Some("error_msg") => {
            task.result = Some("Success".to_owned());
            task.error = Some(output);
        }
        Some(_) => task.result = Some(output),
        // The two kinds of commands differ only here.
        None if task.what == "syncCmd" => {
            task.result = Some("Success".to_owned());
            task.error = Some(output);
        }
        None => task.result = Some(output),
    }
}

fn set_status(world: &World, id: u64, status: i64) {
    if let Some(task) = world.truth().tasks.get_mut(&id) {
        task.status = status;
    }
}

fn time(world: &World, seat: Seat, deed: &Deed) -> u64 {
    let switch = match deed {
        Deed::Restart | Deed::Reset => Switch::RestartTime,
        Deed::PowerOn | Deed::PowerOff => Switch::PowerTime,
        Deed::Command(_) => Switch::CommandTime,
        Deed::SetProxy(_) | Deed::Nothing | Deed::ReadExit => Switch::TaskTime,
    };
    world.switches().time(switch, seat)
}

pub(crate) async fn wait(milliseconds: u64) {
    if milliseconds > 0 {
        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
    }
}
