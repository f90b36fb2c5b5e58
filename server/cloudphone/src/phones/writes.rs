//! Carries out and verifies writes on phones, for the engine.
//!
//! Defines each probe: its reading, and the readings that prove or disprove that a command took
//! effect. An adapter only reads. Start at [`Writes`].

use super::contract::{ClearProxyArgs, Command, DeviceId, DeviceState, PowerAction, Probe, SetPowerArgs, SetProxyArgs};
use super::platforms::Platforms;
use super::port::{NOTHING_ARRIVED, PhoneStart, Platform, Through, Unreachable};
use super::views::Views;
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

struct WriteOrder {
    command: Command,
    device: DeviceId,
    probe: Option<Probe>,
}

impl WriteOrder {
    /// Fails if the contract has changed and no longer admits the write.
    fn read(write: &Write) -> Result<Self, Unreadable> {
        let command = Command::read(&write.tool, write.arguments.expose());
        let command =
            command.ok_or_else(|| Unreadable(format!("`{}` does not take these arguments", write.tool).into()))?;
        Ok(Self { device: command.device().clone(), command, probe: probe(write) })
    }

    /// Restores a restart even without readable arguments: nothing else is verified by the boot id.
    fn restore(write: &Write) -> Result<Self, Unreadable> {
        Self::read(write).or_else(|unreadable| match (probe(write), DeviceId::new(&write.target)) {
            (probe @ Some(Probe::BootId), Ok(device)) => {
                let (device_id, action, idempotency_key) = (device.clone(), PowerAction::Restart, None);
                let command = Command::SetPower(SetPowerArgs { device_id, action, idempotency_key });
                Ok(Self { command, device, probe })
            }
            _ => Err(unreadable),
        })
    }
}

impl Executor for Writes {
    fn facts(&self, write: &Write) -> Facts {
        let Ok(device_id) = DeviceId::new(&write.target) else { return Facts::default() };
        // The target alone is enough for the facts about look-ups, and the engine relies on no
        // others.
        let unknown = || Command::ClearProxy(ClearProxyArgs { device_id: device_id.clone(), idempotency_key: None });
        let command = WriteOrder::restore(write).map_or_else(|_| unknown(), |order| order.command);
        let gone = |_| Facts { gone: Some("its platform is not configured any more"), ..Facts::default() };
        self.platforms.of(&device_id).map_or_else(gone, |platform| platform.facts(&device_id, &command))
    }

    fn verifies_without_arguments(&self, write: &Write) -> bool {
        WriteOrder::restore(write).is_ok()
    }

    fn baseline<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Result<String, Unreadable>> {
        Box::pin(async move {
            let WriteOrder { device, probe, .. } = WriteOrder::read(write)?;
            match probe {
                Some(Probe::ExitIp) => Ok(canonical(self.platforms.of(&device)?.exits(&device, None).await?.ordinary)),
                Some(Probe::BootId) => {
                    let (begun, platform) = (self.views.now(), self.platforms.of(&device)?);
                    Ok(format!("{};{}", read_boot_id(platform, &device).await?.value, begun.0))
                }
                Some(Probe::PowerState) | None => Err(Unreadable("nothing is compared".into())),
            }
        })
    }

    fn send<'a>(&'a self, write: &'a Write, leave: Leave) -> BoxFuture<'a, Sent> {
        Box::pin(async move {
            let send = async {
                let WriteOrder { command, device, .. } = WriteOrder::read(write)?;
                Ok(self.platforms.of(&device)?.send(write.id, &command, leave).await)
            };
            let sent = send.await.unwrap_or_else(|Unreadable(why)| Sent::NotSent(why));
            self.forget(write);
            sent
        })
    }

    fn look_up<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Result<Option<Sent>, Unreadable>> {
        Box::pin(async move {
            let device = DeviceId::new(&write.target).map_err(|_| Unreadable("its target is none".into()))?;
            let known = self.platforms.of(&device)?.look_up(&device, write.id, write.operation.as_deref()).await;
            self.forget(write);
            Ok(known?)
        })
    }

    fn probe<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Reading> {
        Box::pin(async move {
            let reading = async {
                let WriteOrder { command, device, probe } = WriteOrder::restore(write)?;
                let baseline = write.baseline.as_deref();
                match (probe, &command) {
                    (Some(Probe::ExitIp), Command::SetProxy(args)) => self.exit_ip(&device, args, baseline).await,
                    (Some(Probe::PowerState), Command::SetPower(SetPowerArgs { action, .. })) => {
                        self.power_state(&device, *action).await
                    }
                    (Some(Probe::BootId), Command::SetPower(_)) => self.boot_id(&device, baseline, write.sent_by).await,
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
    async fn boot_id(
        &self,
        device: &DeviceId,
        before: Option<&str>,
        sent_by: Option<Timestamp>,
    ) -> Result<Reading, Unreadable> {
        let (begun, platform) = (self.views.now(), self.platforms.of(device)?);
        let PhoneStart { value: now, age } = read_boot_id(platform, device).await?;
        let Some(before) = before else {
            let (Some(age), Some(sent_by)) = (age, sent_by) else { return Err(nothing_before()) };
            let verdict = if begun.minus(age) > sent_by { Verdict::Present } else { Verdict::Absent };
            let observed = format!("before: not read; after: {now}, which had run for {} s", age.as_secs());
            return Ok(make_reading(verdict, "after: a start after the request".to_owned(), observed));
        };
        // Tasks from an earlier version have no time of the reading.
        let timed = before.rsplit_once(';').and_then(|(value, at)| Some((value, Some(at.parse().ok()?))));
        let (before, read_at) = timed.unwrap_or((before, None));
        if read_on(before) != read_on(&now) {
            return Err(Unreadable("the platform has replaced the phone since it was read before the send".into()));
        }
        let ended = self.views.now();
        let is_older = |age, read_at| ended.minus(age).plus(CLOCKS_APART) < Timestamp(read_at);
        if now != before && age.zip(read_at).is_some_and(|(age, read_at)| is_older(age, read_at)) {
            return Err(Unreadable("a phone answers that started before the request, so it is another one".into()));
        }
        let verdict = if now == before { Verdict::Absent } else { Verdict::Present };
        if verdict == Verdict::Present
            && let Some(on) = read_on(&now)
            && let Err(Unreachable(why)) = platform.note_restart(device, on).await
        {
            tracing::warn!(
                device = device.as_str(),
                why = why.as_str(),
                "it could not be stored that a phone's start follows a restart"
            );
        }
        let observed = before_after(Some(before), &now);
        Ok(make_reading(verdict, "after: another boot id than before".to_owned(), observed))
    }
}

/// Refuses an empty boot id, which would differ from every other, and one that would be cut,
/// because two could then look equal.
async fn read_boot_id(platform: &dyn Platform, device: &DeviceId) -> Result<PhoneStart, Unreadable> {
    let start = platform.boot_id(device).await?;
    match Remark::clean(&start.value).as_str() {
        "" => Err(Unreadable("the boot id is empty".into())),
        id if id.len() > BOOT_ID_MAX => Err(Unreadable("the boot id is too long".into())),
        id => Ok(PhoneStart { value: id.to_owned(), ..start }),
    }
}

fn probe(write: &Write) -> Option<Probe> {
    Probe::ALL.iter().copied().find(|probe| write.probe.as_deref() == Some(probe.as_str()))
}

fn read_on(reading: &str) -> Option<&str> {
    reading.split_once('@').map(|(_, on)| on)
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
