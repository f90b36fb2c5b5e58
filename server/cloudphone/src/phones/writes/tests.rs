//! The readings that are evidence, row by row.

use super::*;
use crate::phones::contract::{DeviceSpec, SessionMode};
use crate::phones::port::{DeviceReading, Exits, Offers, Paces, See, Session, SessionError, Upstream};
use Verdict::{Absent, Present, Undecidable, Unreadable as Unread};
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Duration;
use toolwarrant::handler::Flag;
use toolwarrant::tasks::{Leave, TaskId};
use toolwarrant::text::Secret;
use toolwarrant::{Clock, Timestamp};

/// A phone that shows what a test sets; `None` stands for a value that cannot be read.
#[derive(Default)]
struct Staged {
    own: Option<&'static str>,
    through: Option<&'static str>,
    boot: Option<&'static str>,
    /// The seconds for which it has run.
    age: Option<u64>,
    /// The address that it has without a proxy.
    direct: Option<IpAddr>,
    /// Outer: the platform answers; middle: the phone exists; inner: its state can be read.
    state: Option<Option<Option<DeviceState>>>,
    asked: Mutex<Vec<(TaskId, Option<String>)>>,
}

fn stage<T>(reading: Option<T>) -> Result<T, Unreachable> {
    reading.ok_or_else(|| Unreachable("the vendor's words".into()))
}

impl Upstream for Staged {
    fn page(&self, _: Option<&DeviceId>, _: u16, _: See<'_>) -> Result<(), Unreachable> {
        stage(None)
    }

    fn read(&self, ids: &[&str], see: See<'_>) -> Result<(), Unreachable> {
        if let Some(state) = stage(self.state)? {
            see(&[&Arc::new(phone(ids[0], state).into())]);
        }
        Ok(())
    }

    fn session<'a>(&'a self, _: &'a DeviceId, _: SessionMode) -> BoxFuture<'a, Result<Session, SessionError>> {
        Box::pin(async { Err(SessionError::Unreachable(Unreachable("".into()))) })
    }
}

impl Control for Staged {
    fn facts(&self, _: &DeviceId, _: &Command) -> Facts {
        Facts::default()
    }

    fn send<'a>(&'a self, request: TaskId, command: &'a Command, _: Leave) -> BoxFuture<'a, Sent> {
        Box::pin(async move { Sent::Pending(format!("{request} {command:?}")) })
    }

    fn look_up<'a>(
        &'a self,
        _: &'a DeviceId,
        request: TaskId,
        operation: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Option<Sent>, Unreachable>> {
        self.asked.lock().unwrap().push((request, operation.map(str::to_owned)));
        Box::pin(async { Ok(Some(Sent::Ok)) })
    }

    fn exits<'a>(
        &'a self,
        _: &'a DeviceId,
        proxy: Option<&'a SetProxyArgs>,
    ) -> BoxFuture<'a, Result<Exits, Unreachable>> {
        Box::pin(async move {
            let through =
                proxy.map(|_| stage(self.through)).transpose()?.map(|address| Through::Phone(address.parse().unwrap()));
            Ok(Exits {
                ordinary: stage(self.own)?.parse().unwrap(),
                through,
                direct: self.direct,
                is_shared: false,
                former: None,
                other: None,
            })
        })
    }

    fn boot_id<'a>(&'a self, _: &'a DeviceId) -> BoxFuture<'a, Result<PhoneStart, Unreachable>> {
        Box::pin(async {
            Ok(PhoneStart { value: stage(self.boot)?.to_owned(), age: self.age.map(Duration::from_secs) })
        })
    }
}

fn phone(id: &str, state: Option<DeviceState>) -> DeviceReading {
    DeviceReading {
        id: DeviceId::new(id).ok().unwrap(),
        name: "".into(),
        state,
        offers: Offers { proxy: Flag::Offered, power: Flag::Offered, session: Flag::Offered },
        spec: Arc::new(DeviceSpec {
            model: None,
            os_version: None,
            cpu_cores: None,
            memory_mb: None,
            storage_gb: None,
            screen: None,
            region: None,
        }),
        power_actions: Vec::new().into(),
        proxy_schemes: Vec::new().into(),
        proxy: None,
        session_modes: Vec::new().into(),
        paces: Paces::default(),
    }
}

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
        let writes = writes(Arc::new(Staged { own, through, direct: home.parse().ok(), ..Staged::default() }));
        let reading = writes.probe(&set_proxy(before)).await;
        assert_eq!(reading.verdict, verdict, "{name}: {reading:?}");
    }
}

