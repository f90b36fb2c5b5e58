//! The content of an unreadable file is unknown, so the only error is that it cannot be read.

mod contract {
    toolwarrant::contract!("ui/specs/no_toml");
}

mod shop {
    use crate::contract::{CATALOGUE, Contract, Printer, PrinterCapabilities, PrinterId, PrintersTools};

    pub struct Shop(pub Printer, pub PrinterCapabilities);

    impl PrintersTools for Shop {
        async fn get_printer(&self, id: PrinterId) -> Printer {
            id.into()
        }
    }

    pub fn serve(shop: Shop) -> usize {
        Contract(shop.into()).serve(CATALOGUE.tools)
    }
}

fn main() {
    shop::serve(shop::Shop(contract::Printer::default(), contract::PrinterCapabilities::default()));
}
