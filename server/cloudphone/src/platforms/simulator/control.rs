//! Commands of the simulated fleet, and readings of their effects.

use super::Sim;
use super::cast::{Part, ReplyTime, Script, WORK, mix};
use super::fleet::{self, Network};
use super::phone::{PhoneAt, PhoneEffect, TakenCommand, proxy};
use crate::phones::contract::{
    Command, DeviceCapability, DeviceId, DeviceState, PowerAction, Proxy, SessionMode, SessionToken, SetProxyArgs,
};
use crate::phones::port::{
    CheckPort, Exits, PhoneStart, PhoneWrite, PlatformName, Screen, Session, SessionError, Through, Unreachable,
    WritePort,
};
use async_trait::async_trait;
use hmac::Mac;
use std::net::IpAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use toolwarrant::Timestamp;
use toolwarrant::base::hex;
use toolwarrant::operator::UpstreamState;
use toolwarrant::tasks::{Facts, Leave, Sent, TaskId};
use toolwarrant::text::Secret;

const SESSION_LIFETIME: Duration = Duration::from_mins(10);

#[async_trait]
impl WritePort for Sim {
    async fn session(&self, id: &DeviceId, _: SessionMode) -> Result<Session, SessionError> {
        self.reach()?;
        let refused = |why: &str| SessionError::Refused(format!("{id}: {why}").into());
        let phone = self.find(&self.phones(), id).ok_or_else(|| refused("no such phone"))?;
        if let Some(why) = phone.reading().offers.session.refusal() {
            return Err(refused(why));
        }
        let count = self.count.fetch_add(1, Relaxed);
        let code = self.tokens.clone().chain_update(count.to_be_bytes()).finalize().into_bytes();
        let token = SessionToken::new(&hex::encode(&code)).map_err(|_| refused("its token is none"))?;
        Ok(Session {
            token: Secret::new(token),
            url: None,
            expires_at: (phone.part != Part::Reticent).then(|| self.clock.now().plus(SESSION_LIFETIME)),
        })
    }

    fn screen(&self, id: &DeviceId) -> Option<&dyn Screen> {
        let (part, _) = fleet::draw(self.seed, fleet::index(id.as_str(), self.devices)?);
        (!matches!(part, Part::Reticent | Part::WithoutSession)).then_some(self)
    }

    fn facts(&self, _: &PhoneWrite) -> Facts {
        Facts::default()
    }

    async fn send(&self, request: TaskId, command: &Command, leave: Leave) -> Sent {
        if let Err(why) = leave.confirm() {
            return Sent::NotSent(why);
        }
        let (taken, reply) = match self.take(request, command) {
            Ok(taken) => taken,
            Err(why) => return Sent::NotSent(why.into()),
        };
        if reply != ReplyTime::AtOnce {
            self.clock.sleep_until(taken.at.plus(WORK)).await;
            if reply == ReplyTime::Never || self.reach().is_err() {
                return Sent::NoAnswer("no answer in time".into());
            }
        }
        self.report(&taken)
    }

    async fn look_up(&self, id: &DeviceId, request: TaskId, asked: Option<&str>) -> Result<Option<Sent>, Unreachable> {
        self.reach()?;
        let Some(asked) = asked else { return Err(Unreachable("it knows operations, not requests".into())) };
        let phones = self.phones();
        let written = fleet::index(id.as_str(), self.devices).and_then(|index| phones.written.get(&index));
        let is_meant = |taken: &&TakenCommand| taken.request == request && operation(taken) == asked;
        Ok(written.and_then(|written| written.taken.iter().find(is_meant)).map(|taken| self.report(taken)))
    }

    async fn exits(&self, id: &DeviceId, args: Option<&SetProxyArgs>) -> Result<Exits, Unreachable> {
        let through = args.map(|args| self.leaves_from(id, Some(proxy(args))).map(Through::Phone)).transpose()?;
        let direct = fleet::index(id.as_str(), self.devices).map(|index| Network::Phones.address(index.into()));
        Ok(Exits { direct, ..Exits::of(self.leaves_from(id, None)?, through) })
    }

