//! The fixture: a contract about something else, fulfilled in memory.

mod contract {
    cloudphone_macros::contract!("print_shop/spec", runtime = ::cloudphone::framework);
}

pub(crate) use contract::{CATALOGUE, Contract};

use cloudphone::framework::BoxFuture;
use cloudphone::framework::Timestamp;
use cloudphone::framework::access::Caller;
use cloudphone::framework::handler::{Call, Flag, Resource, Target, Unresolved};
use cloudphone::framework::reply::Reply;
use cloudphone::framework::tasks::{Accepted, NotAccepted, Proposal, Tasks};
use cloudphone::framework::text::{Secret, Untrusted};
use contract::{
    CleanRollersArgs, CleanRollersError, Command, GetPrinterArgs, GetPrinterError, Mode, OpenPanelArgs, OpenPanelError,
    Panel, PrintPageArgs, PrintPageError, Printer, PrinterCapabilities, PrinterCapability, PrinterId, PrintersTools,
    PrintingTools,
};
use std::sync::Mutex;

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
                known @ ("p-1" | "p-2" | "p-bug" | "p-slow") if caller.application.grants.covers(known) => {
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

/// Keeps every task for ever in flight.
#[derive(Debug, Default)]
pub(crate) struct Spool(Mutex<Vec<(String, String)>>);

impl Spool {
    fn key(proposal: &Proposal<'_>) -> String {
        let derived = || format!("{} {}", proposal.tool, proposal.arguments.expose());
        proposal.key.as_deref().map_or_else(derived, str::to_owned)
    }

    fn task(n: usize, arguments: &str, proposal: &Proposal<'_>, hit: bool) -> Accepted {
        Accepted {
            task_id: format!("task-{n}"),
            tool: proposal.tool.to_owned(),
            target: proposal.target.to_string(),
            status: "dispatched",
            hit,
            matches: arguments == proposal.arguments.expose(),
        }
    }
}

impl Tasks for Spool {
    fn repeat<'a>(&'a self, proposal: &'a Proposal<'a>) -> BoxFuture<'a, Result<Option<Accepted>, NotAccepted>> {
        Box::pin(async move {
            let tasks = self.0.lock().map_err(|_| NotAccepted::Full)?;
            let found = tasks.iter().position(|(key, _)| *key == Self::key(proposal));
            Ok(found.map(|n| Self::task(n, &tasks[n].1, proposal, true)))
        })
    }

    fn accept<'a>(
        &'a self,
        proposal: &'a Proposal<'a>,
        command: Secret<String>,
    ) -> BoxFuture<'a, Result<Accepted, NotAccepted>> {
        Box::pin(async move {
            let mut tasks = self.0.lock().map_err(|_| NotAccepted::Full)?;
            tasks.push((Self::key(proposal), command.expose().clone()));
            Ok(Self::task(tasks.len() - 1, command.expose(), proposal, false))
        })
    }
}
