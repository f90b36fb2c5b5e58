//! Printers: `spec/tools/printers.toml`.

use crate::contract::{CleanRollersArgs, CleanRollersError, GetPrinterArgs, GetPrinterError, Printer, PrintersTools};
use crate::machines::{Habit, PRINTERS};
use crate::shop::Shop;
use toolwarrant::handler::{Call, Reply, Target};

impl PrintersTools for Shop {
    async fn get_printer(
        &self,
        _: &Call<'_>,
        printer: &Target<Printer>,
        _: GetPrinterArgs,
    ) -> Result<Reply<Printer>, GetPrinterError> {
        Ok(Printer::clone(printer).into())
    }

    async fn clean_rollers(
        &self,
        _: &Call<'_>,
        printer: &Target<Printer>,
        _: CleanRollersArgs,
    ) -> Result<Reply<Printer>, CleanRollersError> {
        let id = printer.printer_id.as_str();
        if PRINTERS.iter().any(|machine| machine.id == id && machine.habit == Habit::Refuses) {
            return Err(CleanRollersError::Jammed { what: "a roller is stuck".into() });
        }
        Ok(Printer::clone(printer).into())
    }
}
