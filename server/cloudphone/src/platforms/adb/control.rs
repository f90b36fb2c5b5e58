//! Changes of phones behind an adb server, their readings, and `platform check`.

use super::facts::Netcat;
use super::row::LastList;
use super::states::AdbState;
use super::{Adb, NO_SESSION, NO_START};
use crate::adapter_kit::phone_ledger::OwnAddress;
use crate::adapter_kit::readings::{Dial, DialedConnection};
use crate::adapter_kit::shell::{Shell, quote};
use crate::phones::contract::{Command, DeviceId, PowerAction, SessionMode, SetPowerArgs, SetProxyArgs};
use crate::phones::port::{
    CheckPort, Direction, Exits, Finding, NoAddress, PhoneStart, PlatformName, Query, Screen, Session, SessionError,
    Unreachable, WritePort,
};
use std::collections::HashSet;
use std::net::IpAddr;
use std::time::Duration;
use toolwarrant::BoxFuture;
use toolwarrant::base::hex;
use toolwarrant::operator::UpstreamState;
use toolwarrant::tasks::{Facts, Leave, Provability, Sent, TaskId};
use toolwarrant::text::Untrusted;

/// Ends as soon as the phone's init has accepted it.
const RESTART: &str = "setprop sys.powerctl reboot,";

const NOT_OFFERED: &str = "an adb server offers only restarts, and the operator names no program for this";

const NO_NETCAT: &str = "the phone has no nc, so a proxy with a password is hardly provable";
const NO_REMEDY: &str = "use another phone, or name programs for `start`, `stop` and `status`";

const REQUESTS_WITHIN: Duration = Duration::from_secs(20);

const CONNECTION_SECONDS: u8 = 8;

impl Adb {
    async fn restart(&self, id: &DeviceId, leave: Leave) -> Sent {
        let (until, server) = (leave.not_after(), self.listing.server());
        let prepare = async {
            let (row, address) = self.find(id)?;
            let before = server.read_facts(&address, until).await?;
            if !before.has_booted {
                return Err(Unreachable(AdbState::Booting.why().into()));
            }
            if before.identity != row.facts.identity || before.is_of_another(&row.facts) {
                return Err(Unreachable("another phone has this address meanwhile".into()));
            }
            let word = self.random.bytes::<8>().map_err(|_| Unreachable("the system has no randomness".into()))?;
            server.reach(&address, until).await?.prepare(RESTART, hex::encode(&word)).await
        };
        match prepare.await {
            Ok(ready) => ready.go(leave).await,
            Err(Unreachable(why)) => Sent::NotSent(why),
        }
    }

    async fn transmit(&self, task: TaskId, command: &Command, leave: Leave) -> Sent {
        let id = command.device();
        match (self.programs.choose(command), command) {
            (Some(program), _) => {
                let prepare = async {
                    if let Command::SetProxy(_) = command {
                        // Otherwise an address that a proxy chose could count as the phone's own.
                        self.own.note(id, OwnAddress::Unread).await?;
                    }
                    self.find(id)
                };
                match prepare.await {
                    Ok((row, _)) => self.programs.carry_out(program, &row, (task, command), leave).await,
                    Err(Unreachable(why)) => Sent::NotSent(why),
                }
            }
            (None, Command::SetPower(SetPowerArgs { action: PowerAction::Restart, .. })) => {
                self.restart(id, leave).await
            }
            (None, Command::SetPower(_) | Command::SetProxy(_) | Command::ClearProxy(_)) => {
                Sent::NotSent(NOT_OFFERED.into())
            }
        }
    }

    async fn read_start(&self, id: &DeviceId) -> Result<PhoneStart, Unreachable> {
        let _work = self.work.begin(id);
        let (row, address) = self.find(id)?;
        let (now, start) = self.listing.server().read_facts_and_start(&address, self.listing.until()).await?;
        if !now.has_booted {
            return Err(Unreachable(AdbState::Booting.why().into()));
        }
        if now.is_of_another(&row.facts) {
            return Err(Unreachable("another phone has this address meanwhile".into()));
        }
        let start = start.ok_or_else(|| Unreachable("the start of the phone is not readable".into()))?;
        Ok(start.on(now.name()))
    }

