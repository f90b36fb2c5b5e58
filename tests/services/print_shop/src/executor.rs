//! How writes are carried out, and what is evidence that they took effect.
//!
//! The engine decides when to send and read, and what a task ends as; this file only tells what a machine said and what was
//! read. A page has a page counter as its evidence. Paper in a tray has none, so no reading of it is ever asked for.

use crate::contract::{Command, FillTrayArgs, PrintPageArgs};
use crate::machines::{Dark, Machine, PRINTERS, Said, TRAYS};
use crate::shop::Shop;
use toolwarrant::{BoxFuture, Executor, Reading, Remark, Sent, Timestamp, Unreadable, Verdict, Write};

/// A write as the machine is told it.
enum Order {
    Print(&'static Machine),
    Fill(&'static Machine),
}

impl Order {
    /// Takes a write back from how it was written down. Fails where a later version no longer knows it.
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

    fn send<'a>(&'a self, write: &'a Write, not_after: Timestamp) -> BoxFuture<'a, Sent> {
        Box::pin(async move {
            if self.clock.now() > not_after {
                return Sent::NotSent("it is too late".into());
            }
            let said = match Order::read(write) {
                Ok(Order::Print(printer)) => self.machines.print(printer),
                Ok(Order::Fill(tray)) => self.machines.fill(tray),
                Err(Unreadable(why)) => return Sent::NotSent(why),
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
                (Some(before), Ok(pages)) => compared(before, pages),
                (None, _) => unreadable("nothing was read before".into()),
                (_, Err(Unreadable(why))) => unreadable(why),
            }
        })
    }
}

impl Shop {
    /// What the page counter of a write's printer shows.
    fn pages(&self, write: &Write) -> Result<u64, Unreadable> {
        match Order::read(write)? {
            Order::Print(printer) => {
                self.machines.counter(printer).map_err(|Dark| Unreadable("the counter cannot be read".into()))
            }
            Order::Fill(_) => Err(Unreadable("a tray has no counter".into())),
        }
    }
}

/// A page more is there, no page more is not. A counter that went back says nothing: somebody has reset it.
fn compared(before: u64, pages: u64) -> Reading {
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
