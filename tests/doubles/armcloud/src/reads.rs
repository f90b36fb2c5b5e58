//! Lists and readings: views of the truth, or of an earlier state if a switch makes them lag.

use crate::answers::Answer;
use crate::requests::{Members, missing};
use crate::switches::{Switch, Switches};
use crate::truth::{Pad, Seat, Truth};
use crate::world::{World, now};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The rental time of a seat, in milliseconds.
const MONTH: u64 = 30 * 86_400_000;

/// The state of a pad as lists show it.
struct View<'a> {
    pad: &'a Pad,
    pad_status: i64,
    online: i64,
    cvm_status: i64,
    /// The `host` of the proxy, if lists show it.
    proxy: Option<&'a str>,
    /// The `publicIp` that lists show.
    public: Option<Value>,
}

/// Returns a page of pads: `infos`, or ARMCloud's `padDetails` with more details.
pub(crate) fn pages(world: &World, body: &Members, details: Details, left_out: &BTreeSet<Seat>) -> Answer {
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
    let status = body.number("padStatus");
    let all: Vec<View<'_>> = seats(&truth, named.as_deref())
        .filter(|seat| is_known(&switches, *seat) && !left_out.contains(seat))
        .map(|seat| view(&switches, &truth, seat))
        .filter(|view| status.is_none_or(|status| status == view.pad_status))
        .collect();
    let lie = switches.global(Switch::Pages).and_then(Value::as_str).unwrap_or_default();
    let (total, from) = (all.len(), (page - 1).saturating_mul(rows));
    let from = match lie {
        "endless" => from % total.max(1),
        "shifted" => from.saturating_sub(page - 1),
        _ => from,
    };
    let data: Vec<Value> = all.iter().skip(from).take(rows).map(|view| row(view, details)).collect();
    let (total, pages) = match lie {
        "total_is_zero" => (0, 0),
        "endless" => (total + page * rows, page + 1),
        _ => (total, total.div_ceil(rows)),
    };
    let shown = if lie == "rows_are_the_size" { data.len() } else { rows };
    Answer::ok(json!({
        "page": page, "rows": shown, "size": data.len(), "total": total, "totalPage": pages, "pageData": data,
    }))
}

/// The amount of detail per pad on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Details {
    /// As in `infos` of VMOS Cloud.
    Few,
    /// As in `infos` of ARMCloud.
    More,
    /// As in `padDetails`.
    All,
}

/// Returns the list of seats of VMOS Cloud and VSPhone, without pages.
pub(crate) fn seat_list(world: &World, body: &Members, left_out: &BTreeSet<Seat>) -> Answer {
    let switches = world.switches();
    let truth = world.truth();
    let code = body.text("padCode").filter(|code| !code.is_empty());
    let equipment = body.numbers("equipmentIds").filter(|ids| !ids.is_empty());
    let wanted = equipment.map(|ids| ids.into_iter().filter_map(Seat::of_equipment).collect::<BTreeSet<_>>());
    let named = code.map(|code| vec![code]);
    // All pads of a fleet are created at the same time.
    let created = truth.pads.first().map_or(0, |pad| pad.created);
    let dates = [created, created + MONTH].map(local);
    let rows: Vec<Value> = seats(&truth, named.as_deref())
        .filter(|seat| wanted.as_ref().is_none_or(|wanted| wanted.contains(seat)))
        .filter(|seat| is_known(&switches, *seat) && !left_out.contains(seat))
        .map(|seat| seat_row(&view(&switches, &truth, seat), &dates))
        .collect();
    if switches.global(Switch::Records) == Some(&Value::Bool(true)) {
        return Answer::ok(json!({"page": 1, "rows": rows.len(), "total": rows.len(), "records": rows}));
    }
    Answer::ok(rows.into())
}

