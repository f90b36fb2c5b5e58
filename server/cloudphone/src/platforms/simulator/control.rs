//! Commands of the simulated fleet, and readings of their effects.

use super::cast::{Fate, Part, Script, WORK};
use super::fleet::{self, Network, mix};
use super::truth::{Change, OperationEnd, ProxyEndpoint, ReplyTime, TakenCommand};
use super::{PhoneAt, Record, Sim};
use crate::phones::contract::{ClearProxyArgs, Command, DeviceCapability, DeviceId, DeviceState, PowerAction};
use crate::phones::contract::{SessionMode, SetPowerArgs, SetProxyArgs};
use crate::phones::port::{
    CheckPort, Exits, PhoneStart, PhoneWrite, PlatformName, Query, Screen, Session, SessionError, Through, Unreachable,
    WritePort,
};
use std::net::IpAddr;
use std::sync::atomic::Ordering::Relaxed;
use toolwarrant::BoxFuture;
use toolwarrant::operator::UpstreamState;
use toolwarrant::tasks::{Facts, Leave, Sent, TaskId};

impl WritePort for Sim {
    fn session<'a>(&'a self, id: &'a DeviceId, _: SessionMode) -> BoxFuture<'a, Result<Session, SessionError>> {
        Box::pin(async move { self.issue(id) })
    }

    fn screen(&self, id: &DeviceId) -> Option<&dyn Screen> {
        let part = self.part(fleet::index(id.as_str(), self.devices)?);
        (!matches!(part, Part::Reticent | Part::WithoutSession)).then_some(self)
    }

    fn facts(&self, _: &PhoneWrite) -> Facts {
        Facts::default()
    }

    fn send<'a>(&'a self, request: TaskId, command: &'a Command, leave: Leave) -> BoxFuture<'a, Sent> {
        Box::pin(async move {
            if let Err(why) = leave.confirm() {
                return Sent::NotSent(why);
            }
            match self.take(request, command) {
                Err(why) => Sent::NotSent(why.into()),
                Ok(Some(number)) => self.answer(number).await,
                Ok(None) => {
                    self.clock.sleep_until(self.clock.now().plus(WORK)).await;
                    Sent::NoAnswer("no answer in time".into())
                }
            }
        })
    }

    fn look_up<'a>(&'a self, _: &'a DeviceId, request: TaskId, operation: Option<&'a str>) -> Query<'a, Option<Sent>> {
        Box::pin(async move { self.find_sent(request, operation) })
    }

    fn exits<'a>(&'a self, id: &'a DeviceId, proxy: Option<&'a SetProxyArgs>) -> Query<'a, Exits> {
        Box::pin(async move {
            let through = proxy.map(|proxy| self.leaves_from(id, Some(proxy)).map(Through::Phone)).transpose()?;
            let direct = fleet::index(id.as_str(), self.devices).map(|index| Network::Phones.address(index.into()));
            Ok(Exits {
                ordinary: self.leaves_from(id, None)?,
                through,
                direct,
                is_shared: false,
                former: None,
                other: None,
            })
        })
    }

    fn boot_id<'a>(&'a self, id: &'a DeviceId) -> Query<'a, PhoneStart> {
        Box::pin(async move {
            let PhoneAt { index, state, .. } = self.awake(id)?;
            let value = format!("{:016x}", mix([self.seed, index.into(), state.boots]));
            Ok(PhoneStart { value, on: None, age: None })
        })
    }
}

impl CheckPort for Sim {
    fn state(&self, name: &PlatformName) -> UpstreamState {
        UpstreamState {
            name: name.to_string(),
            kind: "simulator",
            reachable: self.reach().is_ok(),
            age_seconds: Some(0),
            targets: self.devices.into(),
            ..UpstreamState::default()
        }
    }
}

impl Sim {
    /// Decides all consequences of a command. Returns its number; `None` if it is lost.
    fn take(&self, request: TaskId, command: &Command) -> Result<Option<usize>, String> {
        self.reach().map_err(|error| error.to_string())?;
        let (device, change) = read(command);
        let index = fleet::index(device.as_str(), self.devices).ok_or("no such phone")?;
        let record = &mut *self.record();
        let now = self.clock.now();
        record.fold_if_grown(now);
        let Record { truth, journal } = record;
        let phone = self.phone_in(truth, index, now);
        let Script { reply, answer, acts_after } = match phone.part.fate() {
            Fate::Refused => return Err("the phone refuses connections".to_owned()),
            Fate::Lost => return Ok(None),
            Fate::Taken(script) if self.can(&phone, &change) => script,
            Fate::Taken(_) => Script::FAILED,
        };
        let (answer_at, acts_at) = (now.plus(WORK), acts_after.map(|after| now.plus(after)));
        let taken = TakenCommand { at: now, request, phone: index, change, reply, answer, answer_at, acts_at };
        journal.append(&taken).map_err(|error| format!("the journal cannot be written: {error}"))?;
        let number = truth.take(taken, || phone.part.initial_state());
        self.table.write(index);
        Ok(Some(number))
    }

