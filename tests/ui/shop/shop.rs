//! The print shop's contract and its printers, without a handler.

pub mod contract {
    toolwarrant::contract!("../../print_shop/spec", runtime = ::toolwarrant_core);
}

use toolwarrant_core::access::Caller;
use toolwarrant_core::BoxFuture;
use toolwarrant_core::handler::{Flag, Resource, Unresolved};
use contract::{PrinterCapability, PrinterId};

pub struct Shop;

impl Resource<PrinterId> for Shop {
    type View = ();
    type Capability = PrinterCapability;

    fn resolve<'a>(&'a self, _: &'a Caller, _: &'a PrinterId) -> BoxFuture<'a, Result<(), Unresolved>> {
        Box::pin(async { Err(Unresolved::NotFound) })
    }

    fn flag(_: &(), _: PrinterCapability) -> Flag {
        Flag::Offered
    }
}