    fn netcat(&self, id: &DeviceId) -> Option<Netcat> {
        self.ledger.get(id).and_then(|listed| listed.row.facts.netcat)
    }
}

impl WritePort for Adb {
    fn screen(&self, id: &DeviceId) -> Option<&dyn Screen> {
        self.ledger.get(id).map(|_| self as &dyn Screen)
    }

    fn session<'a>(&'a self, _: &'a DeviceId, _: SessionMode) -> BoxFuture<'a, Result<Session, SessionError>> {
        Box::pin(async { Err(SessionError::Refused(NO_SESSION.into())) })
    }

    /// Returns the facts. An absence is evidence only on a phone whose reading was seen to follow a
    /// command.
    fn facts(&self, id: &DeviceId, command: &Command) -> Facts {
        let listed = self.ledger.get(id);
        let name = listed.as_ref().map_or("", |listed| listed.row.facts.name());
        let is_proven = |direction| self.ledger.is_proven(Some(id), direction, name);
        let provability = match command {
            Command::SetPower(SetPowerArgs { action: PowerAction::Restart, .. }) if is_proven(Direction::Start) => {
                Provability::Both
            }
            Command::SetPower(SetPowerArgs { action: PowerAction::Restart, .. }) => Provability::Presence,
            _ if self.programs.choose(command).is_none() => Provability::Nothing(NOT_OFFERED),
            // The phone answers, or the operator's program says that it is off.
            Command::SetPower(_) => Provability::Both,
            Command::SetProxy(args) => {
                let provability = match self.readings.provability(id, args, self.netcat(id).is_some()) {
                    Provability::Both if !is_proven(Direction::Exit) => Provability::Presence,
                    provability => provability,
                };
                self.own.restrict(id, provability, self.clock.now())
            }
            Command::ClearProxy(_) => Provability::Both,
        };
        Facts { provability, ..Facts::default() }
    }

    fn send<'a>(&'a self, task: TaskId, command: &'a Command, leave: Leave) -> BoxFuture<'a, Sent> {
        Box::pin(async move {
            let _work = self.work.begin(command.device());
            let sent = self.transmit(task, command, leave).await;
            self.refresh.wake();
            sent
        })
    }

    fn look_up<'a>(&'a self, _: &'a DeviceId, task: TaskId, operation: Option<&'a str>) -> Query<'a, Option<Sent>> {
        Box::pin(async move {
            let known = operation.map(|_| self.programs.running.look_up(task));
            known.map(Some).ok_or_else(|| Unreachable("an adb server remembers no requests".into()))
        })
    }

    fn exits<'a>(&'a self, id: &'a DeviceId, proxy: Option<&'a SetProxyArgs>) -> Query<'a, Exits> {
        Box::pin(async move {
            let _work = self.work.begin(id);
            let dial = self.netcat(id).map(|_| self as &dyn Dial);
            let read = self.readings.exits(self, dial, id, proxy).await;
            let listed = self.ledger.get(id);
            let name = listed.as_ref().map_or("", |listed| listed.row.facts.name());
            self.own.complete((id, name, None), proxy, read, self.clock.now()).await
        })
    }

    fn boot_id<'a>(&'a self, id: &'a DeviceId) -> Query<'a, PhoneStart> {
        Box::pin(self.read_start(id))
    }

    fn note_restart<'a>(&'a self, id: &'a DeviceId, on: &'a str) -> BoxFuture<'a, Result<(), Unreachable>> {
        Box::pin(self.ledger.set_proof(Some(id), Direction::Start, Some(on.to_owned())))
    }
}

impl CheckPort for Adb {
    fn judge_addresses(&self, seen: &[IpAddr]) -> Result<(), NoAddress> {
        self.readings.judge_addresses(seen, self.own.may_share())
    }

