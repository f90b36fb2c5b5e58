//! Calls that change something: the checks, and the tasks that they create.

use crate::answers::{Answer, refusal};
use crate::endpoints::Call;
use crate::requests::{Members, Refusal, missing};
use crate::switches::Asked;
use crate::tasks::{self, Deed, Plan};
use crate::truth::{Proxy, Seat};
use crate::world::World;
use serde_json::{Value, json};
use std::sync::Arc;

#[derive(Clone, Copy)]
pub(crate) struct Operation<'a> {
    pub(crate) call: Call,
    pub(crate) body: &'a Members,
    pub(crate) seats: &'a [Seat],
}

pub(crate) fn flat(world: &Arc<World>, operation: Operation<'_>) -> Answer {
    let deed = match deed(operation.call, operation.body) {
        Ok(deed) => deed,
        Err(refused) => return refused.into(),
    };
    let is_off = |seat: &Seat| world.truth().pad(*seat).condition.pad_status == 18;
    if matches!(deed, Deed::Restart) && operation.seats.iter().any(is_off) {
        return refusal(110_031).into();
    }
    let mut answer = Answer::ok(Value::Null);
    let mut rows = Vec::new();
    for seat in operation.seats {
        let submitted = submit(world, operation.call, *seat, deed.clone());
        answer.tasks.push(submitted);
        rows.push(json!({
            "taskId": submitted, "padCode": world.truth().pad(*seat).code, "vmStatus": 1, "taskStatus": 1,
        }));
    }
    answer.data = rows.into();
    answer
}

/// Answers in a format that the vendor does not document.
pub(crate) fn timing(world: &Arc<World>, operation: Operation<'_>) -> Answer {
    let is_timing = |seat: &&Seat| seat.is_paid_by_time();
    if operation.seats.iter().filter(is_timing).count() < operation.seats.len() {
        return Answer::refusal(500, "this operation is only supported for timing pads");
    }
    let mut answer = flat(world, operation);
    answer.data = Value::Null;
    answer
}

pub(crate) fn token(world: &World, seat: Seat) -> Answer {
    let digits = world.fresh("token");
    let token =
        format!("{}-{}-{}-{}-{}", &digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..32]);
    let code = world.truth().pad(seat).code.clone();
    world.did(json!({"operation": "token", "pad": code}));
    Answer::ok(json!({"token": token}))
}

fn submit(world: &Arc<World>, call: Call, seat: Seat, deed: Deed) -> u64 {
    let plan = Plan::take(&mut world.switches(), Asked { endpoint: call.into(), seats: &[seat] });
    tasks::submit(world, seat, deed, plan)
}

fn deed(call: Call, body: &Members) -> Result<Deed, Refusal> {
    match call {
        Call::Restart => Ok(Deed::Restart),
        Call::TimingPadOn => Ok(Deed::PowerOn),
        Call::TimingPadOff => Ok(Deed::PowerOff),
        Call::SetProxy => proxy(body),
        _ => {
            let script = body.text("scriptContent").ok_or_else(|| missing("scriptContent"))?;
            Ok(Deed::Command(script.to_owned()))
        }
    }
}

/// Ignores unknown fields, as the platform does.
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
    Ok(Deed::SetProxy(Some(Proxy {
        host: host.to_owned(),
        port,
        scheme: body.text("proxyName").unwrap_or("socks5").to_owned(),
        login: login.iter().any(|part| !part.is_empty()).then(|| login.join(":")),
    })))
}
