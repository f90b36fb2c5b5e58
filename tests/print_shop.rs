//! The fixture: a contract about something else, fulfilled in memory.

mod contract {
    toolwarrant::contract!("print_shop/spec", runtime = ::toolwarrant_core);
}

pub(crate) use contract::{CATALOGUE, Contract};

use contract::{
    CleanRollersArgs, CleanRollersError, Command, GetPrinterArgs, GetPrinterError, Mode, OpenPanelArgs, OpenPanelError,
    Panel, PrintPageArgs, PrintPageError, Printer, PrinterCapabilities, PrinterCapability, PrinterId, PrintersTools,
    PrintingTools,
};
use toolwarrant_core::BoxFuture;
use toolwarrant_core::Timestamp;
use toolwarrant_core::access::Caller;
use toolwarrant_core::handler::{Call, Flag, Resource, Target, Unresolved};
use toolwarrant_core::reply::Reply;
use toolwarrant_core::text::{Secret, Untrusted};
use toolwarrant_tasks::executor::{Executor, Unreadable, Write};
use toolwarrant_tasks::machine::{Facts, Sent};
use toolwarrant_tasks::task::Reading;

/// Printers `p-1` with paper, `p-2` without, `p-gone` whose wire is cut; `p-bug` makes the handler panic, `p-slow` has it wait.
#[derive(Debug)]
pub(crate) struct Shop;

impl Resource<PrinterId> for Shop {
    type View = Printer;
    type Capability = PrinterCapability;

    fn resolve<'a>(&'a self, caller: &'a Caller, id: &'a PrinterId) -> BoxFuture<'a, Result<Printer, Unresolved>> {
        Box::pin(async move {
            match id.as_str() {
                "p-gone" => Err(Unresolved::Unavailable),
                known @ ("p-1" | "p-2" | "p-bug" | "p-slow") if caller.application.grants.covers("printer", known) => {
                    Ok(Printer {
                        printer_id: id.clone(),
                        label: Untrusted::clean("Old\u{202e} faithful"),
                        capabilities: PrinterCapabilities { paper: known != "p-2", rollers: known != "p-2" },
                        modes: Mode::ALL.to_vec(),
                        serviced_at: (known == "p-1").then_some(Timestamp(1_700_000_000_123)),
                        last_mode: None,
                    })
                }
                _ => Err(Unresolved::NotFound),
            }
        })
    }

    fn flag(view: &Printer, capability: PrinterCapability) -> Flag {
        match capability {
            PrinterCapability::Paper if view.capabilities.paper => Flag::Offered,
            PrinterCapability::Paper => Flag::Refused("the tray is empty".into()),
            PrinterCapability::Rollers if view.capabilities.rollers => Flag::Offered,
            PrinterCapability::Rollers => Flag::Refused("it has none".into()),
        }
    }
}

impl PrintersTools for Shop {
    async fn get_printer(
        &self,
        _: &Call<'_>,
        printer: &Target<Printer>,
        _: GetPrinterArgs,
    ) -> Result<Reply<Printer>, GetPrinterError> {
        match printer.printer_id.as_str() {
            "p-bug" => panic!("this printer is a bug"),
            "p-slow" => std::future::pending().await,
            _ => {}
        }
        Ok(Printer::clone(printer).into())
    }

    async fn clean_rollers(
        &self,
        _: &Call<'_>,
        printer: &Target<Printer>,
        _: CleanRollersArgs,
    ) -> Result<Reply<Printer>, CleanRollersError> {
        if printer.printer_id.as_str() == "p-bug" {
            return Err(CleanRollersError::Jammed { what: "a roller is stuck".into() });
        }
        Ok(Printer::clone(printer).into())
    }
}

impl PrintingTools for Shop {
    async fn open_panel(&self, _: &Call<'_>, args: OpenPanelArgs) -> Result<Reply<Panel>, OpenPanelError> {
        if args.copies.get() == 99 {
            return Err(OpenPanelError::OutOfInk { what: "that many need more ink".into(), colour: "cyan".into() });
        }
        Ok(Panel { code: Secret::new("0000".into()), copies: args.copies }.into())
    }

    async fn print_page(
        &self,
        _: &Call<'_>,
        _: &Target<Printer>,
        args: PrintPageArgs,
    ) -> Result<Command, PrintPageError> {
        Ok(Command::PrintPage(args))
    }
}

/// Printers that take a page and say no more.
#[derive(Debug)]
pub(crate) struct Mute;

impl Executor for Mute {
    fn facts(&self, _: &Write) -> Facts {
        Facts::default()
    }

    fn baseline<'a>(&'a self, _: &'a Write) -> BoxFuture<'a, Result<String, Unreadable>> {
        Box::pin(async { Ok("1".to_owned()) })
    }

    fn send<'a>(&'a self, _: &'a Write, _: Timestamp) -> BoxFuture<'a, Sent> {
        Box::pin(std::future::pending())
    }

    fn look_up<'a>(&'a self, _: &'a Write) -> BoxFuture<'a, Result<Option<Sent>, Unreadable>> {
        Box::pin(std::future::pending())
    }

    fn probe<'a>(&'a self, _: &'a Write) -> BoxFuture<'a, Reading> {
        Box::pin(std::future::pending())
    }
}
