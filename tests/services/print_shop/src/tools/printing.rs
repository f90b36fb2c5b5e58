//! Printing: `spec/tools/printing.toml`.

use crate::contract::PrintingTools;
use crate::contract::{Command, OpenPanelArgs, OpenPanelError, Panel, PrintPageArgs, PrintPageError, Printer};
use crate::shop::Shop;
use toolwarrant::handler::{Call, Reply, Target};
use toolwarrant::text::Secret;

/// The ink does not suffice for this number of copies.
const TOO_MANY: i64 = 99;

/// Opens every panel; it has not been changed since the delivery.
const CODE: &str = "0000";

impl PrintingTools for Shop {
    async fn open_panel(&self, _: &Call<'_>, args: OpenPanelArgs) -> Result<Reply<Panel>, OpenPanelError> {
        if args.copies.get() >= TOO_MANY {
            return Err(OpenPanelError::OutOfInk { what: "that many need more ink".into(), colour: "cyan".into() });
        }
        Ok(Panel { code: Secret::new(CODE.to_owned()), copies: args.copies }.into())
    }

    /// Accepts any page without a check. The executor decides which order it makes for the printer.
    async fn print_page(
        &self,
        _: &Call<'_>,
        _: &Target<Printer>,
        args: PrintPageArgs,
    ) -> Result<Command, PrintPageError> {
        Ok(Command::PrintPage(args))
    }
}
