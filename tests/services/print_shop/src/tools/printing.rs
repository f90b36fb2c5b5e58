//! Printing: `spec/tools/printing.toml`.

use crate::contract::PrintingTools;
use crate::contract::{Command, OpenPanelArgs, OpenPanelError, Panel, PrintPageArgs, PrintPageError, Printer};
use crate::shop::Shop;
use toolwarrant::{Call, Reply, Secret, Target};

/// More copies than there is ink for.
const TOO_MANY: i64 = 99;

/// Opens every panel: nobody has changed it since the machines were delivered.
const CODE: &str = "0000";

impl PrintingTools for Shop {
    async fn open_panel(&self, _: &Call<'_>, args: OpenPanelArgs) -> Result<Reply<Panel>, OpenPanelError> {
        if args.copies.get() >= TOO_MANY {
            return Err(OpenPanelError::OutOfInk { what: "that many need more ink".into(), colour: "cyan".into() });
        }
        Ok(Panel { code: Secret::new(CODE.to_owned()), copies: args.copies }.into())
    }

    /// Judges nothing: any page can be printed. What it means for the printer is the executor's.
    async fn print_page(
        &self,
        _: &Call<'_>,
        _: &Target<Printer>,
        args: PrintPageArgs,
    ) -> Result<Command, PrintPageError> {
        Ok(Command::PrintPage(args))
    }
}
