//! The list of all machines: `spec/tools/floor.toml`.

use crate::contract::{Floor, FloorTools, ListMachinesArgs, ListMachinesError, PrinterId, TrayId};
use crate::machines::{Machine, PRINTERS, TRAYS};
use crate::shop::Shop;
use toolwarrant::handler::{Call, Reply};

impl FloorTools for Shop {
    /// Checks the grants of each resource by its name, because a grant of one resource is not a
    /// grant of another.
    async fn list_machines(&self, call: &Call<'_>, _: ListMachinesArgs) -> Result<Reply<Floor>, ListMachinesError> {
        let seen = |resource: &'static str, machines: &'static [Machine]| {
            let grants = &call.caller.application.grants;
            machines.iter().map(|machine| machine.id).filter(move |id| grants.covers(resource, id))
        };
        Ok(Floor {
            printers: seen("printer", PRINTERS).flat_map(PrinterId::new).collect(),
            trays: seen("tray", TRAYS).flat_map(TrayId::new).collect(),
        }
        .into())
    }
}
