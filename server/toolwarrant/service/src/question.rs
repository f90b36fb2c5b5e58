//! Asks the operator before a command whose change cannot be undone.

use anyhow::{Context, Result, bail};
use std::io::{IsTerminal, Write, stderr, stdin};
use toolwarrant_operator::render::plain;

/// Fails without a terminal.
pub(crate) fn ask(question: &str) -> Result<()> {
    let question = plain(question);
    if !(stdin().is_terminal() && stderr().is_terminal()) {
        bail!("this command needs a confirmation, and there is no terminal: {question} Add --yes");
    }
    let mut answer = String::new();
    let asked = write!(stderr(), "{question} [y/N] ").and_then(|()| stdin().read_line(&mut answer));
    asked.context("cannot ask on the terminal; --yes answers")?;
    if !matches!(answer.trim(), "y" | "Y" | "yes") {
        bail!("nothing was done");
    }
    Ok(())
}
