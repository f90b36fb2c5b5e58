//! The shop: the state that all tools share, and the lookup of a printer or a tray.
//!
//! Each resource has its own `resolve`, which the framework calls only for granted ids. A grant of
//! tray `p-1` is not a grant of printer `p-1`.

use crate::contract::{Mode, Printer, PrinterCapabilities, PrinterCapability, PrinterId};
use crate::contract::{Tray, TrayCapabilities, TrayCapability, TrayId, texts};
use crate::machines::{Habit, Machine, Machines, PRINTERS, TRAYS};
use toolwarrant::Timestamp;
use toolwarrant::contract::{PolicyDef, ToolDef};
use toolwarrant::handler::{Caller, Flag, Resource, Unresolved};
use toolwarrant::text::Untrusted;

#[derive(Debug)]
pub struct Shop {
    pub(crate) machines: Machines,
}

impl Shop {
    #[must_use]
    pub fn new(machines: Machines) -> Self {
        Self { machines }
    }
}

impl Resource<PrinterId> for Shop {
    type View = Printer;
    type Capability = PrinterCapability;

    async fn resolve(&self, _: &Caller, id: &PrinterId) -> Result<Printer, Unresolved> {
        find(PRINTERS, id.as_str()).map(|machine| printer(id, machine))
    }

    fn flag(view: &Printer, capability: PrinterCapability) -> Flag {
        let PrinterCapabilities { paper, rollers } = view.capabilities;
        match capability {
            PrinterCapability::Paper if !paper => Flag::Curable { why: "the tray is empty", cure: texts::FEED_IT },
            PrinterCapability::Paper => Flag::Offered,
            PrinterCapability::Rollers => offer(rollers, "it has none"),
        }
    }

    /// Expects a page on the counter within a second, faster than the contract's policy.
    fn policy(_: &Printer, _: &'static ToolDef, declared: PolicyDef) -> PolicyDef {
        PolicyDef { settle_seconds: 1, deadline_seconds: 8, ..declared }
    }
}

impl Resource<TrayId> for Shop {
    type View = Tray;
    type Capability = TrayCapability;

    async fn resolve(&self, _: &Caller, id: &TrayId) -> Result<Tray, Unresolved> {
        find(TRAYS, id.as_str()).map(|machine| tray(id, machine))
    }

    fn flag(view: &Tray, capability: TrayCapability) -> Flag {
        match capability {
            TrayCapability::Refill => offer(view.capabilities.refill, "it is locked"),
        }
    }
}

fn find(machines: &'static [Machine], id: &str) -> Result<&'static Machine, Unresolved> {
    match machines.iter().find(|machine| machine.id == id) {
        Some(Machine { habit: Habit::Unplugged, .. }) => Err(Unresolved::Unavailable("the plug is out".into())),
        Some(machine) => Ok(machine),
        None => Err(Unresolved::NotFound),
    }
}

/// Cleans the label, because anybody may have written it.
fn printer(id: &PrinterId, machine: &Machine) -> Printer {
    let ready = machine.habit != Habit::Lacks;
    Printer {
        printer_id: id.clone(),
        label: Untrusted::clean(machine.label),
        capabilities: PrinterCapabilities { paper: ready, rollers: ready },
        modes: Mode::ALL.to_vec(),
        serviced_at: ready.then_some(Timestamp(1_700_000_000_123)),
        last_mode: None,
    }
}

fn tray(id: &TrayId, machine: &Machine) -> Tray {
    let capabilities = TrayCapabilities { refill: machine.habit != Habit::Lacks };
    Tray { tray_id: id.clone(), label: Untrusted::clean(machine.label), capabilities }
}

fn offer(flag: bool, otherwise: &'static str) -> Flag {
    if flag { Flag::Offered } else { Flag::Refused(otherwise) }
}
