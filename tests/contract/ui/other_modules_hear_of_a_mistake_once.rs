//! Modules that import generated names in any way get only the errors of the contract.

mod contract {
    toolwarrant::contract!("ui/specs/three_mistakes");
}

mod shop {
    use crate::contract::{Panel, Printer, PrinterCapability, PrinterId, PrintersTools};
    use toolwarrant::handler::{Caller, Flag, Resource, Unresolved};

    #[derive(Debug, Clone)]
    pub struct Shop {
        pub panel: Panel,
    }

    impl Resource<PrinterId> for Shop {
        type View = Printer;
        type Capability = PrinterCapability;

        async fn resolve(&self, _: &Caller, _: &PrinterId) -> Result<Printer, Unresolved> {
            Err(Unresolved::NotFound)
        }

        fn flag(view: &Printer, capability: PrinterCapability) -> Flag {
            match capability {
                PrinterCapability::Paper if view.capabilities.paper => Flag::Offered,
                PrinterCapability::Paper | PrinterCapability::Rollers => Flag::Refused("the tray is empty"),
            }
        }
    }

    impl PrintersTools for Shop {}
}

mod printing {
    use crate::contract;
    use crate::shop::Shop;
    use toolwarrant::handler::{Call, Target};

    impl contract::PrintingTools for Shop {
        async fn print_page(
            &self,
            _: &Call<'_>,
            printer: &Target<contract::Printer>,
            args: contract::PrintPageArgs,
        ) -> Result<contract::Command, contract::PrintPageError> {
            let _ = printer.modes.contains(&args.mode);
            Ok(contract::Command::PrintPage(args))
        }
    }
}

mod executor {
    use super::contract::*;
    pub use super::contract::{Permission, Probe};

    pub fn reads(probe: Probe, command: &Command) -> Option<TaskId> {
        match (probe, command) {
            (Probe::PageCounter, Command::PrintPage(args)) => args.task_id.clone(),
        }
    }

    pub fn all() -> Vec<Mode> {
        Mode::ALL.to_vec()
    }
}

pub use contract::{CATALOGUE, Contract};

fn main() {
    let _ = (CATALOGUE.tools.len(), executor::all(), executor::Permission::Look);
}
