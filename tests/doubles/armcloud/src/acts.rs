//! Acts that do not come over the platform: those of the programs of an operator, and the restart
//! that a phone itself asks for. They are tasks like those of the platform, with its switches.

use crate::endpoints::{ACTS, RESTART};
use crate::faults::{Faults, Instead};
use crate::host::ActEnd;
use crate::requests::Members;
use crate::switches::Asked;
use crate::tasks::{self, Deed, Plan};
use crate::truth::{Proxy, Seat};
use crate::world::{World, now};
use serde_json::json;
use std::sync::Arc;

/// `padStatus`.
const OFF: i64 = 18;

/// Returns `None` if there is no such act, or its input lacks something.
pub(crate) async fn carry_out(world: &Arc<World>, seat: Seat, action: &str, input: &Members) -> Option<ActEnd> {
    let name = ACTS.into_iter().chain([RESTART]).find(|name| *name == action)?;
    let asked = Asked { endpoint: name, seats: &[seat] };
    let (faults, plan) = {
        let mut switches = world.switches();
        (Faults::take(&mut switches, asked), Plan::take(&mut switches, asked))
    };
    let (is_on, is_shown_up, code) = {
        let truth = world.truth();
        let pad = truth.pad(seat);
        (pad.condition.pad_status != OFF, pad.is_shown_up, pad.code.clone())
    };
    world.journal.write(now(), "request", json!({"endpoint": name, "pads": [code]}));
    tasks::wait(faults.stall).await;
    match faults.instead {
        Some(Instead::Drop) => return Some(ActEnd::of_status(None)),
        Some(_) => return Some(ActEnd::of_status(Some(1))),
        None => {}
    }
    let deed = match name {
        "status" => {
            let says = if is_on || is_shown_up { "running\n" } else { "stopped\n" };
            return Some(ActEnd { status: Some(0), says: says.to_owned() });
        }
        "start" if is_on => Deed::Nothing,
        "start" => Deed::PowerOn,
        "stop" if !is_on => Deed::Nothing,
        "stop" => Deed::PowerOff,
        "set-proxy" => Deed::SetProxy(Some(proxy(input)?)),
        "clear-proxy" => Deed::SetProxy(None),
        _ => Deed::Restart,
    };
    let status = tasks::wait_for_end(world, tasks::submit(world, seat, deed, plan)).await;
    tasks::wait(faults.answer_stall).await;
    let is_failure = status != 3 || faults.code_after.is_some();
    Some(ActEnd::of_status(faults.cut.is_none().then(|| u8::from(is_failure))))
}

/// Accepts at once, like the real init.
pub(crate) async fn reboot(world: &Arc<World>, seat: Seat) -> ActEnd {
    let plan = Plan::take(&mut world.switches(), Asked { endpoint: RESTART, seats: &[seat] });
    let (end, never_ends) = (plan.end, plan.never_ends);
    tasks::submit(world, seat, Deed::Restart, plan);
    if never_ends {
        std::future::pending::<()>().await;
    }
    ActEnd::of_status(Some(u8::from(end != 3)))
}

fn proxy(input: &Members) -> Option<Proxy> {
    let login = ["username", "password"].map(|name| input.text(name).unwrap_or_default());
    Some(Proxy {
        host: input.text("host")?.to_owned(),
        port: u16::try_from(input.number("port")?).ok()?,
        scheme: input.text("scheme")?.to_owned(),
        login: login.iter().any(|part| !part.is_empty()).then(|| login.join(":")),
    })
}
