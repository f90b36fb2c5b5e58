//! Carries out and verifies writes on phones, for the engine.
//!
//! Defines each probe: its reading, and the readings that prove or disprove that a command took
//! effect. An adapter only reads. Start at [`Writes`].

use super::contract::{Command, DeviceId, DeviceState, PowerAction, Probe, SetProxyArgs};
use super::platforms::Platforms;
use super::port::{NOTHING_ARRIVED, PhoneStart, PhoneWrite, Platform, Through, Unreachable};
use super::views::Views;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use toolwarrant::tasks::{Executor, Facts, Leave, Reading, Sent, Unreadable, Verdict, Write};
use toolwarrant::text::Remark;
use toolwarrant::{BoxFuture, Timestamp};

/// In bytes. Two boot ids of this length fit into the evidence.
const BOOT_ID_MAX: usize = 64;

/// The clocks of a phone's age and of an earlier process may differ.
const CLOCKS_APART: Duration = Duration::from_secs(2);

pub struct Writes {
    platforms: Arc<Platforms>,
    /// A write drops its phone, so that a client never sees it older than the task says.
    views: Arc<Views>,
}

/// A write, parsed once.
struct WriteOrder {
    write: PhoneWrite,
    probe: Option<Probe>,
}

impl WriteOrder {
    /// The arguments cannot be read if the contract has changed and no longer admits the write.
    fn parse(write: &Write) -> Result<Self, Unreadable> {
        let probe = Probe::ALL.iter().copied().find(|probe| write.probe.as_deref() == Some(probe.as_str()));
        let write = match Command::read(&write.tool, write.arguments.expose()) {
            Some(command) => PhoneWrite::Command(command),
            None => PhoneWrite::Unread {
                tool: write.tool.clone(),
                device: DeviceId::new(&write.target).map_err(|_| Unreadable("its target is none".into()))?,
                // Nothing else is verified by the boot id.
                is_restart: probe == Some(Probe::BootId),
            },
        };
        Ok(Self { write, probe })
    }
}

/// Returns the write as it was parsed first.
fn order(write: &Write) -> Result<Arc<WriteOrder>, Unreadable> {
    Result::clone(&write.parse_once(|write| WriteOrder::parse(write).map(Arc::new)))
}

impl Executor for Writes {
    fn facts(&self, write: &Write) -> Facts {
        let Ok(order) = order(write) else { return Facts::default() };
        let gone = |_| Facts { gone: Some("its platform is not configured any more"), ..Facts::default() };
        self.platforms.of(order.write.device()).map_or_else(gone, |platform| platform.facts(&order.write))
    }

    fn verifies_without_arguments(&self, write: &Write) -> bool {
        order(write).is_ok_and(|order| order.write.is_restart())
    }

    fn baseline<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Result<String, Unreadable>> {
        Box::pin(async move {
            let order = order(write)?;
            let WriteOrder { write, probe } = &*order;
            let device = write.device();
            match probe {
                Some(Probe::ExitIp) => Ok(canonical(self.platforms.of(device)?.exits(device, None).await?.ordinary)),
                Some(Probe::BootId) => {
                    let (begun, platform) = (self.views.now(), self.platforms.of(device)?);
                    let start = read_start(platform, device).await?;
                    Ok(StartBefore { start, read_at: Some(begun) }.to_string())
                }
                Some(Probe::PowerState) | None => Err(Unreadable("nothing is compared".into())),
            }
        })
    }

    fn send<'a>(&'a self, write: &'a Write, leave: Leave) -> BoxFuture<'a, Sent> {
        Box::pin(async move {
            let send = async {
                match &order(write)?.write {
                    PhoneWrite::Command(command) => {
                        Ok(self.platforms.of(command.device())?.send(write.id, command, leave).await)
                    }
                    PhoneWrite::Unread { tool, .. } => {
                        Err(Unreadable(format!("`{tool}` does not take these arguments").into()))
                    }
                }
            };
            let sent = send.await.unwrap_or_else(|Unreadable(why)| Sent::NotSent(why));
            self.forget(write);
            sent
        })
    }

    fn look_up<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Result<Option<Sent>, Unreadable>> {
        Box::pin(async move {
            let order = order(write)?;
            let device = order.write.device();
            let known = self.platforms.of(device)?.look_up(device, write.id, write.operation.as_deref()).await;
            self.forget(write);
            Ok(known?)
        })
    }

