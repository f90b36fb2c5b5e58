//! The list of all machines: `spec/tools/floor.toml`.

use crate::contract::{Floor, FloorTools, ListMachinesArgs, ListMachinesError, PrinterId, TrayId};
use crate::machines::{PRINTERS, TRAYS};
use crate::shop::Shop;
use toolwarrant::handler::{Call, Reply};

impl FloorTools for Shop {
    /// Lists only ids that the application sees. A grant of a tray is not a grant of the printer
    /// with the same id.
    async fn list_machines(&self, call: &Call<'_>, _: ListMachinesArgs) -> Result<Reply<Floor>, ListMachinesError> {
        let printers = PRINTERS.iter().flat_map(|machine| PrinterId::new(machine.id));
        let trays = TRAYS.iter().flat_map(|machine| TrayId::new(machine.id));
        Ok(Floor {
            printers: printers.filter(|id| call.sees(id)).collect(),
            trays: trays.filter(|id| call.sees(id)).collect(),
        }
        .into())
    }
}
