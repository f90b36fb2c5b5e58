//! The programs of this machine for what adb cannot do.

use super::wire::PhoneAddress;
use crate::adapter_kit::host_program::{HostProgram, ProgramTarget, RunningPrograms};
use crate::phones::contract::{Command, PowerAction, SetPowerArgs};
use crate::phones::port::Finding;
use std::collections::BTreeMap;
use toolwarrant::Clock;
use toolwarrant::tasks::{Leave, Sent, TaskId, WriteCommand};

/// Power and proxy each have a program that undoes the other one.
#[derive(Clone, Debug, Default)]
pub struct AdbPrograms {
    /// In place of a command on the phone.
    pub restart: Option<HostProgram>,
    pub power: Option<PowerPrograms>,
    pub proxy: Option<ProxyPrograms>,
}

#[derive(Clone, Debug)]
pub struct PowerPrograms {
    pub start: HostProgram,
    pub stop: HostProgram,
    /// Prints `stopped`, `exited` or `false` if the phone is off.
    pub status: HostProgram,
}

#[derive(Clone, Debug)]
pub struct ProxyPrograms {
    pub set: HostProgram,
    /// Makes the connection of the phone direct.
    pub clear: HostProgram,
}

pub(super) struct PhonePrograms {
    pub(super) named: AdbPrograms,
    pub(super) names: BTreeMap<String, String>,
    pub(super) running: RunningPrograms,
    pub(super) clock: Clock,
}

impl PhonePrograms {
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

    pub(super) fn choose(&self, command: &Command) -> Option<&HostProgram> {
        let AdbPrograms { restart, power, proxy } = &self.named;
        match command {
            Command::SetPower(SetPowerArgs { action, .. }) => match action {
                PowerAction::Restart => restart.as_ref(),
                PowerAction::Boot => power.as_ref().map(|power| &power.start),
                PowerAction::Shutdown => power.as_ref().map(|power| &power.stop),
            },
            Command::SetProxy(_) => proxy.as_ref().map(|proxy| &proxy.set),
            Command::ClearProxy(_) => proxy.as_ref().map(|proxy| &proxy.clear),
        }
    }

    pub(super) async fn carry_out(
        &self,
        program: &HostProgram,
        address: &PhoneAddress,
        (task, command): (TaskId, &Command),
        leave: Leave,
    ) -> Sent {
        match command.arguments() {
            Ok(input) => self.running.act(program, self.target(address), (task, input), (leave, &self.clock)).await,
            Err(error) => Sent::NotSent(error.to_string().into()),
        }
    }

    pub(super) fn find_obstacles(&self, address: &PhoneAddress) -> Vec<Finding> {
        const REMEDY: &str = "see that the file exists and can be executed, and that `names` names the phone";
        let AdbPrograms { restart, power, proxy } = &self.named;
        let power = power.iter().flat_map(|PowerPrograms { start, stop, status }| [start, stop, status]);
        let proxy = proxy.iter().flat_map(|ProxyPrograms { set, clear }| [set, clear]);
        let obstacles =
            restart.iter().chain(power).chain(proxy).filter_map(|program| program.find_obstacle(self.target(address)));
        obstacles.map(|obstacle| Finding::faulty("program", obstacle, REMEDY)).collect()
    }

    pub(super) fn name_of(&self, address: &PhoneAddress) -> Option<&str> {
        self.names.get(address.as_str()).map(String::as_str)
    }

    fn target<'a>(&'a self, address: &'a PhoneAddress) -> ProgramTarget<'a> {
        ProgramTarget { serial: address.as_str(), name: self.name_of(address) }
    }
}