    fn probe<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Reading> {
        Box::pin(async move {
            let reading = async {
                let (baseline, order) = (write.baseline.as_deref(), order(write)?);
                let WriteOrder { write: order, probe } = &*order;
                let device = order.device();
                match (probe, order) {
                    (Some(Probe::ExitIp), PhoneWrite::Command(Command::SetProxy(args))) => {
                        self.exit_ip(device, args, baseline).await
                    }
                    (Some(Probe::PowerState), PhoneWrite::Command(Command::SetPower(args))) => {
                        self.power_state(device, args.action).await
                    }
                    (Some(Probe::BootId), order) if order.is_restart() => {
                        self.start(device, baseline, write.sent_by).await
                    }
                    (Some(Probe::ExitIp | Probe::PowerState | Probe::BootId) | None, _) => {
                        Err(Unreadable(format!("`{}` cannot be verified", write.tool).into()))
                    }
                }
            };
            let reading = reading.await;
            self.forget(write);
            reading.unwrap_or_else(|Unreadable(why)| {
                tracing::debug!(task = %write.id, why = why.as_str(), "a phone could not be read");
                let observed = match why.as_str() {
                    NOTHING_ARRIVED => "the phone answers, but no request of it arrives",
                    _ => "the phone could not be read",
                };
                make_reading(Verdict::Unreadable, "a reading of the phone".to_owned(), observed.to_owned())
            })
        })
    }
}

impl Writes {
    #[must_use]
    pub fn new(platforms: Arc<Platforms>, views: Arc<Views>) -> Self {
        Self { platforms, views }
    }

    fn forget(&self, write: &Write) {
        if let Ok(id) = DeviceId::new(&write.target) {
            self.views.forget(&id);
        }
    }

    async fn exit_ip(
        &self,
        device: &DeviceId,
        proxy: &SetProxyArgs,
        before: Option<&str>,
    ) -> Result<Reading, Unreadable> {
        let exits = self.platforms.of(device)?.exits(device, Some(proxy)).await?;
        let address = before.and_then(|before| before.parse().ok());
        let expected = match exits.through.map(Through::address) {
            Some(shown) => format!("after: the proxy's address, {}", canonical(shown)),
            None => format!("after: the proxy's own address, {}; no address was read through it", proxy.host.as_str()),
        };
        let verdict = exits.verdict(proxy, address);
        let mut observed = before_after(before, &canonical(exits.ordinary));
        let earlier = exits.former.or(exits.direct);
        if let (None, Some(earlier)) = (before, earlier) {
            observed += &format!("; earlier: {}", canonical(earlier));
        }
        if let Some(other) = exits.other {
            observed += &format!("; in the other family: {}", canonical(other.ordinary));
        }
        if verdict == Verdict::Undecidable {
            observed += match address.or(earlier) {
                Some(_) => "; the phone had the proxy's address without it, so nothing is shown",
                None => "; no address of the phone without this proxy is known, so nothing is shown",
            };
        }
        Ok(make_reading(verdict, expected, observed))
    }

    /// Reads the power state. A list is the platform's word, so a phone that is to run must answer
    /// itself.
    async fn power_state(&self, device: &DeviceId, action: PowerAction) -> Result<Reading, Unreadable> {
        let platform = self.platforms.of(device)?;
        let phone = platform.read_anew(device).await?;
        let state = phone.map_or(DeviceState::Unknown, |phone| phone.state());
        let (expected, unmoved) = match action {
            PowerAction::Boot | PowerAction::Restart => (DeviceState::Running, DeviceState::Stopped),
            PowerAction::Shutdown => (DeviceState::Stopped, DeviceState::Running),
        };
        let asked = match expected {
            DeviceState::Running if state == expected => Some(platform.boot_id(device).await.is_ok()),
            _ => None,
        };
        let (verdict, words) = match asked {
            Some(true) => (Verdict::Present, ", and the phone answers"),
            Some(false) => (Verdict::Unreadable, " by the platform's list, but the phone does not answer"),
            None if state == expected => (Verdict::Present, ""),
            None if state == unmoved => (Verdict::Absent, ""),
            None => (Verdict::Unreadable, ""),
        };
        let observed = format!("state {}{words}", state.as_str());
        Ok(make_reading(verdict, format!("state {}", expected.as_str()), observed))
    }

