//! A module that imports generated names one by one gets only the errors of the contract.

mod contract {
    toolwarrant::contract!("ui/specs/three_mistakes");
}

use contract::{CATALOGUE, Contract, GetPrinterArgs, PrinterId, PrintersTools};

struct Shop;

impl PrintersTools for Shop {
    async fn get_printer(&self, args: GetPrinterArgs) -> PrinterId {
        args.printer_id
    }
}

fn main() {
    let _ = (CATALOGUE.tools, Contract(Shop.into()));
}
