//! The only table of states: `padStatus`, `cvmStatus` and `online` become one condition.
//!
//! The numbers are the vendor's (`padStatus`: VMOS and ARMCloud documents of 2026 and 2025;
//! `cvmStatus`: VMOS documents of 2025). If two differ, the one that promises less holds.
//! Contradicting and unlisted numbers give no state: a state is evidence of a write.

use crate::phones::contract::DeviceState::{self, Booting, Restarting, Running, Stopped, Stopping};

pub(super) const DELETED: i64 = 25;

/// In callbacks.
pub(super) const DELETED_IN_CALLBACKS: i64 = -1;

/// Loading, or not known.
const LOADING: i64 = 99;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) state: Option<DeviceState>,
    pub(super) why: &'static str,
    pub(super) way: Remedy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remedy {
    Up,
    Boot,
    Shutdown,
    Restart,
    Wait,
    None,
}

const fn row(number: i64, state: Option<DeviceState>, way: Remedy, why: &'static str) -> (i64, Condition) {
    (number, Condition { state, why, way })
}

pub(super) const PAD_STATUS: [(i64, Condition); 17] = [
    row(10, Some(Running), Remedy::Up, ""),
    row(11, Some(Restarting), Remedy::Wait, "the phone is restarting"),
    // A reset goes down and up like a restart, for up to half an hour.
    row(12, Some(Restarting), Remedy::Wait, "the phone is being reset"),
    row(13, Some(Restarting), Remedy::Wait, "the system of the phone is being upgraded"),
    row(14, None, Remedy::Restart, "the platform says that the phone is abnormal, which a restart may cure"),
    row(15, None, Remedy::Wait, "the platform says that the phone is not ready"),
    row(16, None, Remedy::Wait, "the phone is being backed up"),
    row(17, None, Remedy::Wait, "the phone is being restored"),
    row(18, Some(Stopped), Remedy::Boot, "the phone is stopped"),
    row(19, Some(Stopping), Remedy::Wait, "the phone is stopping"),
    row(20, Some(Booting), Remedy::Wait, "the phone is booting"),
    // According to its errors 111071 and 111078, the platform accepts both again.
    row(21, None, Remedy::Shutdown, "the platform could not shut the phone down"),
    row(22, None, Remedy::Boot, "the platform could not boot the phone"),
    row(23, None, Remedy::None, "the phone is being deleted"),
    row(24, None, Remedy::None, "the platform could not delete the phone"),
    row(DELETED, None, Remedy::None, "the phone was deleted"),
    row(26, None, Remedy::Wait, "the phone is being cloned"),
];

pub(super) const CVM_STATUS: [(i64, Condition); 22] = [
    row(LOADING, None, Remedy::Wait, "the phone is being loaded"),
    row(100, Some(Running), Remedy::Up, ""),
    row(101, Some(Running), Remedy::Up, ""),
    row(102, Some(Restarting), Remedy::Wait, "the phone is restarting"),
    row(103, Some(Restarting), Remedy::Wait, "the phone is being reset"),
    row(104, None, Remedy::None, "the platform could not restart the phone"),
    row(105, None, Remedy::None, "the platform could not reset the phone"),
    row(106, None, Remedy::Wait, "the platform maintains the phone"),
    row(107, Some(Restarting), Remedy::Wait, "the system of the phone is being upgraded"),
    row(108, None, Remedy::Wait, "the phone is being moved to other hardware"),
    row(109, None, Remedy::None, "the platform could not move the phone to other hardware"),
    row(111, None, Remedy::Wait, "the phone is being configured"),
    row(112, None, Remedy::None, "the platform has locked the phone"),
    row(113, None, Remedy::Wait, "the configuration of the phone is being changed"),
    row(114, None, Remedy::None, "the platform has no room for the phone at present"),
    row(115, None, Remedy::Wait, "the phone is being moved to another zone"),
    row(116, None, Remedy::Wait, "the memory of the phone is being cleaned"),
    // Both restart the phone.
    row(119, Some(Restarting), Remedy::Wait, "the phone is being initialised"),
    row(120, Some(Restarting), Remedy::Wait, "the phone is being made anew"),
    row(121, None, Remedy::Wait, "the platform carries out a task on the phone"),
    row(201, None, Remedy::Wait, "the phone is being backed up"),
    row(202, None, Remedy::Wait, "the phone is being restored"),
];

const UNLISTED: Condition =
    Condition { state: None, why: "the platform tells a state of the phone that is not known here", way: Remedy::None };

const UNTOLD: Condition = Condition { state: None, why: "the platform tells no state of the phone", way: Remedy::None };

/// Contradicting numbers, because one of the lists lags.
const TORN: Condition =
    Condition { state: None, why: "the platform tells two states of the phone at once", way: Remedy::Wait };

/// Usual right after a start.
const UNCONNECTED: Condition =
    Condition { state: None, why: "the platform is not connected to the phone", way: Remedy::Wait };

pub(super) fn condition(pad_status: Option<i64>, cvm_status: Option<i64>, online: Option<i64>) -> Condition {
    let [pad, cvm] = [(pad_status, &PAD_STATUS[..]), (cvm_status, &CVM_STATUS[..])].map(|(number, table)| {
        let number = number?;
        Some(table.iter().find(|(listed, _)| *listed == number).map_or(UNLISTED, |(_, condition)| *condition))
    });
    let told = match (pad, cvm) {
        (None, None) => UNTOLD,
        (Some(only), None) | (None, Some(only)) => only,
        (Some(pad), Some(cvm)) if pad.state == Some(Running) => cvm,
        (Some(pad), Some(cvm)) if cvm.state == Some(Running) || pad.state == cvm.state || pad.state.is_none() => pad,
        // The other list has no number for a phone that is off, and `LOADING` is its least specific
        // one.
        (Some(pad), Some(_)) if pad.state == Some(Stopped) && cvm_status == Some(LOADING) => pad,
        (Some(_), Some(cvm)) if cvm.state.is_none() => cvm,
        (Some(_), Some(_)) => TORN,
    };
    match (told.state, online) {
        (Some(Running), Some(0)) => UNCONNECTED,
        (Some(Running), Some(number)) if number != 1 => UNLISTED,
        _ => told,
    }
}
