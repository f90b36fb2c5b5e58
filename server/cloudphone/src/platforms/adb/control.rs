//! Changes of phones behind an adb server, their readings, and `platform check`.

use super::states::AdbState;
use super::{Adb, NO_START};
use crate::adapter_kit::readings::Dial;
use crate::phones::contract::{Command, DeviceId, PowerAction, SetPowerArgs, SetProxyArgs};
use crate::phones::port::{
    CheckPort, Direction, Exits, Finding, NoAddress, PhoneStart, PhoneWrite, PlatformName, Screen, Unreachable,
    WritePort,
};
use async_trait::async_trait;
use std::collections::HashSet;
use std::net::IpAddr;
use toolwarrant::operator::UpstreamState;
use toolwarrant::tasks::{Facts, Leave, Provability, Sent, TaskId};
use toolwarrant::text::Untrusted;

const NOT_OFFERED: &str = "an adb server offers only restarts, and the operator names no program for this";

/// A person can have ordered fewer.
const STARTS_SHOWN: u32 = 3;

const NO_NETCAT: &str = "the phone has no nc, so a proxy with a password is hardly provable";
const NO_REMEDY: &str = "use another phone, or name programs for `start`, `stop` and `status`";

impl Adb {
    async fn transmit(&self, task: TaskId, command: &Command, leave: Leave) -> Result<Sent, Unreachable> {
        let phone = self.phones.find(command.device())?;
        let Some(program) = self.programs.choose(command) else {
            let Command::SetPower(SetPowerArgs { action: PowerAction::Restart, .. }) = command else {
                return Err(Unreachable(NOT_OFFERED.into()));
            };
            return Ok(phone.prepare_restart(leave.not_after()).await?.go(leave).await);
        };
        if let Command::SetProxy(_) = command {
            self.readings.note_proxy(command.device()).await?;
        }
        // Another phone may have the address meanwhile. A program also helps a phone that hangs.
        if phone.row.state == AdbState::Running {
            phone.check(self.phones.server.soon()).await?;
        }
        Ok(self.programs.carry_out(program, &phone.row.address, (task, command), leave).await)
    }

    fn has_netcat(&self, id: &DeviceId) -> bool {
        self.phones.find(id).is_ok_and(|phone| phone.row.facts.netcat.is_some())
    }
}

#[async_trait]
impl WritePort for Adb {
    fn screen(&self, id: &DeviceId) -> Option<&dyn Screen> {
        self.ledger.get(id).map(|_| &self.screen as &dyn Screen)
    }

    /// Returns the facts. An absence is evidence only on a phone whose reading was seen to follow a
    /// command.
    fn facts(&self, write: &PhoneWrite) -> Facts {
        let id = write.device();
        let is_proven = |direction| self.ledger.is_proven_on(id, direction);
        let provability = match write {
            restart if restart.is_restart() => match is_proven(Direction::Start) {
                true => Provability::Both,
                false => Provability::Presence,
            },
            PhoneWrite::Command(command) if self.programs.choose(command).is_none() => {
                Provability::Nothing(NOT_OFFERED)
            }
            PhoneWrite::Command(Command::SetProxy(args)) => {
                self.readings.provability(id, args, (self.has_netcat(id), is_proven(Direction::Exit)))
            }
            // The phone answers, or the operator's program says that it is off.
            PhoneWrite::Command(Command::SetPower(_) | Command::ClearProxy(_)) | PhoneWrite::Unread { .. } => {
                Provability::Both
            }
        };
        Facts { provability, ..Facts::default() }
    }

    async fn send(&self, task: TaskId, command: &Command, leave: Leave) -> Sent {
        let _work = self.work.begin(command.device());
        let sent = self.transmit(task, command, leave).await;
        self.refresh.wake();
        sent.unwrap_or_else(|Unreachable(why)| Sent::NotSent(why))
    }

    async fn look_up(&self, _: &DeviceId, task: TaskId, operation: Option<&str>) -> Result<Option<Sent>, Unreachable> {
        let known = operation.map(|_| self.programs.running.look_up(task));
        known.map(Some).ok_or_else(|| Unreachable("an adb server remembers no requests".into()))
    }

