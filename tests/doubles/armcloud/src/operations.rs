//! Calls that change something: the checks, and the tasks that they create.

use crate::answers::{Answer, refusal};
use crate::endpoints::{Call, Endpoint};
use crate::requests::{Members, Refusal, missing};
use crate::switches::{Asked, Switch};
use crate::tasks::{self, Deed, Plan, Submitted};
use crate::truth::{Kind, Proxy, Seat, Task};
use crate::world::World;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// An operation on known pads.
#[derive(Clone, Copy)]
pub(crate) struct Operation<'a> {
    pub(crate) endpoint: &'static Endpoint,
    pub(crate) body: &'a Members,
    pub(crate) seats: &'a [Seat],
    /// The pads whose rows are left out of the answer.
    pub(crate) left_out: &'a BTreeSet<Seat>,
}

/// Carries out calls whose answer is a list of tasks, one per pad.
pub(crate) fn flat(world: &Arc<World>, operation: Operation<'_>) -> Answer {
    let deed = match deed(operation.endpoint.call, operation.body) {
        Ok(deed) => deed,
        Err(refused) => return refused.into(),
    };
    if let Some(refused) = unready(world, &deed, operation.seats) {
        return refused.into();
    }
    let mut answer = Answer::ok(Value::Null);
    let mut rows = Vec::new();
    for seat in operation.seats {
        let submitted = submit(world, operation.endpoint, *seat, deed.clone());
        answer.tasks.extend(submitted.task.filter(|_| submitted.is_made));
        if !operation.left_out.contains(seat) {
            rows.push(json!({
                "taskId": submitted.task, "padCode": world.truth().pad(*seat).code, "vmStatus": 1, "taskStatus": submitted.status,
            }));
        }
    }
    answer.data = rows.into();
    answer
}

/// Turns pads that are paid by the hour on or off. The format of the answer is not documented; by a
/// switch it is tasks.
pub(crate) fn timing(world: &Arc<World>, operation: Operation<'_>) -> Answer {
    let is_timing = |seat: &&Seat| world.truth().pad(**seat).kind == Kind::Timing;
    if operation.seats.iter().filter(is_timing).count() < operation.seats.len() {
        return Answer::refusal(500, "this operation is only supported for timing pads");
    }
    let mut answer = flat(world, operation);
    let shows_tasks = world.switches().global(Switch::TimingAnswer).is_some();
    if answer.code == 200 && !shows_tasks {
        answer.data = Value::Null;
    }
    answer
}

/// Turns pads with network storage on or off: each is accepted or refused on its own.
pub(crate) fn storage(world: &Arc<World>, operation: Operation<'_>) -> Answer {
    let is_on = operation.endpoint.call == Call::StorageOn;
    let (mut successes, mut failures) = (Vec::new(), Vec::new());
    let mut answer = Answer::ok(Value::Null);
    for seat in operation.seats.iter().filter(|seat| !operation.left_out.contains(seat)) {
        let (code, kind, status) = {
            let truth = world.truth();
            let pad = truth.pad(*seat);
            (pad.code.clone(), pad.kind, pad.condition.pad_status)
        };
        let refused = match (kind, is_on, status) {
            (Kind::Ordinary | Kind::Timing, _, _) => Some((110_071, "not a net storage pad")),
            (_, true, 20) => Some((111_070, "the pad is booting")),
            (_, false, 19) => Some((111_076, "the pad is shutting down")),
            (_, true, 18 | 22) | (_, false, 10 | 21) => None,
            (_, true, _) => Some((111_071, "the pad is not shut down")),
            (_, false, _) => Some((111_078, "the pad is not running")),
        };
        if let Some((errcode, msg)) = refused {
            failures.push(json!({"padCode": code, "errCode": errcode, "errMsg": msg}));
            continue;
        }
        let deed = if is_on { Deed::PowerOn } else { Deed::PowerOff };
        let submitted = submit(world, operation.endpoint, *seat, deed);
        answer.tasks.extend(submitted.task.filter(|_| submitted.is_made));
        successes.push(json!({
            "taskId": submitted.task, "padCode": code, "vmStatus": i64::from(!is_on), "taskStatus": submitted.status,
        }));
    }
    answer.data = json!({"successList": successes, "failList": failures});
    answer
}

/// Runs a command and waits for its end before it answers, up to a time limit.
pub(crate) async fn sync_command(world: &Arc<World>, operation: Operation<'_>) -> Answer {
    let mut answer = flat(world, operation);
    let ([seat], Some(id)) = (operation.seats, answer.tasks.first().copied()) else { return answer };
    let limit = Duration::from_millis(world.switches().time(Switch::SyncLimit, *seat));
    match tokio::time::timeout(limit, tasks::wait_for_end(world, id)).await {
        Ok(_) if operation.left_out.contains(seat) => answer.data = json!([]),
        Ok(status) => {
            let truth = world.truth();
            let row = |task: &Task| {
                json!({
                    "taskId": id, "padCode": task.code, "taskStatus": status, "taskResult": task.result,
                    "errorMsg": task.error,
                })
            };
            answer.data = truth.tasks.get(&id).map(row).into_iter().collect();
        }
        Err(_) => {
            let tasks = answer.tasks;
            answer = Answer { tasks, ..Answer::of_code(110_012) };
        }
    }
    answer
}

