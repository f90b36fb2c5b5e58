//! Lists and readings: views of the truth, or of an earlier state if a switch makes them lag.

use crate::answers::Answer;
use crate::requests::{Members, missing};
use crate::switches::Switches;
use crate::truth::{Pad, Seat, Truth};
use crate::world::{World, now};
use serde_json::{Value, json};
use std::collections::BTreeSet;

struct View<'a> {
    pad: &'a Pad,
    pad_status: i64,
    cvm_status: i64,
    public: Option<String>,
}

/// Answers `infos`.
pub(crate) fn pages(world: &World, body: &Members) -> Answer {
    let Some(page) = body.number("page").and_then(|page| usize::try_from(page).ok()).filter(|page| *page > 0) else {
        return missing("page").into();
    };
    let rows = body.number("rows").and_then(|rows| usize::try_from(rows).ok());
    let Some(rows) = rows.filter(|rows| (1..=1_000).contains(rows)) else {
        return Answer::refusal(100_000, "rows must be between 1 and 1000");
    };
    let switches = world.switches();
    let truth = world.truth();
    let named = body.texts("padCodes").filter(|codes| !codes.is_empty());
    let all: Vec<Seat> = seats(&switches, &truth, named.as_deref()).collect();
    let total = all.len();
    let shown = all.into_iter().skip((page - 1).saturating_mul(rows)).take(rows);
    let data: Vec<Value> = shown.map(|seat| row(&view(&switches, &truth, seat))).collect();
    Answer::ok(json!({
        "page": page, "rows": rows, "size": data.len(), "total": total, "totalPage": total.div_ceil(rows), "pageData": data,
    }))
}

pub(crate) fn seat_list(world: &World, body: &Members) -> Answer {
    let switches = world.switches();
    let truth = world.truth();
    let named = body.text("padCode").filter(|code| !code.is_empty()).map(|code| vec![code]);
    let equipment = body.numbers("equipmentIds").filter(|ids| !ids.is_empty());
    let wanted = equipment.map(|ids| ids.into_iter().filter_map(Seat::of_equipment).collect::<BTreeSet<_>>());
    let rows = seats(&switches, &truth, named.as_deref());
    let rows = rows.filter(|seat| wanted.as_ref().is_none_or(|wanted| wanted.contains(seat)));
    Answer::ok(rows.map(|seat| seat_row(&view(&switches, &truth, seat))).collect())
}

/// Answers `padTaskDetail`. A task that is not found has no row.
pub(crate) fn task_detail(world: &World, body: &Members) -> Answer {
    let Some(ids) = body.numbers("taskIds") else { return missing("taskIds").into() };
    let truth = world.truth();
    let mut rows = Vec::new();
    for id in ids.into_iter().filter_map(|id| u64::try_from(id).ok()) {
        let Some(task) = truth.tasks.get(&id) else { continue };
        rows.push(json!({
            "taskId": id, "padCode": task.code, "taskStatus": task.status, "endTime": task.ended, "taskContent": null,
            "taskResult": task.result, "errorMsg": task.error,
        }));
    }
    Answer::ok(rows.into())
}

/// Returns true if the platform admits that it knows a pad.
pub(crate) fn is_known(switches: &Switches, seat: Seat) -> bool {
    switches.look(seat, |set| &set.unknown_pad) != Some(true)
}

fn seats<'a>(switches: &'a Switches, truth: &'a Truth, named: Option<&[&str]>) -> impl Iterator<Item = Seat> + 'a {
    let seats: Vec<Seat> = match named {
        None => truth.pads.iter().map(|pad| pad.seat).collect(),
        Some(codes) => codes.iter().filter_map(|code| truth.find(code)).collect(),
    };
    seats.into_iter().filter(|seat| is_known(switches, *seat))
}

fn view<'a>(switches: &Switches, truth: &'a Truth, seat: Seat) -> View<'a> {
    let pad = truth.pad(seat);
    let condition = pad.at(now().saturating_sub(switches.look(seat, |set| &set.lag_ms).unwrap_or_default()));
    let (pad_status, cvm_status) = match pad.is_shown_up {
        true => (10, 100),
        false => (condition.pad_status, condition.cvm_status),
    };
    View {
        pad,
        pad_status: switches.look(seat, |set| &set.pad_status).unwrap_or(pad_status),
        cvm_status: switches.look(seat, |set| &set.cvm_status).unwrap_or(cvm_status),
        public: switches.look(seat, |set| &set.public_address),
    }
}

/// Has of the members that nobody reads only a few.
fn row(view: &View<'_>) -> Value {
    let View { pad, pad_status, cvm_status: _, public: _ } = view;
    json!({"padCode": pad.code, "padGrade": "m2-3", "padStatus": pad_status, "groupId": 0, "idcCode": "001", "apps": null})
}

fn seat_row(view: &View<'_>) -> Value {
    let View { pad, pad_status: _, cvm_status, public } = view;
    json!({
        "padCode": pad.code, "padName": pad.name, "equipmentId": pad.seat.equipment(), "cvmStatus": cvm_status,
        "androidVersion": pad.android, "configName": "M2-3", "goodName": "M2-3", "bootTime": pad.started,
        "createTime": "2026-01-01 10:00:00", "publicIp": public, "deviceIp": null, "groupName": null,
    })
}
