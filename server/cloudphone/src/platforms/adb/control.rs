//! [`Control`] for phones behind an adb server: restarts, their readings, and `platform check`.

use super::facts::PhoneFacts;
use super::listing::LastList;
use super::states::AdbState;
use super::{Adb, NO_PROXY};
use crate::phones::contract::{Command, DeviceId, PowerAction, SetPowerArgs, SetProxyArgs};
use crate::phones::port::{Control, Direction, Exits, Finding, PlatformName, Unreachable};
use toolwarrant::BoxFuture;
use toolwarrant::base::{hex, ignore_poison};
use toolwarrant::operator::UpstreamState;
use toolwarrant::tasks::{Facts, Leave, Provability, Sent, TaskId};
use toolwarrant::text::Untrusted;

/// The command that restarts a phone. It ends as soon as the phone's init has accepted it, and does
/// not wait for the restart.
const RESTART: &str = "setprop sys.powerctl reboot,";

/// The reason that nothing is sent for a command that is not offered.
const NOT_OFFERED: &str = "an adb server offers only restarts";

impl Adb {
    /// Restarts a phone. Until the word is sent, nothing is done.
    async fn restart(&self, id: &DeviceId, leave: Leave) -> Sent {
        let until = leave.not_after();
        let prepare = async {
            let (row, address) = self.find(id)?;
            let before = self.listing.server.read_facts(&address, until).await?;
            if !before.has_booted {
                return Err(Unreachable(AdbState::Booting.why().into()));
            }
            if before.identity != row.facts.identity {
                return Err(Unreachable("another phone has this address meanwhile".into()));
            }
            let word = self.random.bytes::<8>().map_err(|_| Unreachable("the system has no randomness".into()))?;
            let phone = self.listing.server.reach(&address, until).await?;
            Ok((before, phone.prepare(RESTART, hex::encode(&word)).await?))
        };
        let (before, ready) = match prepare.await {
            Ok(prepared) => prepared,
            Err(Unreachable(why)) => return Sent::NotSent(why),
        };
        let sent = ready.go(leave).await;
        if sent == Sent::Ok {
            ignore_poison(self.restarts.lock()).insert(id.clone(), before);
        }
        self.refresh.wake();
        sent
    }

    /// Reads the start of a phone that has booted. If the same phone has reported a restart and its
    /// start has changed since, its readings are proven to follow.
    async fn read_start(&self, id: &DeviceId) -> Result<String, Unreachable> {
        let (_, address) = self.find(id)?;
        let now = self.listing.server.read_facts(&address, self.listing.until()).await?;
        if !now.has_booted {
            return Err(Unreachable(AdbState::Booting.why().into()));
        }
        let Some(start) = &now.start else { return Err(Unreachable("the start of the phone is not readable".into())) };
        if self.take_restart(id, &now)
            && let Err(error) = self.proven.record(id, &now.identity).await
        {
            tracing::warn!(device = id.as_str(), %error, "it could not be stored that a phone's start follows a restart");
        }
        Ok(format!("{start}@{}", if now.identity.is_empty() { "-" } else { &now.identity }))
    }

    /// Returns true once after a reported restart, if the start of the same phone has changed.
    fn take_restart(&self, id: &DeviceId, now: &PhoneFacts) -> bool {
        let mut restarts = ignore_poison(self.restarts.lock());
        let is_other = |before: &PhoneFacts| {
            before.identity == now.identity && before.start.is_some() && before.start != now.start
        };
        restarts.get(id).is_some_and(is_other) && restarts.remove(id).is_some()
    }
}

impl Control for Adb {
    /// The absence of a restart is evidence only on a phone whose start was seen to follow one.
    fn facts(&self, id: &DeviceId, command: &Command) -> Facts {
        let is_proven = || self.registry.get(id).is_some_and(|listed| self.proven.has(id, &listed.row.facts.identity));
        let provability = match command {
            Command::SetPower(SetPowerArgs { action: PowerAction::Restart, .. }) if is_proven() => Provability::Both,
            Command::SetPower(SetPowerArgs { action: PowerAction::Restart, .. }) => Provability::Presence,
            Command::SetPower(_) | Command::SetProxy(_) | Command::ClearProxy(_) => Provability::Nothing(NOT_OFFERED),
        };
        Facts { provability, ..Facts::default() }
    }

    fn send<'a>(&'a self, _: TaskId, command: &'a Command, leave: Leave) -> BoxFuture<'a, Sent> {
        Box::pin(async move {
            match command {
                Command::SetPower(SetPowerArgs { device_id, action: PowerAction::Restart, .. }) => {
                    self.restart(device_id, leave).await
                }
                Command::SetPower(_) | Command::SetProxy(_) | Command::ClearProxy(_) => {
                    Sent::NotSent(NOT_OFFERED.into())
                }
            }
        })
    }

    fn look_up<'a>(
        &'a self,
        _: &'a DeviceId,
        _: TaskId,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Option<Sent>, Unreachable>> {
        Box::pin(async { Err(Unreachable("an adb server remembers no requests".into())) })
    }

    fn exits<'a>(&'a self, _: &'a DeviceId, _: Option<&'a SetProxyArgs>) -> BoxFuture<'a, Result<Exits, Unreachable>> {
        Box::pin(async { Err(Unreachable(NO_PROXY.into())) })
    }

    fn boot_id<'a>(&'a self, id: &'a DeviceId) -> BoxFuture<'a, Result<String, Unreachable>> {
        Box::pin(self.read_start(id))
    }

    fn account(&self) -> BoxFuture<'_, Vec<Finding>> {
        Box::pin(async move {
            const REMEDY: &str = "run `adb start-server` on this machine, and see that `server` is its address";
            let address = &self.listing.server.address;
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
        let LastList { rows, left_out } = self.listing.last().clone();
        let left_out = left_out.into_iter().map(|(serial, why)| {
            Finding::sound("not served", format!("{}: {why}", Untrusted::<64>::clean(&serial).as_str()))
        });
        let out_of_order = rows.into_iter().filter(|(_, row)| row.state != AdbState::Running).map(|(address, row)| {
            Finding::faulty("phone", format!("{address}: {}", row.state.why()), row.state.remedy())
        });
        left_out.chain(out_of_order).collect()
    }

    fn record<'a>(&'a self, direction: Direction, id: &'a DeviceId) -> BoxFuture<'a, Result<(), Unreachable>> {
        Box::pin(async move {
            if direction == Direction::Exit {
                return Err(Unreachable(NO_PROXY.into()));
            }
            let recorded = self.proven.record(id, &self.find(id)?.0.facts.identity).await;
            recorded.map_err(|error| Unreachable(error.to_string().into()))
        })
    }

    fn state(&self, name: &PlatformName) -> UpstreamState {
        UpstreamState {
            name: name.to_string(),
            kind: "adb",
            reachable: self.refresh.is_reachable(),
            age_seconds: self.registry.age().map(|age| age.as_secs()),
            targets: self.registry.count() as u64,
            calls: Vec::new(),
            waiting: 0,
            refused: 0,
            unserved: Vec::new(),
        }
    }
}