    fn can(&self, phone: &PhoneAt, change: &Change) -> bool {
        let snapshot = self.snapshot(phone);
        let power = |action| snapshot.offers(DeviceCapability::Power) && snapshot.power_actions.contains(&action);
        match change {
            Change::SetProxy(proxy) => {
                snapshot.offers(DeviceCapability::Proxy) && snapshot.proxy_schemes.contains(&proxy.scheme)
            }
            Change::ClearProxy => snapshot.offers(DeviceCapability::Proxy),
            Change::Boot => power(PowerAction::Boot),
            Change::Shutdown => power(PowerAction::Shutdown),
            Change::Restart => {
                let up = matches!(phone.state.power, DeviceState::Running | DeviceState::Restarting);
                up && power(PowerAction::Restart)
            }
        }
    }

    fn report(&self, number: usize) -> Option<(TakenCommand, Sent)> {
        let taken = self.record().truth.operation(number)?.clone();
        let sent = match taken.answer {
            _ if self.clock.now() < taken.answer_at => Sent::Pending(operation(number)),
            OperationEnd::Ok => Sent::Ok,
            OperationEnd::Err => Sent::Err("the phone reports an error".into()),
        };
        Some((taken, sent))
    }

    async fn answer(&self, number: usize) -> Sent {
        let lost = || Sent::NoAnswer("no answer in time".into());
        let Some((TakenCommand { reply, answer_at, .. }, sent)) = self.report(number) else { return lost() };
        if reply == ReplyTime::Operation {
            return sent;
        }
        self.clock.sleep_until(answer_at).await;
        if reply == ReplyTime::Lost || self.reach().is_err() {
            return lost();
        }
        self.report(number).map_or_else(lost, |(_, sent)| sent)
    }

    fn find_sent(&self, request: TaskId, name: Option<&str>) -> Result<Option<Sent>, Unreachable> {
        self.reach()?;
        let numbers = self.record().truth.numbers(request).to_vec();
        let Some(name) = name else { return Err(Unreachable("it knows operations, not requests".into())) };
        let number = numbers.into_iter().find(|number| operation(*number) == name);
        Ok(number.and_then(|number| self.report(number)).map(|(_, sent)| sent))
    }

    pub(super) fn leaves_from(&self, id: &DeviceId, through: Option<&SetProxyArgs>) -> Result<IpAddr, Unreachable> {
        let phone = self.awake(id)?;
        let own = Network::Phones.address(phone.index.into());
        let through = through.map(endpoint);
        let leaking = through.is_none() && phone.part == Part::Leaking;
        let Some(ProxyEndpoint { scheme: _, host, port }) =
            through.or_else(|| phone.state.proxy_in_use().cloned()).filter(|_| !leaking)
        else {
            return Ok(own);
        };
        Ok(if phone.part == Part::Rotating {
            let count = self.rotated.fetch_add(1, Relaxed);
            Network::Rotating.address(mix([self.clock.now().0, count]))
        } else {
            let host = host.bytes().map(u64::from);
            Network::Proxies.address(mix(host.chain([port.get().unsigned_abs()])))
        })
    }

    fn awake(&self, id: &DeviceId) -> Result<PhoneAt, Unreachable> {
        self.reach()?;
        let awake = self.find(id).filter(|phone| phone.readable && phone.state.power == DeviceState::Running);
        awake.ok_or_else(|| Unreachable(format!("{id} does not respond").into()))
    }
}

/// Drops the credentials.
fn read(command: &Command) -> (&DeviceId, Change) {
    match command {
        Command::SetProxy(args) => (&args.device_id, Change::SetProxy(endpoint(args))),
        Command::ClearProxy(ClearProxyArgs { device_id, idempotency_key: _ }) => (device_id, Change::ClearProxy),
        Command::SetPower(SetPowerArgs { device_id, action, idempotency_key: _ }) => {
            let change = match action {
                PowerAction::Boot => Change::Boot,
                PowerAction::Shutdown => Change::Shutdown,
                PowerAction::Restart => Change::Restart,
            };
            (device_id, change)
        }
    }
}

fn endpoint(args: &SetProxyArgs) -> ProxyEndpoint {
    let SetProxyArgs { device_id: _, scheme, host, port, username: _, password: _, idempotency_key: _ } = args;
    ProxyEndpoint { scheme: *scheme, host: host.as_str().to_owned(), port: *port }
}

fn operation(number: usize) -> String {
    format!("operation-{number}")
}
