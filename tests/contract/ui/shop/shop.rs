//! The print shop's contract and its printers, without a handler.

pub mod contract {
    toolwarrant::contract!("print_shop/spec");
}

use toolwarrant::handler::{Caller, Flag, Resource, Unresolved};
use contract::{PrinterCapability, PrinterId};

pub struct Shop;

impl Resource<PrinterId> for Shop {
    type View = ();
    type Capability = PrinterCapability;

    async fn resolve(&self, _: &Caller, _: &PrinterId) -> Result<(), Unresolved> {
        Err(Unresolved::NotFound)
    }

    fn flag(_: &(), _: PrinterCapability) -> Flag {
        Flag::Offered
    }
}