/// Returns `padInfo` of one pad.
pub(crate) fn pad_info(world: &World, seat: Seat) -> Answer {
    let switches = world.switches();
    let truth = world.truth();
    let View { pad, proxy, .. } = view(&switches, &truth, seat);
    Answer::ok(json!({
        "padCode": pad.code, "padName": pad.name, "padType": pad.model, "androidVersion": format!("Android{}", pad.android),
        "country": "SG", "simCountry": "SG", "ipAddress": "Singapore", "publicIp": proxy, "timeZone": "Asia/Singapore",
        "latitude": 1.29, "longitude": 103.85, "phoneNumber": null, "padImei": null, "wlanMac": null,
        "bluetoothAddress": null, "operatorNumeric": "52501", "groupId": "0", "initializationData": "{}",
    }))
}

/// Returns `modelInfo` of some pads.
pub(crate) fn model_info(world: &World, seats: &[Seat]) -> Answer {
    let truth = world.truth();
    let rows = seats.iter().map(|seat| {
        let pad = truth.pad(*seat);
        json!({
            "padCode": pad.code, "imei": null, "serialno": pad.code, "wifimac": null, "androidid": null, "model": pad.model,
            "brand": "samsung", "manufacturer": "samsung", "isRoot": null, "width": 1080, "height": 1920,
            "memoryLimit": null, "bluetoothaddr": null, "phonenum": null, "romVersion": format!("android{}", pad.android),
            "dataSize": 67_108_864_000_u64, "dataSizeAvailable": 60_000_000_000_u64, "dataSizeUsed": 7_108_864_000_u64,
        })
    });
    Answer::ok(rows.collect())
}

/// Returns the pads whose code changed in the last three days, or on one day.
pub(crate) fn code_changes(world: &World, body: &Members) -> Answer {
    const THREE_DAYS: u64 = 3 * 86_400_000;
    let truth = world.truth();
    let day = body.text("queryDate");
    let young = truth.changes.iter().filter(|change| change.at + THREE_DAYS > now());
    let wanted = young.filter(|change| day.is_none_or(|day| local(change.at).starts_with(day)));
    Answer::ok(
        wanted
            .map(|change| json!({"oldPadCode": change.old, "newPadCode": change.new, "changeTime": local(change.at)}))
            .collect(),
    )
}

/// Returns `padTaskDetail`. A task that is not found has no row.
pub(crate) fn task_detail(world: &World, body: &Members, left_out: &BTreeSet<Seat>) -> Answer {
    let Some(ids) = body.numbers("taskIds") else { return missing("taskIds").into() };
    let mut truth = world.truth();
    let mut rows = Vec::new();
    for id in ids.into_iter().filter_map(|id| u64::try_from(id).ok()) {
        let Some(task) = truth.tasks.get_mut(&id).filter(|task| !left_out.contains(&task.seat)) else { continue };
        if task.absent > 0 {
            task.absent -= 1;
            continue;
        }
        rows.push(json!({
            "taskId": id, "padCode": task.code, "taskStatus": task.status, "endTime": task.ended, "taskContent": null,
            "taskResult": task.result, "errorMsg": task.error,
        }));
    }
    Answer::ok(rows.into())
}

/// Returns true if the platform admits that it knows a pad.
pub(crate) fn is_known(switches: &Switches, seat: Seat) -> bool {
    !switches.look_flag(Switch::UnknownPad, seat)
}

/// Returns the pads of these codes, or all pads.
fn seats<'a>(truth: &'a Truth, named: Option<&[&'a str]>) -> Box<dyn Iterator<Item = Seat> + 'a> {
    match named {
        None => Box::new(truth.pads.iter().map(|pad| pad.seat)),
        Some(codes) => {
            let found: BTreeSet<Seat> = codes.iter().filter_map(|code| truth.find(code)).collect();
            Box::new(found.into_iter())
        }
    }
}

fn view<'a>(switches: &Switches, truth: &'a Truth, seat: Seat) -> View<'a> {
    let pad = truth.pad(seat);
    let condition = pad.at(now().saturating_sub(switches.time(Switch::Lag, seat)));
    let shown = |switch, value| switches.look_number(switch, seat).unwrap_or(value);
    let proxy = condition.proxy.as_ref().filter(|_| switches.look_flag(Switch::ProxyInList, seat));
    let (pad_status, online, cvm_status) = match pad.is_shown_up {
        true => (10, true, 100),
        false => (condition.pad_status, condition.online, condition.cvm_status),
    };
    View {
        pad,
        pad_status: shown(Switch::PadStatus, pad_status),
        online: shown(Switch::Online, i64::from(online)),
        cvm_status: shown(Switch::CvmStatus, cvm_status),
        proxy: proxy.map(|proxy| proxy.host.as_str()),
        public: switches.look(Switch::PublicAddress, seat).or(proxy.map(|proxy| json!(proxy.host)).as_ref()).cloned(),
    }
}

