//! The executor: carries writes out, and reads the evidence that they took effect.
//!
//! The engine decides when to send and read, and which end a task has. This file only reports the
//! answer of a machine and the readings. The evidence of a page is the page counter. Paper in a
//! tray has no evidence, so the engine never asks for a reading of it.

use crate::contract::{Command, FillTrayArgs, PrintPageArgs};
use crate::machines::{Dark, Machine, PRINTERS, Said, TRAYS};
use crate::shop::Shop;
use toolwarrant::BoxFuture;
use toolwarrant::tasks::{Executor, Leave, Reading, Sent, Unreadable, Verdict, Write};
use toolwarrant::text::Remark;

enum Order {
    Print(&'static Machine),
    Fill(&'static Machine),
}

impl Order {
    /// Fails if a later version does not know the write any more.
    fn read(write: &Write) -> Result<Self, Unreadable> {
        let command = Command::read(&write.tool, write.arguments.expose());
        let order = command.and_then(|command| match command {
            Command::PrintPage(PrintPageArgs { printer_id, .. }) => {
                find(PRINTERS, printer_id.as_str()).map(Self::Print)
            }
            Command::FillTray(FillTrayArgs { tray_id, .. }) => find(TRAYS, tray_id.as_str()).map(Self::Fill),
        });
        order.ok_or_else(|| Unreadable(format!("no machine takes this `{}`", write.tool).into()))
    }
}

impl Executor for Shop {
    fn baseline<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Result<String, Unreadable>> {
        Box::pin(async move { self.pages(write).map(|pages| pages.to_string()) })
    }

    fn send<'a>(&'a self, write: &'a Write, leave: Leave) -> BoxFuture<'a, Sent> {
        Box::pin(async move {
            let order = match Order::read(write) {
                Ok(order) => order,
                Err(Unreadable(why)) => return Sent::NotSent(why),
            };
            if let Err(why) = leave.confirm() {
                return Sent::NotSent(why);
            }
            let said = match order {
                Order::Print(printer) => self.machines.print(printer),
                Order::Fill(tray) => self.machines.fill(tray),
            };
            match said {
                Said::Done => Sent::Ok,
                Said::No(why) => Sent::Err(why.into()),
                Said::Nothing => Sent::NoAnswer("the line was cut".into()),
            }
        })
    }

    fn probe<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Reading> {
        Box::pin(async move {
            let before = write.baseline.as_deref().and_then(|pages| pages.parse().ok());
            match (before, self.pages(write)) {
                (Some(before), Ok(pages)) => compare(before, pages),
                (None, _) => unreadable("nothing was read before".into()),
                (_, Err(Unreadable(why))) => unreadable(why),
            }
        })
    }
}

impl Shop {
    fn pages(&self, write: &Write) -> Result<u64, Unreadable> {
        match Order::read(write)? {
            Order::Print(printer) => {
                self.machines.counter(printer).map_err(|Dark| Unreadable("the counter cannot be read".into()))
            }
            Order::Fill(_) => Err(Unreadable("a tray has no counter".into())),
        }
    }
}

/// Takes a higher counter as proof of the page, and an equal one as proof of its absence. A lower
/// counter shows nothing, because it must have been reset.
fn compare(before: u64, pages: u64) -> Reading {
    let verdict = match pages {
        pages if pages > before => Verdict::Present,
        pages if pages == before => Verdict::Absent,
        _ => Verdict::Unreadable,
    };
    Reading {
        verdict,
        expected: format!("more than {before} pages").into(),
        observed: format!("{before} -> {pages}").into(),
    }
}

fn unreadable(observed: Remark) -> Reading {
    Reading { verdict: Verdict::Unreadable, expected: "a page more".into(), observed }
}

fn find(machines: &'static [Machine], id: &str) -> Option<&'static Machine> {
    machines.iter().find(|machine| machine.id == id)
}