    /// Compares starts. The effect is another start, younger than the reading before: two phones
    /// whose connections change places show each other's start. Without a start from before the
    /// send, a start after the send is the effect.
    async fn start(
        &self,
        device: &DeviceId,
        before: Option<&str>,
        sent_by: Option<Timestamp>,
    ) -> Result<Reading, Unreadable> {
        let (begun, platform) = (self.views.now(), self.platforms.of(device)?);
        let now = read_start(platform, device).await?;
        let Some(StartBefore { start: before, read_at }) = before.map(StartBefore::parse) else {
            let (Some(age), Some(sent_by)) = (now.age, sent_by) else { return Err(nothing_before()) };
            let verdict = if begun.minus(age) > sent_by { Verdict::Present } else { Verdict::Absent };
            let observed = format!("before: not read; after: {now}, which had run for {} s", age.as_secs());
            return Ok(make_reading(verdict, "after: a start after the request".to_owned(), observed));
        };
        if before.on != now.on {
            return Err(Unreadable("the platform has replaced the phone since it was read before the send".into()));
        }
        let (ended, is_other) = (self.views.now(), now.value != before.value);
        let is_older = |(age, read_at)| ended.minus(age).plus(CLOCKS_APART) < read_at;
        if is_other && now.age.zip(read_at).is_some_and(is_older) {
            return Err(Unreadable("a phone answers that started before the request, so it is another one".into()));
        }
        if is_other
            && let Some(on) = &now.on
            && let Err(Unreachable(why)) = platform.note_restart(device, on).await
        {
            tracing::warn!(
                device = device.as_str(),
                why = why.as_str(),
                "it could not be stored that a phone's start follows a restart"
            );
        }
        let verdict = if is_other { Verdict::Present } else { Verdict::Absent };
        let observed = before_after(Some(&before.to_string()), &now.to_string());
        Ok(make_reading(verdict, "after: another boot id than before".to_owned(), observed))
    }
}

/// A start from before the send. As a text, it is `START;MILLISECONDS`.
struct StartBefore {
    start: PhoneStart,
    /// `None` in tasks of an earlier version.
    read_at: Option<Timestamp>,
}

impl StartBefore {
    fn parse(text: &str) -> Self {
        let timed = text.rsplit_once(';').and_then(|(start, at)| Some((start, Some(Timestamp(at.parse().ok()?)))));
        let (start, read_at) = timed.unwrap_or((text, None));
        let (value, on) = start.split_once('@').map_or((start, None), |(value, on)| (value, Some(on.to_owned())));
        Self { start: PhoneStart { value: value.to_owned(), on, age: None }, read_at }
    }
}

impl fmt::Display for StartBefore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.start.fmt(f)?;
        self.read_at.map_or(Ok(()), |Timestamp(at)| write!(f, ";{at}"))
    }
}

/// Refuses an empty boot id, which would differ from every other, and one that would be cut,
/// because two could then look equal.
async fn read_start(platform: &dyn Platform, device: &DeviceId) -> Result<PhoneStart, Unreadable> {
    let start = platform.boot_id(device).await?;
    let clean = |text: &str| Remark::clean(text).as_str().to_owned();
    let start = PhoneStart { value: clean(&start.value), on: start.on.as_deref().map(clean), age: start.age };
    match (start.value.as_str(), start.to_string().len()) {
        ("", _) => Err(Unreadable("the boot id is empty".into())),
        (_, length) if length > BOOT_ID_MAX => Err(Unreadable("the boot id is too long".into())),
        _ => Ok(start),
    }
}

/// Writes mapped addresses as IPv4, so that they compare equal.
fn canonical(address: IpAddr) -> String {
    address.to_canonical().to_string()
}

fn before_after(before: Option<&str>, after: &str) -> String {
    format!("before: {}; after: {after}", before.unwrap_or("not read"))
}

fn nothing_before() -> Unreadable {
    Unreadable("nothing was read before the send".into())
}

fn make_reading(verdict: Verdict, expected: String, observed: String) -> Reading {
    Reading { verdict, expected: expected.into(), observed: observed.into() }
}

impl From<Unreachable> for Unreadable {
    fn from(Unreachable(why): Unreachable) -> Self {
        Self(why)
    }
}

#[cfg(test)]
mod tests;
