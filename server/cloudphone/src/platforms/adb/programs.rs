//! The programs of this machine that do for a phone what adb cannot: switch it on and off, and give
//! all of its traffic a proxy.

use super::row::AdbRow;
use super::wire::PhoneAddress;
use crate::adapter_kit::host_program::{HostProgram, ProgramTarget, RunningPrograms};
use crate::phones::contract::{Command, PowerAction, SetPowerArgs};
use crate::phones::port::Finding;
use std::collections::BTreeMap;
use toolwarrant::Clock;
use toolwarrant::tasks::{Leave, Sent, TaskId};
use toolwarrant::text::Secret;

/// The programs that the operator names. Each that does something has another that undoes it.
#[derive(Clone, Debug, Default)]
pub struct AdbPrograms {
    /// Restarts a phone, in place of a command on the phone.
    pub restart: Option<HostProgram>,
    /// Switch phones on and off.
    pub power: Option<PowerPrograms>,
    /// Give phones a proxy.
    pub proxy: Option<ProxyPrograms>,
}

/// The programs that switch a phone on and off.
#[derive(Clone, Debug)]
pub struct PowerPrograms {
    /// Switches a phone on.
    pub start: HostProgram,
    /// Switches a phone off.
    pub stop: HostProgram,
    /// Prints `stopped`, `exited` or `false` if the phone is off, and something else if it is on.
    pub status: HostProgram,
}

/// The programs that set and clear the proxy of a phone.
#[derive(Clone, Debug)]
pub struct ProxyPrograms {
    /// Sets the proxy that its input describes.
    pub set: HostProgram,
    /// Makes the connection of the phone direct.
    pub clear: HostProgram,
}

/// The programs with the names of the phones.
pub(super) struct PhonePrograms {
    pub(super) named: AdbPrograms,
    pub(super) names: BTreeMap<String, String>,
    pub(super) running: RunningPrograms,
    pub(super) clock: Clock,
}

/// The bytes that are reserved for the input of a program, so that growing leaves no copy behind.
const INPUT_ROOM: usize = 4 << 10;

impl PhonePrograms {
    /// Returns true if the operator's program says that a phone is switched off.
    pub(super) async fn is_stopped(&self, address: &PhoneAddress) -> bool {
        let Some(PowerPrograms { status, .. }) = &self.named.power else { return false };
        match status.ask(self.target(address), &self.clock).await {
            Ok(answer) => ["stopped", "exited", "false"].contains(&answer.trim()),
            Err(error) => {
                tracing::debug!(%address, %error, "it is not known whether a phone is switched off");
                false
            }
        }
    }

    /// Returns the program that carries out a command; `None` if none is named.
    pub(super) fn choose(&self, command: &Command) -> Option<&HostProgram> {
        let AdbPrograms { restart, power, proxy } = &self.named;
        match command {
            Command::SetPower(SetPowerArgs { action: PowerAction::Restart, .. }) => restart.as_ref(),
            Command::SetPower(SetPowerArgs { action: PowerAction::Boot, .. }) => {
                power.as_ref().map(|power| &power.start)
            }
            Command::SetPower(SetPowerArgs { action: PowerAction::Shutdown, .. }) => {
                power.as_ref().map(|power| &power.stop)
            }
            Command::SetProxy(_) => proxy.as_ref().map(|proxy| &proxy.set),
            Command::ClearProxy(_) => proxy.as_ref().map(|proxy| &proxy.clear),
        }
    }

    /// Runs a program for a command of a task. The program reads what the client sent.
    pub(super) async fn carry_out(
        &self,
        program: &HostProgram,
        phone: &AdbRow,
        (task, command): (TaskId, &Command),
        leave: Leave,
    ) -> Sent {
        let mut input = Vec::with_capacity(INPUT_ROOM);
        let written = match command {
            Command::SetPower(args) => serde_json::to_writer(&mut input, args),
            Command::SetProxy(args) => serde_json::to_writer(&mut input, args),
            Command::ClearProxy(args) => serde_json::to_writer(&mut input, args),
        };
        let input = Secret::new(input);
        match written {
            Ok(()) => {
                let target =
                    ProgramTarget { serial: &phone.address, name: self.names.get(&phone.address).map(String::as_str) };
                self.running.act(program, target, (task, input), (leave, &self.clock)).await
            }
            Err(error) => Sent::NotSent(error.to_string().into()),
        }
    }

    /// Returns what keeps a program from running for a phone.
    pub(super) fn find_obstacles(&self, address: &PhoneAddress) -> Vec<Finding> {
        const REMEDY: &str = "see that the file exists and can be executed, and that `names` names the phone";
        let AdbPrograms { restart, power, proxy } = &self.named;
        let power = power.iter().flat_map(|PowerPrograms { start, stop, status }| [start, stop, status]);
        let proxy = proxy.iter().flat_map(|ProxyPrograms { set, clear }| [set, clear]);
        let obstacles =
            restart.iter().chain(power).chain(proxy).filter_map(|program| program.find_obstacle(self.target(address)));
        obstacles.map(|obstacle| Finding::faulty("program", obstacle, REMEDY)).collect()
    }

    fn target<'a>(&'a self, address: &'a PhoneAddress) -> ProgramTarget<'a> {
        ProgramTarget { serial: address.as_str(), name: self.names.get(address.as_str()).map(String::as_str) }
    }
}