    async fn boot_id(&self, id: &DeviceId) -> Result<PhoneStart, Unreachable> {
        let PhoneAt { index, boots, .. } = self.awake(id)?;
        let value = format!("{:016x}", mix([self.seed, index.into(), boots]));
        Ok(PhoneStart { value, on: None, age: None })
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
    /// Decides all consequences of a command.
    fn take(&self, request: TaskId, command: &Command) -> Result<(TakenCommand, ReplyTime), String> {
        self.reach().map_err(|error| error.to_string())?;
        let phones = &mut *self.phones_mut();
        let phone = self.find(phones, command.device()).ok_or("no such phone")?;
        let script = phone.part.script().ok_or("the phone refuses connections")?;
        let Script { reply, ok, acts_after } = if can(&phone, command) { script } else { Script::FAILED };
        let (at, command) = (self.clock.now(), without_login(command));
        let effect = acts_after.map(|after| effect(&phone, &command, at.plus(after)));
        let taken = TakenCommand { at, request, command, ok, effect };
        phones.store(&taken).map_err(|error| format!("the journal cannot be written: {error}"))?;
        phones.write(phone.index).taken.push(taken.clone());
        Ok((taken, reply))
    }

    fn report(&self, taken: &TakenCommand) -> Sent {
        match taken.ok {
            _ if self.clock.now() < taken.at.plus(WORK) => Sent::Pending(operation(taken)),
            true => Sent::Ok,
            false => Sent::Err("the phone reports an error".into()),
        }
    }

    pub(super) fn leaves_from(&self, id: &DeviceId, through: Option<Proxy>) -> Result<IpAddr, Unreachable> {
        let phone = self.awake(id)?;
        let is_leak = through.is_none() && phone.part == Part::Leaking;
        let through = through.or_else(|| phone.proxy_in_use().cloned()).filter(|_| !is_leak);
        Ok(match through {
            None => Network::Phones.address(phone.index.into()),
            Some(_) if phone.part == Part::Rotating => {
                Network::Rotating.address(mix([self.clock.now().0, self.count.fetch_add(1, Relaxed)]))
            }
            Some(Proxy { scheme: _, host, port }) => {
                let host = host.as_str().bytes().map(u64::from);
                Network::Proxies.address(mix(host.chain([port.get().unsigned_abs()])))
            }
        })
    }

    fn awake(&self, id: &DeviceId) -> Result<PhoneAt, Unreachable> {
        self.reach()?;
        let phone = self.find(&self.phones(), id);
        let awake = phone.filter(|phone| phone.readable && phone.power == DeviceState::Running);
        awake.ok_or_else(|| Unreachable(format!("{id} does not respond").into()))
    }
}

fn can(phone: &PhoneAt, command: &Command) -> bool {
    let shown = phone.reading();
    match command {
        Command::SetProxy(args) => shown.offers(DeviceCapability::Proxy) && shown.proxy_schemes.contains(&args.scheme),
        Command::ClearProxy(_) => shown.offers(DeviceCapability::Proxy),
        Command::SetPower(args) => {
            let up = matches!(phone.power, DeviceState::Running | DeviceState::Restarting);
            let is_offered = shown.offers(DeviceCapability::Power) && shown.power_actions.contains(&args.action);
            is_offered && (up || args.action != PowerAction::Restart)
        }
    }
}

/// Decides the state after a command that acts at this time.
fn effect(phone: &PhoneAt, command: &Command, at: Timestamp) -> PhoneEffect {
    let (power, boots) = phone.last;
    let running = power == DeviceState::Running;
    let (running, boots) = match command {
        Command::SetProxy(_) | Command::ClearProxy(_) => (running, boots),
        Command::SetPower(args) => match args.action {
            PowerAction::Boot => (true, boots + u64::from(!running)),
            PowerAction::Shutdown => (false, boots),
            PowerAction::Restart => (running, boots + u64::from(running)),
        },
    };
    PhoneEffect { at, running, boots }
}

fn without_login(command: &Command) -> Command {
    let Command::SetProxy(args) = command else { return command.clone() };
    Command::SetProxy(SetProxyArgs { username: None, password: None, ..args.clone() })
}

/// Two commands of one request on one phone at one time have the same report.
fn operation(taken: &TakenCommand) -> String {
    format!("operation-{}", taken.at.0)
}