fn row(view: &View<'_>, details: Details) -> Value {
    let View { pad, pad_status, online, cvm_status: _, proxy: _, public: _ } = view;
    let number = pad.seat.0;
    let mut row = json!({
        "padCode": pad.code, "padGrade": "m2-3", "padStatus": pad_status, "groupId": 0, "idcCode": "001",
        "deviceIp": format!("172.31.{}.{}", number / 2_000 % 256, number / 8 % 250 + 1),
        "padIp": format!("10.{}.{}.{}", number / 62_500 % 256, number / 250 % 250, number % 250 + 1), "apps": null,
    });
    let more = json!({
        "padType": "real", "adbOpenStatus": "0", "imageId": "img-26010100001",
        "imageVersion": format!("android{}", pad.android), "createTime": local(pad.created), "customerAccount": "shop@test",
        "armServerCode": "ACS32010260000", "deviceCode": format!("AC32010250{:03}", number / 8 % 1_000),
    });
    let all = json!({
        "online": online, "streamStatus": i64::from(!pad.sessions.is_empty()), "deviceStatus": 1, "deviceLevel": "m2-3", "cpu": -1,
        "memory": -1, "dataSize": null, "dataSizeUsed": null, "screenLayoutCode": "realdevice_1080x1920x480",
        "dcInfo": {"dcName": "Singapore 1", "dcCode": "001", "area": "SG"}, "type": "real", "mac": null, "dns": null,
        "netStorageResFlag": i64::from(pad.kind == crate::truth::Kind::NetStorage), "clusterCode": "C1", "countryCode": "SG",
    });
    let parts = match details {
        Details::Few => vec![],
        Details::More => vec![more],
        Details::All => vec![more, all],
    };
    if let Value::Object(members) = &mut row {
        members.extend(parts.into_iter().filter_map(|part| part.as_object().cloned()).flatten());
    }
    row
}

fn seat_row(view: &View<'_>, [created, expires]: &[String; 2]) -> Value {
    let View { pad, pad_status: _, online: _, cvm_status, proxy, public } = view;
    json!({
        "padCode": pad.code, "padName": pad.name, "equipmentId": pad.seat.equipment(), "userId": 100_200, "cvmStatus": cvm_status,
        "status": 1, "deviceIp": null, "padIp": null, "androidVersion": pad.android, "configName": "M2-3", "goodName": "M2-3",
        "goodId": 7, "supplierType": "8", "bootTime": pad.started, "createTime": created,
        "signExpirationTime": expires, "signExpirationTimeTamp": pad.created + MONTH,
        "proxyIp": proxy, "proxyId": null, "ipAddress": "Singapore", "publicIp": public, "groupId": 0, "groupName": null,
        "remark": null, "screenshotLink": null, "maintainContent": null,
    })
}

/// Formats a time as the platform does: in Chinese time, without a zone.
fn local(milliseconds: u64) -> String {
    let time = jiff::Timestamp::from_millisecond(i64::try_from(milliseconds).unwrap_or_default()).unwrap_or_default();
    let china = time.to_zoned(jiff::tz::TimeZone::fixed(jiff::tz::offset(8)));
    china.strftime("%Y-%m-%d %H:%M:%S").to_string()
}
