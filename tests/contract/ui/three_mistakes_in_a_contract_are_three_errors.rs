//! Whoever imports generated names by name hears of the mistakes in the contract, and of nothing else.

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
