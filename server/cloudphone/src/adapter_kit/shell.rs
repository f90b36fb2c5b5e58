//! Commands on a phone, for every platform that can run one.
//!
//! Platforms give the output of a command and no exit status, and may lose, cut or replace the output without a word. So a script is
//! put between two marks that nobody can know before: an output without both is an unknown outcome. What a phone prints is still its
//! own word. Scripts are ours, in the words that POSIX sh and mksh share, on one line. No password is ever in one: a platform keeps the
//! commands that it runs. Start at [`run_whole`].

use crate::phones::contract::DeviceId;
use crate::phones::port::Unreachable;
use toolwarrant::{BoxFuture, Random, hex};

/// Longest command that platforms take, in bytes.
pub const COMMAND_MAX: usize = 4_000;

/// Longest output that platforms pass on whole, in characters.
pub const OUTPUT_MAX: usize = 2_000;

/// A platform that can run commands on its phones. The adapter sets a deadline and repeats nothing.
pub trait Shell: Send + Sync {
    /// Runs a script in a POSIX shell on the phone and returns its raw output, as the platform gives it.
    fn run<'a>(&'a self, id: &'a DeviceId, script: &'a str) -> BoxFuture<'a, Result<String, Unreachable>>;
}

/// A script that ran to its end, by the phone's own word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// What it printed, errors included, without white space around it.
    pub output: String,
    /// Its exit status.
    pub status: u8,
}

/// Runs a script of one line on a phone. It may end in `&`, but not within a comment or a quotation, and what it leaves running may
/// print nothing.
///
/// # Errors
/// The platform gave no answer, or one that is not the whole output of this script.
pub async fn run_whole(shell: &dyn Shell, random: &Random, id: &DeviceId, script: &str) -> Result<Ran, Unreachable> {
    let nonce: [u8; 8] = random.bytes().map_err(|_| Unreachable("the system has no randomness".into()))?;
    let nonce = hex::encode(&nonce);
    let marked = marked(&nonce, script);
    if marked.len() > COMMAND_MAX {
        return Err(Unreachable("a command is longer than platforms take".into()));
    }
    let raw = shell.run(id, &marked).await?;
    between(&nonce, &raw).ok_or_else(|| Unreachable("the output of a command is not whole".into()))
}

/// Quotes a value for a script. A shell takes it as one word, whatever is in it. It has no NUL.
#[must_use]
pub fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', r"'\''"))
}

/// The script between two marks. As text it contains neither, so that an echo of the command is not taken for its output.
fn marked(nonce: &str, script: &str) -> String {
    format!("echo {nonce}'<';( {script} ) 2>&1;echo {nonce}'>'$?.")
}

/// What stands between the marks, and the status in the second one; nothing follows that.
fn between(nonce: &str, raw: &str) -> Option<Ran> {
    let (_, rest) = raw.split_once(&format!("{nonce}<"))?;
    let (output, status) = rest.rsplit_once(&format!("{nonce}>"))?;
    let status = status.trim_end().strip_suffix('.')?.parse().ok()?;
    let output = output.trim().to_owned();
    (output.chars().count() <= OUTPUT_MAX).then_some(Ran { output, status })
}

#[cfg(test)]
pub(super) mod tests;