/// Issues a token for the screen of one pad.
pub(crate) fn token(world: &World, seat: Seat) -> Answer {
    let digits = world.fresh("token");
    let token =
        format!("{}-{}-{}-{}-{}", &digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..32]);
    let mut truth = world.truth();
    let pad = truth.pad_mut(seat);
    pad.sessions.push(token.clone());
    let entry = json!({"operation": "token", "pad": pad.code});
    drop(truth);
    world.did(entry);
    Answer::ok(json!({"token": token}))
}

/// Ends the session of one token.
pub(crate) fn clear_token(world: &World, body: &Members) -> Answer {
    let Some(token) = body.text("token") else { return missing("token").into() };
    let mut truth = world.truth();
    let holder = truth.pads.iter_mut().find(|pad| pad.sessions.iter().any(|known| known == token));
    let Some(pad) = holder else { return Answer::refusal(120_008, "the token does not belong to you") };
    pad.sessions.retain(|known| known != token);
    let entry = json!({"operation": "clear_token", "pad": pad.code});
    drop(truth);
    world.did(entry);
    Answer::ok(Value::Null)
}

/// Ends the screen sessions of pads; each pad without one is refused on its own.
pub(crate) fn dissolve(world: &World, seats: &[Seat]) -> Answer {
    let (mut successes, mut failures) = (Vec::new(), Vec::new());
    for seat in seats {
        let mut truth = world.truth();
        let pad = truth.pad_mut(*seat);
        let code = pad.code.clone();
        if pad.sessions.is_empty() {
            failures.push(json!({"padCode": code, "errorCode": 120_004, "errorMsg": "the room does not exist"}));
            continue;
        }
        pad.sessions.clear();
        drop(truth);
        world.did(json!({"operation": "dissolve_room", "pad": code}));
        successes.push(json!({"padCode": code}));
    }
    Answer::ok(json!({"successList": successes, "failList": failures}))
}

fn submit(world: &Arc<World>, endpoint: &'static Endpoint, seat: Seat, deed: Deed) -> Submitted {
    let plan = Plan::take(&mut world.switches(), Asked { endpoint: endpoint.name, seats: &[seat] });
    tasks::submit(world, seat, endpoint.name, deed, plan)
}

/// Returns the refusal if a pad is off for a restart, or not up for a command that the switch
/// refuses.
fn unready(world: &World, deed: &Deed, seats: &[Seat]) -> Option<Refusal> {
    seats.iter().find_map(|seat| {
        let refuses = world.switches().look(Switch::OfflineCommand, *seat).is_some_and(|how| how == "110031");
        let truth = world.truth();
        let pad = truth.pad(*seat);
        let is_refused = match deed {
            Deed::Command(_) => refuses && !pad.is_up(),
            Deed::Restart | Deed::Reset => pad.condition.pad_status == 18,
            _ => false,
        };
        is_refused.then(|| refusal(110_031))
    })
}

fn deed(call: Call, body: &Members) -> Result<Deed, Refusal> {
    match call {
        Call::Restart => Ok(Deed::Restart),
        Call::Reset => Ok(Deed::Reset),
        Call::TimingOn | Call::StorageOn => Ok(Deed::PowerOn),
        Call::TimingOff | Call::StorageOff => Ok(Deed::PowerOff),
        Call::SetProxy => proxy(body),
        Call::AsyncCommand | Call::SyncCommand => {
            let script = body.text("scriptContent").ok_or_else(|| missing("scriptContent"))?;
            Ok(Deed::Command(script.to_owned()))
        }
        _ => Ok(Deed::ReadExit),
    }
}

/// Reads the proxy of `setProxy`. Unknown fields are ignored, so a request without any known field
/// does nothing.
fn proxy(body: &Members) -> Result<Deed, Refusal> {
    let enable = body.get("enable").and_then(Value::as_bool).ok_or_else(|| missing("enable"))?;
    if !enable {
        return Ok(Deed::SetProxy(None));
    }
    let (Some(host), Some(port)) = (body.get("ip"), body.get("port")) else { return Ok(Deed::Nothing) };
    let host = host.as_str().ok_or_else(|| missing("ip"))?;
    let port = port.as_u64().and_then(|port| u16::try_from(port).ok()).ok_or_else(|| missing("port"))?;
    let login = [body.text("account").unwrap_or_default(), body.text("password").unwrap_or_default()];
    if login.iter().any(|part| part.contains('|')) {
        return Err(missing("account"));
    }
    let bypass = ["bypassIpList", "bypassDomainList"].iter().filter_map(|list| body.texts(list)).flatten();
    Ok(Deed::SetProxy(Some(Proxy {
        host: host.to_owned(),
        port,
        scheme: body.text("proxyName").unwrap_or("socks5").to_owned(),
        login: login.iter().any(|part| !part.is_empty()).then(|| login.join(":")),
        bypass: bypass.map(str::to_owned).collect(),
    })))
}