    fn renew_address<'a>(&'a self, id: &'a DeviceId) -> Query<'a, IpAddr> {
        Box::pin(async move {
            let _work = self.work.begin(id);
            let read = self.readings.exits(self, None, id, None).await?;
            self.own.replace((id, None), read.ordinary).await
        })
    }

    fn account(&self) -> BoxFuture<'_, Vec<Finding>> {
        Box::pin(async move {
            const REMEDY: &str = "run `adb start-server` on this machine, and see that `server` is its address";
            let address = &self.listing.server().address;
            let look = async {
                let version = self.listing.version().await?;
                self.refresh.at_least(self.clock.now()).await.map(|()| version)
            };
            vec![match look.await {
                Ok(version) => {
                    Finding::sound("adb server", format!("{address} answers, with version {version} of the protocol"))
                }
                Err(error) => Finding::faulty("adb server", format!("{address}: {error}"), REMEDY),
            }]
        })
    }

    fn find_unserved(&self) -> Vec<Finding> {
        let LastList { rows, left_out, seconds: _ } = self.listing.last().clone();
        let left_out = left_out.into_iter().map(|(serial, why)| {
            Finding::sound("not served", format!("{}: {why}", Untrusted::<64>::clean(&serial).as_str()))
        });
        let of_phone = rows.into_iter().flat_map(|(address, row)| {
            let step = |why: &str| format!("{address}: {why}");
            let lacks = match row.state {
                AdbState::Running if row.facts.start.is_none() => {
                    Some(Finding::faulty("phone", step(NO_START), NO_REMEDY))
                }
                AdbState::Running if self.programs.named.proxy.is_some() && row.facts.netcat.is_none() => {
                    Some(Finding::faulty("phone", step(NO_NETCAT), "install one, such as that of toybox"))
                }
                AdbState::Running => None,
                AdbState::Stopped => Some(Finding::sound("phone", step(row.state.why()))),
                _ => Some(Finding::faulty("phone", step(row.state.why()), row.state.remedy())),
            };
            lacks.into_iter().chain(self.programs.find_obstacles(&address))
        });
        let mut told = HashSet::new();
        // A program that is missing is missing for all phones.
        left_out.chain(of_phone).filter(|finding| told.insert(finding.found.clone())).collect()
    }

    fn record<'a>(&'a self, direction: Direction, id: &'a DeviceId) -> BoxFuture<'a, Result<(), Unreachable>> {
        Box::pin(async move {
            let _work = self.work.begin(id);
            // The list may be from before the phone's first answer.
            let now = self.listing.server().read_facts(&self.find(id)?.1, self.listing.until()).await?;
            self.ledger.set_proof(Some(id), direction, Some(now.name().to_owned())).await
        })
    }

    fn withdraw<'a>(&'a self, direction: Direction, id: &'a DeviceId) -> BoxFuture<'a, Result<(), Unreachable>> {
        Box::pin(self.ledger.set_proof(Some(id), direction, None))
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

impl Shell for Adb {
    fn run<'a>(&'a self, id: &'a DeviceId, script: &'a str) -> BoxFuture<'a, Result<String, Unreachable>> {
        Box::pin(async move {
            let (_, address) = self.find(id)?;
            let until = self.clock.now().plus(REQUESTS_WITHIN);
            self.listing.server().reach(&address, until).await?.run(script).await
        })
    }
}

impl Dial for Adb {
    fn dial<'a>(
        &'a self,
        id: &'a DeviceId,
        host: &'a str,
        port: u16,
    ) -> BoxFuture<'a, Result<DialedConnection, Unreachable>> {
        Box::pin(async move {
            let netcat = self.netcat(id).ok_or_else(|| Unreachable("the phone has no nc".into()))?.command();
            // A host that begins with `-` is no option.
            let command = format!("{netcat} -w {CONNECTION_SECONDS} -- {} {port}", quote(host));
            let (_, address) = self.find(id)?;
            let until = self.clock.now().plus(REQUESTS_WITHIN);
            Ok(Box::new(self.listing.server().reach(&address, until).await?.connect(&command).await?)
                as DialedConnection)
        })
    }
}
