//! Tasks: the work of an accepted operation, and its timing. A task runs independently from its
//! submission to its end.
//!
//! A restart shows the platform's usual sequence: pad status 10, 11, 10 again, and the task at 3
//! *before* the pad comes online.

use crate::shell::{self, Ran};
use crate::switches::{Asked, Effect, Shell, Switches};
use crate::truth::{Condition, Proxy, Seat};
use crate::world::{World, now};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Debug)]
pub(crate) enum Deed {
    Restart,
    PowerOn,
    PowerOff,
    SetProxy(Option<Proxy>),
    /// A `setProxy` without a known field: it is accepted, and does nothing.
    Nothing,
    Command(String),
}

#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) end: i64,
    effect: Option<Effect>,
    late: u64,
    pub(crate) never_ends: bool,
}

impl Plan {
    pub(crate) fn take(switches: &mut Switches, asked: Asked<'_>) -> Self {
        Self {
            end: switches.take(asked, |set| &mut set.task_end).unwrap_or(3),
            effect: switches.take(asked, |set| &mut set.effect),
            late: switches.take(asked, |set| &mut set.effect_late_ms).unwrap_or_default(),
            never_ends: switches.is_set(asked, |set| &mut set.task_never_ends),
        }
    }

    fn acts(&self) -> bool {
        match self.effect {
            Some(Effect::Never | Effect::Show) => false,
            Some(Effect::Always) => true,
            None => self.end == 3 && !self.never_ends,
        }
    }
}

pub(crate) fn submit(world: &Arc<World>, seat: Seat, deed: Deed, plan: Plan) -> u64 {
    let id = world.truth().enter(seat);
    tokio::spawn(run(world.clone(), id, seat, deed, plan));
    id
}

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
    let time = time(&world, seat, &deed);
    wait(time / 5).await;
    set_status(&world, id, 2);
    let is_early = plan.acts() && plan.late == 0;
    if is_early {
        begin(&world, seat, &deed);
    }
    wait(time - time / 5).await;
    let outcome = if is_early { perform(&world, id, seat, &deed).await } else { Outcome::Said(None) };
    if plan.effect == Some(Effect::Show) && matches!(deed, Deed::PowerOn) {
        world.truth().pad_mut(seat).is_shown_up = true;
    }
    if !plan.never_ends {
        end(&world, id, &plan, &deed, &outcome);
    }
    let mut outcome = outcome;
    if plan.acts() && !is_early {
        wait(plan.late).await;
        begin(&world, seat, &deed);
        outcome = perform(&world, id, seat, &deed).await;
    }
    if let Outcome::Started(restarts) = outcome {
        let time = world.switches().look(seat, |set| &set.online_ms);
        wait(time.unwrap_or(1_000)).await;
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

#[derive(Debug)]
enum Outcome {
    Started(u64),
    Said(Option<String>),
    Failed(i64),
    Hangs,
}

fn begin(world: &World, seat: Seat, deed: &Deed) {
    let (pad_status, cvm_status) = match deed {
        Deed::Restart => (11, 102),
        Deed::PowerOn => (20, 99),
        Deed::PowerOff => (19, 99),
        Deed::SetProxy(_) | Deed::Nothing | Deed::Command(_) => return,
    };
    let mut truth = world.truth();
    truth.pad_mut(seat).change(now(), |condition| {
        *condition = Condition { pad_status, online: false, cvm_status, proxy: condition.proxy.take() };
    });
}

async fn perform(world: &World, id: u64, seat: Seat, deed: &Deed) -> Outcome {
    let (what, more) = match deed {
        Deed::Command(script) => return command(world, id, seat, script).await,
        Deed::Nothing => return Outcome::Said(None),
        Deed::Restart => ("restart", Value::Null),
        Deed::PowerOn => ("power_on", Value::Null),
        Deed::PowerOff => ("power_off", Value::Null),
        Deed::SetProxy(proxy) => ("set_proxy", proxy.as_ref().map_or(Value::Null, Proxy::show)),
    };
    let mut truth = world.truth();
    let pad = truth.pad_mut(seat);
    let starts = matches!(deed, Deed::Restart | Deed::PowerOn);
    if starts {
        pad.start(now());
    }
    pad.change(now(), |condition| match deed {
        Deed::Restart | Deed::PowerOn => condition.pad_status = 10,
        Deed::PowerOff => condition.pad_status = 18,
        Deed::SetProxy(proxy) => condition.proxy.clone_from(proxy),
        Deed::Nothing | Deed::Command(_) => {}
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
    let shell = world.switches().take(asked, |set| &mut set.shell);
    match shell {
        Some(Shell::Silent) => return Outcome::Said(None),
        Some(Shell::Fails) => return Outcome::Failed(-1),
        Some(Shell::Hangs) => return Outcome::Hangs,
        None => {}
    }
    let (code, is_up) = {
        let truth = world.truth();
        (truth.pad(seat).code.clone(), truth.pad(seat).is_up())
    };
    if !is_up {
        return Outcome::Said(None);
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

fn end(world: &World, id: u64, plan: &Plan, deed: &Deed, outcome: &Outcome) {
    let status = match outcome {
        Outcome::Hangs => return,
        Outcome::Failed(status) => *status,
        Outcome::Started(_) | Outcome::Said(_) => plan.end,
    };
    let mut truth = world.truth();
    let Some(task) = truth.tasks.get_mut(&id) else { return };
    task.status = status;
    task.ended = Some(now());
    if status != 3 {
        task.error = Some(if status == -4 { "task timed out" } else { "execution failed" }.to_owned());
        return;
    }
    task.result = Some(match (deed, outcome) {
        (Deed::Command(_), Outcome::Said(output)) => output.clone().unwrap_or_default(),
        _ => "Success".to_owned(),
    });
}

fn set_status(world: &World, id: u64, status: i64) {
    if let Some(task) = world.truth().tasks.get_mut(&id) {
        task.status = status;
    }
}

fn time(world: &World, seat: Seat, deed: &Deed) -> u64 {
    let switches = world.switches();
    match deed {
        Deed::Restart => switches.look(seat, |set| &set.restart_ms).unwrap_or(3_000),
        Deed::PowerOn | Deed::PowerOff => switches.look(seat, |set| &set.power_ms).unwrap_or(3_000),
        Deed::Command(_) => switches.look(seat, |set| &set.command_ms).unwrap_or(100),
        Deed::SetProxy(_) | Deed::Nothing => switches.look(seat, |set| &set.task_ms).unwrap_or(500),
    }
}

pub(crate) async fn wait(milliseconds: u64) {
    if milliseconds > 0 {
        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
    }
}
