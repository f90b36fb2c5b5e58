//! The readings that are evidence, row by row.

use super::*;
use crate::phones::tests::{Staged, name, phone};
use Verdict::{Absent, Present, Undecidable, Unreadable as Unread};
use toolwarrant::tasks::{Leave, Parsed, TaskId};
use toolwarrant::text::Secret;
use toolwarrant::{Clock, Timestamp};

fn write(tool: &str, more: &str, probe: Option<Probe>, baseline: Option<&str>) -> Write {
    Write {
        id: TaskId::new(Timestamp(0), [1; 10]),
        tool: tool.to_owned(),
        target: "phone-1".to_owned(),
        arguments: Secret::new(format!(r#"{{"device_id":"phone-1"{more}}}"#)),
        probe: probe.map(|probe| probe.as_str().to_owned()),
        baseline: baseline.map(str::to_owned),
        operation: None,
        sent_by: None,
        parsed: Parsed::default(),
    }
}

fn set_proxy(baseline: Option<&str>) -> Write {
    let more = r#","scheme":"http","host":"proxy.example.com","port":8080,"password":"HUNTER2""#;
    write("set_proxy", more, Some(Probe::ExitIp), baseline)
}

fn set_power(action: &str, probe: Probe, baseline: Option<&str>) -> Write {
    write("set_power", &format!(r#","action":"{action}""#), Some(probe), baseline)
}

#[tokio::test]
async fn a_proxy_is_in_force_where_the_phone_leaves_from_the_address_that_the_proxy_shows() {
    let (home, proxy, other) = ("192.0.2.1", "192.0.2.2", "192.0.2.3");
    let mapped = "::ffff:192.0.2.2";
    for (name, before, through, own, verdict) in [
        ("set", Some(home), Some(proxy), Some(proxy), Present),
        ("set, as an IPv6 address", Some(home), Some(mapped), Some(proxy), Present),
        ("the same proxy set again", Some(proxy), Some(proxy), Some(proxy), Undecidable),
        ("the same proxy set again, as an IPv6 address", Some(proxy), Some(mapped), Some(proxy), Undecidable),
        ("not set", Some(home), Some(proxy), Some(home), Absent),
        ("another proxy, which may lead there by the first", Some(other), Some(proxy), Some(other), Unread),
        ("rotates", Some(home), Some(proxy), Some(other), Unread),
        ("the proxy cannot be reached", Some(home), None, Some(home), Unread),
        ("the phone cannot be reached", Some(home), Some(proxy), None, Unread),
        ("nothing was read before", None, Some(proxy), Some(home), Unread),
        ("nothing was read before, and it is not the own address", None, Some(proxy), Some(proxy), Present),
    ] {
        let writes = writes(Staged { own, through, direct: home.parse().ok(), ..Staged::default() });
        let reading = writes.probe(&set_proxy(before)).await;
        assert_eq!(reading.verdict, verdict, "{name}: {reading:?}");
    }
}

#[tokio::test]
async fn a_power_state_is_evidence_only_where_it_is_an_end() {
    use DeviceState::{Booting, Restarting, Running, Stopped, Stopping, Unknown};
    let of = |state| Some(vec![phone("phone-1", state)]);
    let shown = |phones, boot| writes(Staged { phones, boot, ..Staged::default() });
    for (phones, boot, shutdown) in [
        (of(Some(Running)), Unread, Absent),
        (of(Some(Stopped)), Absent, Present),
        (of(Some(Booting)), Unread, Unread),
        (of(Some(Stopping)), Unread, Unread),
        (of(Some(Restarting)), Unread, Unread),
        (of(Some(Unknown)), Unread, Unread),
        (of(None), Unread, Unread),
        (Some(Vec::new()), Unread, Unread),
        (None, Unread, Unread),
    ] {
        let writes = shown(phones.clone(), None);
        for (action, verdict) in [("boot", boot), ("shutdown", shutdown)] {
            let reading = writes.probe(&set_power(action, Probe::PowerState, None)).await;
            assert_eq!(reading.verdict, verdict, "{action} {phones:?}: {reading:?}");
        }
    }
    let writes = shown(of(Some(Running)), Some("4f"));
    assert_eq!(writes.probe(&set_power("boot", Probe::PowerState, None)).await.verdict, Present);
}

#[tokio::test]
async fn a_restart_is_another_boot_id_than_before() {
    for (before, boot, verdict) in [
        (Some("4f"), Some("a1"), Present),
        (Some("4f"), Some("4f"), Absent),
        (Some("4f"), Some("4f\u{200b}\n"), Absent),
        (Some("4f"), Some(""), Unread),
        (Some("4f"), None, Unread),
        (None, Some("a1"), Unread),
    ] {
        let writes = writes(Staged { boot, ..Staged::default() });
        let reading = writes.probe(&set_power("restart", Probe::BootId, before)).await;
        assert_eq!(reading.verdict, verdict, "{before:?} {boot:?}: {reading:?}");
    }
}

/// The clock stands at 100 s.
#[tokio::test]
async fn another_start_is_no_restart_if_it_is_older_than_the_reading_before_the_send() {
    for (before, age, verdict) in [
        ("4f@x;60000", Some(39), Present),
        // The clocks of two processes may differ.
        ("4f@x;60000", Some(41), Present),
        ("4f@x;60000", Some(43), Unread),
        ("4f@x;60000", Some(9_000), Unread),
        ("4f@x;60000", None, Present),
        ("4f@x", Some(9_000), Present),
        ("a1@x;60000", Some(9_000), Absent),
    ] {
        let staged = Staged { boot: Some("a1@x"), age, ..Staged::default() };
        let writes = writes_at(Timestamp(100_000), Arc::new(staged));
        let reading = writes.probe(&set_power("restart", Probe::BootId, Some(before))).await;
        assert_eq!(reading.verdict, verdict, "{before} {age:?}");
        assert!(!format!("{reading:?}").contains(";60000"), "{reading:?}");
    }
}

/// The clock stands at 100 s, and the request had left by 60 s.
#[tokio::test]
async fn without_a_start_from_before_a_restart_is_a_start_after_the_request() {
    for (age, sent_by, verdict) in [
        (Some(39), Some(60), Present),
        (Some(40), Some(60), Absent),
        (Some(500), Some(60), Absent),
        (None, Some(60), Unread),
        (Some(0), None, Unread),
    ] {
        let staged = Staged { boot: Some("a1@x"), age, ..Staged::default() };
        let writes = writes_at(Timestamp(100_000), Arc::new(staged));
        let sent_by = sent_by.map(|seconds: u64| Timestamp(seconds * 1_000));
        let write = Write { sent_by, ..set_power("restart", Probe::BootId, None) };
        assert_eq!(writes.probe(&write).await.verdict, verdict, "{age:?} {sent_by:?}");
    }
}

#[tokio::test]
async fn the_reading_from_before_is_of_the_probe_that_compares() {
    let shows = Staged { own: Some("::ffff:192.0.2.1"), boot: Some("4f\n"), ..Staged::default() };
    let [shows, mute, empty] = [shows, Staged::default(), Staged { boot: Some("\n"), ..Staged::default() }];
    let [shows, mute, empty] = [shows, mute, empty].map(writes);
    let restart = set_power("restart", Probe::BootId, None);
    assert_eq!(shows.baseline(&set_proxy(None)).await.as_deref(), Ok("192.0.2.1"));
    assert_eq!(shows.baseline(&restart).await.as_deref(), Ok("4f;0"));
    assert!(shows.baseline(&set_power("boot", Probe::PowerState, None)).await.is_err());
    assert!(mute.baseline(&set_proxy(None)).await.is_err() && mute.baseline(&restart).await.is_err());
    assert!(empty.baseline(&restart).await.is_err(), "an empty boot id would differ from every other");
}

#[tokio::test]
async fn a_write_that_cannot_be_verified_is_unreadable_and_does_not_quote_the_platform() {
    let mute = writes(Staged::default());
    for write in [
        write("clear_proxy", "", None, None),
        write("clear_proxy", "", Some(Probe::ExitIp), Some("192.0.2.1")),
        set_power("boot", Probe::ExitIp, Some("192.0.2.1")),
        set_proxy(Some("192.0.2.1")),
        write("paint", "", Some(Probe::ExitIp), None),
    ] {
        let reading = mute.probe(&write).await;
        assert_eq!(reading.verdict, Unread, "{write:?}");
        assert!(!format!("{reading:?}").contains("vendor"), "{reading:?}");
    }
}

#[tokio::test]
async fn a_phone_whose_requests_go_nowhere_is_told_apart_from_one_that_cannot_be_read() {
    for (why, observed) in [
        (NOTHING_ARRIVED, "the phone answers, but no request of it arrives"),
        ("vendor says no", "the phone could not be read"),
    ] {
        let writes = writes(Staged { unread: Some(why), ..Staged::default() });
        let reading = writes.probe(&set_proxy(Some("192.0.2.1"))).await;
        assert_eq!((reading.verdict, reading.observed.as_str()), (Unread, observed));
    }
}

#[tokio::test]
async fn a_write_goes_out_under_the_id_of_its_task_and_is_looked_up_by_it() {
    let staged = Arc::new(Staged::default());
    let writes = writes_at(Timestamp(0), staged.clone());
    let mut write = set_proxy(None);
    let Sent::Pending(sent) = writes.send(&write, leave()).await else { panic!("not sent") };
    assert!(sent.starts_with(&format!("{} SetProxy", write.id)) && !sent.contains("HUNTER2"), "{sent}");
    assert_eq!(writes.look_up(&write).await, Ok(Some(Sent::Ok)));
    write.operation = Some("7".to_owned());
    writes.look_up(&write).await.unwrap();
    assert_eq!(*staged.asked.lock().unwrap(), [(write.id, None), (write.id, Some("7".to_owned()))]);
}

#[tokio::test]
async fn a_write_that_a_later_contract_does_not_know_is_not_sent() {
    let writes = writes(Staged::default());
    for write in [write("paint", "", None, None), write("set_power", r#","action":"explode""#, None, None)] {
        assert!(matches!(writes.send(&write, leave()).await, Sent::NotSent(_)), "{write:?}");
    }
}

#[tokio::test]
async fn nothing_is_sent_to_a_phone_whose_platform_is_not_configured() {
    let writes = writes(Staged::default());
    let arguments = Secret::new(r#"{"device_id":"gone-1"}"#.to_owned());
    let write = Write { target: "gone-1".to_owned(), arguments, ..write("clear_proxy", "", None, None) };
    let why = "the platform of gone-1 is not configured";
    assert!(writes.facts(&write).gone.is_some());
    assert_eq!(writes.send(&write, leave()).await, Sent::NotSent(why.into()));
    assert_eq!(writes.look_up(&write).await, Err(Unreadable(why.into())));
}

fn leave() -> Leave {
    Leave::until(Timestamp(0), &Clock::manual(Timestamp(0)))
}

fn writes(staged: Staged) -> Writes {
    writes_at(Timestamp(0), Arc::new(staged))
}

fn writes_at(now: Timestamp, staged: Arc<Staged>) -> Writes {
    let platforms = Platforms::default().with(name("phone"), staged);
    Writes::new(Arc::new(platforms), Arc::new(Views::new(Clock::manual(now))))
}