    async fn exits(&self, id: &DeviceId, proxy: Option<&SetProxyArgs>) -> Result<Exits, Unreachable> {
        let _work = self.work.begin(id);
        let dial = self.has_netcat(id).then_some(&*self.phones as &dyn Dial);
        self.readings.exits((&*self.phones, dial), id, proxy).await
    }

    async fn boot_id(&self, id: &DeviceId) -> Result<PhoneStart, Unreachable> {
        let _work = self.work.begin(id);
        // A list gives a copy its mark back, and finds a phone at another address.
        self.phones.find(id)?.start(self.phones.server.soon()).await.inspect_err(|_| self.refresh.wake())
    }

    async fn note_restart(&self, id: &DeviceId, on: &str) -> Result<(), Unreachable> {
        self.ledger.set_proof(Some(id), Direction::Start, Some(on.to_owned())).await
    }
}

#[async_trait]
impl CheckPort for Adb {
    fn judge_addresses(&self, seen: &[IpAddr]) -> Result<(), NoAddress> {
        self.readings.judge_addresses(seen)
    }

    async fn renew_address(&self, id: &DeviceId) -> Result<(), Unreachable> {
        let _work = self.work.begin(id);
        self.readings.renew((&*self.phones, None), id).await
    }

    async fn account(&self) -> Vec<Finding> {
        const REMEDY: &str = "run `adb start-server` on this machine, and see that `server` is its address";
        let address = &self.phones.server.address;
        let look = async {
            let version = self.listing.version().await?;
            self.refresh.at_least(self.ledger.now()).await.map(|()| version)
        };
        let found = look.await.map(|version| format!("{address} answers, with version {version} of the protocol"));
        vec![Finding::of("adb server", found.map_err(|error| format!("{address}: {error}")), REMEDY)]
    }

    fn find_unserved(&self) -> Vec<Finding> {
        let last = self.listing.last().clone();
        let left_out = last.left_out.iter().map(|(serial, why)| {
            Finding::sound("not served", format!("{}: {why}", Untrusted::<64>::clean(serial).as_str()))
        });
        let of_phone = last.phones().flat_map(|row| {
            let address = &row.address;
            let starts = last.get(address).map_or(0, |connection| connection.starts);
            let is_restless = starts >= STARTS_SHOWN;
            let has_proxies = self.programs.named.proxy.is_some();
            let (why, remedy) = match row.state {
                _ if is_restless => (
                    format!("it has started {starts} times in a row, and never ran for 10 minutes"),
                    "see its power supply, and `adb -s SERIAL logcat -b crash`",
                ),
                AdbState::Running if row.facts.start.is_none() => (NO_START.to_owned(), NO_REMEDY),
                AdbState::Running if has_proxies && row.facts.netcat.is_none() => {
                    (NO_NETCAT.to_owned(), "install one, such as that of toybox")
                }
                state => (state.why().to_owned(), state.remedy()),
            };
            let found = format!("{address}: {why}");
            let found = if row.state == AdbState::Stopped && !is_restless { Ok(found) } else { Err(found) };
            let lacks = (!why.is_empty()).then(|| Finding::of("phone", found, remedy));
            lacks.into_iter().chain(self.programs.find_obstacles(address))
        });
        let mut told = HashSet::new();
        // A program that is missing is missing for all phones.
        left_out.chain(of_phone).filter(|finding| told.insert(finding.found.clone())).collect()
    }

    async fn record(&self, direction: Direction, id: &DeviceId) -> Result<(), Unreachable> {
        let _work = self.work.begin(id);
        // The list may be from before the phone's first answer.
        let address = &self.phones.find(id)?.row.address;
        let now = self.phones.server.read_facts(address).await?;
        self.ledger.set_proof(Some(id), direction, Some(now.name().to_owned())).await
    }

    async fn withdraw(&self, direction: Direction, id: &DeviceId) -> Result<(), Unreachable> {
        self.ledger.set_proof(Some(id), direction, None).await
    }

    fn state(&self, name: &PlatformName) -> UpstreamState {
        UpstreamState {
            name: name.to_string(),
            kind: "adb",
            reachable: self.refresh.is_reachable(),
            age_seconds: self.ledger.age().map(|age| age.as_secs()),
            targets: self.ledger.count() as u64,
            ..UpstreamState::default()
        }
    }
}