#[tokio::test]
async fn a_power_state_is_evidence_only_where_it_is_an_end() {
    use DeviceState::{Booting, Restarting, Running, Stopped, Stopping, Unknown};
    let of = |state| Some(Some(Some(state)));
    let shown = |state, boot| Staged { state, boot, ..Staged::default() };
    for (state, boot, shutdown) in [
        (of(Running), Unread, Absent),
        (of(Stopped), Absent, Present),
        (of(Booting), Unread, Unread),
        (of(Stopping), Unread, Unread),
        (of(Restarting), Unread, Unread),
        (of(Unknown), Unread, Unread),
        (Some(Some(None)), Unread, Unread),
        (Some(None), Unread, Unread),
        (None, Unread, Unread),
    ] {
        let writes = writes(Arc::new(shown(state, None)));
        for (action, verdict) in [("boot", boot), ("shutdown", shutdown)] {
            let reading = writes.probe(&set_power(action, Probe::PowerState, None)).await;
            assert_eq!(reading.verdict, verdict, "{action} {state:?}: {reading:?}");
        }
    }
    // The list is the platform's word; the phone itself must answer.
    let writes = writes(Arc::new(shown(of(Running), Some("4f"))));
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
        let writes = writes(Arc::new(Staged { boot, ..Staged::default() }));
        let reading = writes.probe(&set_power("restart", Probe::BootId, before)).await;
        assert_eq!(reading.verdict, verdict, "{before:?} {boot:?}: {reading:?}");
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
        let views = Views::new(Clock::manual(Timestamp(100_000)));
        let writes = Writes::new(Arc::new(Staged { boot: Some("a1@x"), age, ..Staged::default() }), Arc::new(views));
        let sent_by = sent_by.map(|seconds: u64| Timestamp(seconds * 1_000));
        let write = Write { sent_by, ..set_power("restart", Probe::BootId, None) };
        assert_eq!(writes.probe(&write).await.verdict, verdict, "{age:?} {sent_by:?}");
    }
}

#[tokio::test]
async fn the_reading_from_before_is_of_the_probe_that_compares() {
    let shows = Staged { own: Some("::ffff:192.0.2.1"), boot: Some("4f\n"), ..Staged::default() };
    let [shows, mute, empty] = [shows, Staged::default(), Staged { boot: Some("\n"), ..Staged::default() }];
    let [shows, mute, empty] = [shows, mute, empty].map(|staged| writes(Arc::new(staged)));
    let restart = set_power("restart", Probe::BootId, None);
    assert_eq!(shows.baseline(&set_proxy(None)).await.as_deref(), Ok("192.0.2.1"));
    assert_eq!(shows.baseline(&restart).await.as_deref(), Ok("4f"));
    assert!(shows.baseline(&set_power("boot", Probe::PowerState, None)).await.is_err());
    assert!(mute.baseline(&set_proxy(None)).await.is_err() && mute.baseline(&restart).await.is_err());
    assert!(empty.baseline(&restart).await.is_err(), "an empty boot id would differ from every other");
}

#[tokio::test]
async fn a_write_that_cannot_be_verified_is_unreadable_and_does_not_quote_the_platform() {
    let mute = writes(Arc::new(Staged::default()));
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
async fn a_write_goes_out_under_the_id_of_its_task_and_is_looked_up_by_it() {
    let staged = Arc::new(Staged::default());
    let writes = writes(staged.clone());
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
    let writes = writes(Arc::new(Staged::default()));
    for write in [write("paint", "", None, None), write("set_power", r#","action":"explode""#, None, None)] {
        assert!(matches!(writes.send(&write, leave()).await, Sent::NotSent(_)), "{write:?}");
    }
}

fn leave() -> Leave {
    Leave::until(Timestamp(0), &Clock::manual(Timestamp(0)))
}

fn writes(control: Arc<Staged>) -> Writes {
    Writes::new(control, Arc::new(Views::new(Clock::manual(Timestamp(0)))))
}
