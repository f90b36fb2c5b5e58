//! The outside world: simulated printers and trays, each with one habit, listed in [`PRINTERS`] and
//! [`TRAYS`].
//!
//! A real shop has a client of its printers in place of this file. This file does not know tools,
//! tasks or callers.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use toolwarrant::base::ignore_poison;

#[derive(Clone, Copy, Debug)]
pub struct Machine {
    pub id: &'static str,
    pub label: &'static str,
    pub habit: Habit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Habit {
    /// Carries the order out and reports that.
    Obeys,
    /// Has no paper, or cannot be opened; its flags say so.
    Lacks,
    /// Reports success and does nothing.
    Swallows,
    /// Carries the order out, and its answer is lost.
    LosesAnswer,
    /// Does nothing, and its answer is lost.
    LosesOrder,
    Refuses,
    /// Carries the order out and reports that, and cannot be read afterwards.
    GoesDark,
    Unplugged,
}

pub const PRINTERS: &[Machine] = &[
    machine("p-1", "Old\u{202e} faithful", Habit::Obeys),
    machine("p-2", "Hungry", Habit::Lacks),
    machine("p-3", "Paper eater", Habit::Swallows),
    machine("p-4", "Mumbler", Habit::LosesAnswer),
    machine("p-5", "Sleeper", Habit::LosesOrder),
    machine("p-6", "Grump", Habit::Refuses),
    machine("p-7", "Lights out", Habit::GoesDark),
    machine("p-gone", "Cut wire", Habit::Unplugged),
];

/// A tray has the id of the printer that it feeds.
pub const TRAYS: &[Machine] = &[
    machine("p-1", "A4", Habit::Obeys),
    machine("p-2", "Locked", Habit::Lacks),
    machine("p-3", "Jammed", Habit::Refuses),
    machine("p-4", "A3", Habit::LosesAnswer),
    machine("p-gone", "Cut wire", Habit::Unplugged),
];

pub const USAGE: &str = "\
Without a command it serves simulated machines on http://127.0.0.1:8080/mcp; its first start prints a key to try it with.

print_page on          what the printer does                     the task ends as
  p-1                  prints                                    success
  p-2                  has no paper                              (not_supported)
  p-3                  says that it printed, and did not         failed_silent, refunded
  p-4                  prints, and its answer is lost            success
  p-5                  neither prints nor answers                timeout
  p-6                  refuses                                   failed
  p-7                  prints, and cannot be read any more       timeout
  p-gone               cannot be reached                         (upstream_unavailable)

fill_tray on           what the tray does                        the task ends as
  p-1                  says that it is filled                    success_unverified
  p-2                  is locked                                 (not_supported)
  p-3                  refuses                                   failed
  p-4                  does not answer                           timeout
  p-gone               cannot be reached                         (upstream_unavailable)";

const fn machine(id: &'static str, label: &'static str, habit: Habit) -> Machine {
    Machine { id, label, habit }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    Done,
    No(&'static str),
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dark;

#[derive(Debug, Default)]
pub struct Machines {
    /// By printer, since the start of the program.
    pages: Mutex<BTreeMap<&'static str, u64>>,
    /// A file for each printer has a byte for each page. Several processes then have the same
    /// machines.
    folder: Option<PathBuf>,
}

impl Machines {
    /// Fails if the folder is not there.
    pub fn new(folder: Option<PathBuf>) -> io::Result<Self> {
        folder.as_deref().map(Path::metadata).transpose()?;
        Ok(Self { pages: Mutex::default(), folder })
    }

    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    pub fn print(&self, printer: &Machine) -> Said {
        if matches!(printer.habit, Habit::Obeys | Habit::LosesAnswer | Habit::GoesDark) {
            let printed = match &self.folder {
                Some(folder) => File::options().append(true).create(true).open(folder.join(printer.id)),
                None => {
                    *self.pages().entry(printer.id).or_default() += 1;
                    return answer(printer.habit);
                }
            };
            if printed.and_then(|mut file| file.write_all(b".")).is_err() {
                return Said::Nothing;
            }
        }
        answer(printer.habit)
    }

    /// Tells a tray to take paper, which cannot be observed.
    pub fn fill(&self, tray: &Machine) -> Said {
        answer(tray.habit)
    }

    /// Fails if the printer is unplugged, or has printed and goes dark by habit.
    pub fn counter(&self, printer: &Machine) -> Result<u64, Dark> {
        let pages = match &self.folder {
            Some(folder) => folder.join(printer.id).metadata().map_or(0, |about| about.len()),
            None => self.pages().get(printer.id).copied().unwrap_or_default(),
        };
        match printer.habit {
            Habit::Unplugged => Err(Dark),
            Habit::GoesDark if pages > 0 => Err(Dark),
            _ => Ok(pages),
        }
    }

    fn pages(&self) -> MutexGuard<'_, BTreeMap<&'static str, u64>> {
        ignore_poison(self.pages.lock())
    }
}

fn answer(habit: Habit) -> Said {
    match habit {
        Habit::Obeys | Habit::Swallows | Habit::GoesDark => Said::Done,
        Habit::Refuses | Habit::Lacks => Said::No("not today"),
        Habit::LosesAnswer | Habit::LosesOrder | Habit::Unplugged => Said::Nothing,
    }
}
