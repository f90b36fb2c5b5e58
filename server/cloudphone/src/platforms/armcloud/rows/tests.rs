//! Rows in all forms of answers, and the tables of states.

use super::conditions::{CVM_STATUS, PAD_STATUS, condition};
use super::*;
use crate::adapter_kit::phone_ledger::{KeptRow, Row};
use crate::phones::contract::{DeviceCapability, DeviceId, DeviceState};
use crate::phones::port::DeviceReading;
use crate::platforms::armcloud::api::Rows;
use std::fmt::Write;
use toolwarrant::base::json;
use toolwarrant::handler::Flag;
use toolwarrant::text::Untrusted;

fn pad(row: &str) -> Pad {
    json::read(row).unwrap()
}

#[test]
fn rows_are_found_in_every_form_of_answer() {
    let row = r#"{"padCode":"AC1"}"#;
    for (data, codes, count, paged) in [
        (format!("[{row}]"), 1, 1, false),
        (format!(r#"{{"pageData":[{row},{row}],"rows":2,"total":"9"}}"#), 2, 2, true),
        (format!(r#"{{"records":[{row}]}}"#), 1, 1, true),
        (r#"{"pageData":null,"total":0}"#.to_owned(), 0, 0, true),
        (r#"{"pageData":[]}"#.to_owned(), 0, 0, true),
        (row.to_owned(), 1, 1, false),
        ("null".to_owned(), 0, 0, false),
        ("[]".to_owned(), 0, 0, false),
        (
            format!(r#"[null,7,"x",[],["AC2"],{{}},{{"padCode":null}},{{"padCode":""}},{{"padCode":["AC2"]}},{row}]"#),
            1,
            10,
            false,
        ),
        (format!(r#"[{{"padCode":"{}"}}]"#, "A".repeat(65)), 0, 1, false),
        (format!(r#"[{{"padCode":"AC1","x":"{}"}}]"#, "x".repeat(64 << 10)), 0, 1, false),
    ] {
        let read: Rows<Pad> = json::read(&data).unwrap();
        assert_eq!((read.rows.len(), read.count, read.paged), (codes, count, paged), "{data}");
    }
    for data in [r#""busy""#, "7", "{}", r#"{"total":3}"#, r#"{"pageData":"none"}"#] {
        assert!(json::read::<Rows<Pad>>(data).is_err(), "{data} must not pass for a platform without pads");
    }
}

#[test]
fn members_are_read_with_any_type() {
    let numbers =
        pad(r#"{"padCode":"AC1","equipmentId":"77","padStatus":"10","cvmStatus":"100","online":"1","idcCode":1}"#);
    let strings = pad(r#"{"padCode":"AC1","equipmentId":77,"padStatus":10,"cvmStatus":100,"online":1,"idcCode":"1"}"#);
    assert_eq!(numbers, strings);
    let odd = pad(
        r#"{"padCode":"AC1","equipmentId":{},"padStatus":10.5,"cvmStatus":true,"online":[1],"padName":"\u001b[31m \n","x":1}"#,
    );
    assert_eq!(odd, pad(r#"{"padCode":"AC1"}"#));
    let long = format!("\"{}\"", "7".repeat(65));
    for seat in ["0", "-1", "\"\"", "\"0\"", "null", &long] {
        assert_eq!(pad(&format!(r#"{{"padCode":"AC1","equipmentId":{seat}}}"#)).serial(), None, "{seat}");
    }
    let long = pad(&format!(r#"{{"padCode":"AC1","padName":"{}"}}"#, "x".repeat(10_000)));
    assert_eq!(long.pad_name.unwrap().as_str().chars().count(), 64);
    assert_eq!(json::read::<Pad>(&serde_json::to_string(&strings).unwrap()).unwrap(), strings);
}

fn network_storage() -> Abilities {
    Abilities { on_off: vec!["ACN".to_owned()], ..Abilities::default() }
}

const CURRENT: Option<UnservedOperations> = Some(UnservedOperations(0));

fn snapshot_of(code: &str, row: &str) -> DeviceReading {
    let row = pad(&format!(r#"{{"padCode":"{code}",{row}}}"#));
    network_storage().reading(&DeviceId::new("n-1").ok().unwrap(), &row, CURRENT)
}

/// Writes two letters for a flag that is true, and two points if it is worth waiting.
fn flags(snapshot: &DeviceReading) -> String {
    let letter = |capability: &DeviceCapability| match snapshot.flag(*capability) {
        Flag::Offered => &capability.as_str()[..2],
        Flag::Passing(_) | Flag::Unreachable => "..",
        Flag::Refused(_) | Flag::Curable { .. } => "--",
    };
    let letters: Vec<&str> = DeviceCapability::ALL.iter().map(letter).collect();
    let cure = if matches!(snapshot.offers.proxy, Flag::Curable { .. }) { " (boot)" } else { "" };
    format!("{}{cure}", letters.join(" "))
}

#[test]
fn the_table_of_states() {
    let mut text = format!("{:18} {:10} {:9} {:16} why\n", "", "state", "restarts", "boots too");
    let mut line = |name: &str, row: &str| {
        let [plain, on_off] = ["AC1", "ACN1"].map(|code| snapshot_of(code, row));
        let told = pad(&format!(r#"{{"padCode":"AC1",{row}}}"#));
        let why = condition(told.pad_status, told.cvm_status, told.online).why;
        writeln!(text, "{name:18} {:10} {:9} {:16} {why}", plain.state().as_str(), flags(&plain), flags(&on_off))
            .unwrap();
    };
    for (number, _) in PAD_STATUS {
        line(&format!("padStatus {number}"), &format!(r#""padStatus":{number}"#));
    }
    for (number, _) in CVM_STATUS {
        line(&format!("cvmStatus {number}"), &format!(r#""cvmStatus":{number}"#));
    }
    for number in [0, 1, 2] {
        line(&format!("10, online {number}"), &format!(r#""padStatus":10,"cvmStatus":100,"online":{number}"#));
    }
    line("18, online 0", r#""padStatus":18,"online":0"#);
    line("padStatus 27", r#""padStatus":27"#);
    line("cvmStatus 203", r#""cvmStatus":203"#);
    line("nothing", r#""padStatus":null"#);
    write!(text, "\nboth: R running, s stopped, b booting, d stopping, r restarting\npadStatus").unwrap();
    for (number, _) in CVM_STATUS {
        write!(text, " {number}").unwrap();
    }
    for (pad, _) in PAD_STATUS {
        write!(text, "\n{pad:9}").unwrap();
        for (cvm, _) in CVM_STATUS {
            let letter = match condition(Some(pad), Some(cvm), None).state {
                Some(DeviceState::Running) => 'R',
                Some(DeviceState::Stopped) => 's',
                Some(DeviceState::Booting) => 'b',
                Some(DeviceState::Stopping) => 'd',
                Some(DeviceState::Restarting) => 'r',
                Some(DeviceState::Unknown) | None => '.',
            };
            write!(text, "   {letter}").unwrap();
        }
    }
    insta::assert_snapshot!(text);
}

#[test]
fn an_old_or_unreachable_row_has_no_state_and_its_true_flags_are_unreachable() {
    let known = r#""padName":"One","imageVersion":"android14","padGrade":"m2-3","idcCode":"001""#;
    for (status, shown, unshown, state) in [
        (10, Flag::Offered, Flag::Unreachable, DeviceState::Running),
        (11, Flag::Passing("the phone is restarting"), Flag::Unreachable, DeviceState::Restarting),
        (18, Flag::Refused("the phone is stopped"), Flag::Refused("the phone is stopped"), DeviceState::Stopped),
    ] {
        let row = KeptRow::from(pad(&format!(r#"{{"padCode":"AC1","padStatus":{status},{known}}}"#)));
        let id = DeviceId::new("n-ac1").ok().unwrap();
        for (unserved, flag, state) in [(CURRENT, &shown, Some(state)), (None, &unshown, None)] {
            let snapshot = network_storage().snapshot(&id, &row, unserved);
            assert_eq!(snapshot.state, state);
            for capability in DeviceCapability::ALL {
                assert_eq!(snapshot.flag(*capability), flag);
            }
            let spec = [&snapshot.spec.model, &snapshot.spec.os_version, &snapshot.spec.region];
            assert_eq!(spec.map(|text| text.as_ref().unwrap().as_str()), ["m2-3", "14", "001"]);
            assert_eq!(snapshot.name.as_str(), "One");
        }
    }
}

#[test]
fn a_version_of_android_is_its_number() {
    for (told, version) in [
        (r#""androidVersion":"13","imageVersion":"android14""#, Some("13")),
        (r#""androidVersion":"Android13""#, Some("13")),
        (r#""romVersion":"android 15""#, Some("15")),
        (r#""androidVersion":15"#, Some("15")),
        (r#""imageVersion":"android""#, Some("android")),
        (r#""imageVersion":"Ändroid14""#, Some("Ändroid14")),
        (r#""padStatus":10"#, None),
    ] {
        assert_eq!(snapshot_of("AC1", told).spec.os_version.as_ref().map(Untrusted::as_str), version, "{told}");
    }
}

#[test]
fn the_view_of_a_row_is_the_same_while_the_row_is_equally_current() {
    let (abilities, id) = (Abilities::default(), DeviceId::new("n-1").ok().unwrap());
    let row = KeptRow::from(pad(r#"{"padCode":"AC1","padStatus":10}"#));
    let [shown, unshown] = [CURRENT, None].map(|unserved| abilities.snapshot(&id, &row, unserved));
    assert!(std::ptr::eq(shown, abilities.snapshot(&id, &row, CURRENT)));
    assert!(std::ptr::eq(unshown, abilities.snapshot(&id, &row, None)));
    assert_ne!(shown, unshown);
}

#[test]
fn rows_that_are_no_pads_cost_no_memory_and_a_list_has_at_most_100_000() {
    let zeros = format!("[0{}]", ",0".repeat(100_000));
    let read: Rows<Pad> = json::read(&zeros).expect("a list");
    assert_eq!((read.count, read.rows.capacity(), read.paged), (100_001, 0, false));
    let members = format!("{{{}\"pageData\":[]}}", r#""x":[[0]],"#.repeat(10_000));
    assert_eq!(json::read::<Rows<Pad>>(&members).expect("a page").count, 0);
    let list = |count: usize| json::read::<Rows<Pad>>(&format!("[{}{{}}]", r#"{"padCode":"1"},"#.repeat(count)));
    assert_eq!(list(100_000).expect("a list").rows.len(), 100_000);
    assert!(list(100_001).is_err());
}
