//! Commands on a phone, for every platform that can run one.
//!
//! Platforms return the output of a command without its exit status, and may lose, cut or replace
//! the output silently. So a script is placed between two random marks: an output without both
//! marks is an unknown outcome. The phone can still print anything between them. Scripts are ours,
//! use only the common subset of POSIX sh and mksh, and fit on one line. A script never contains a
//! password, because platforms store the commands that they run. Start at [`run_whole`].

use crate::phones::contract::DeviceId;
use crate::phones::port::Unreachable;
use toolwarrant::base::hex;
use toolwarrant::{BoxFuture, Random};

/// The longest command that platforms accept, in bytes.
pub const COMMAND_MAX: usize = 4_000;

/// The longest output that platforms pass on in full, in characters.
pub const OUTPUT_MAX: usize = 2_000;

/// A platform that can run commands on its phones. The adapter sets a deadline and does not repeat
/// a command.
pub trait Shell: Send + Sync {
    /// Runs a script in a POSIX shell on the phone and returns its raw output, as the platform
    /// returns it.
    fn run<'a>(&'a self, id: &'a DeviceId, script: &'a str) -> BoxFuture<'a, Result<String, Unreachable>>;
}

/// The result of a script that ran to its end, as the phone reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// The output, including errors, without surrounding white space.
    pub output: String,
    /// Its exit status.
    pub status: u8,
}

/// Runs a script of one line on a phone. The script may end in `&`, but not within a comment or a
/// quotation. Processes that it leaves running must not print.
///
/// # Errors
/// The platform did not answer, or the answer is not the whole output of this script.
pub async fn run_whole(shell: &dyn Shell, random: &Random, id: &DeviceId, script: &str) -> Result<Ran, Unreachable> {
    let nonce: [u8; 8] = random.bytes().map_err(|_| Unreachable("the system has no randomness".into()))?;
    let nonce = hex::encode(&nonce);
    let marked = wrap_in_marks(&nonce, script);
    if marked.len() > COMMAND_MAX {
        return Err(Unreachable("a command is longer than platforms take".into()));
    }
    let raw = shell.run(id, &marked).await?;
    between(&nonce, &raw).ok_or_else(|| Unreachable("the output of a command is not whole".into()))
}

/// Quotes a value for a script. A shell reads it as one word, whatever it contains. The value must
/// not contain NUL.
#[must_use]
pub fn quote(value: &str) -> String {
    format!("'{}'", value.replace('\'', r"'\''"))
}

/// Puts a script between two marks. The text of the command contains neither mark, so that an echo
/// of the command is not taken for its output.
fn wrap_in_marks(nonce: &str, script: &str) -> String {
    format!("echo {nonce}'<';( {script} ) 2>&1;echo {nonce}'>'$?.")
}

/// Returns the text between the marks, and the status in the second one, which must end its line.
/// The platform may add lines of its own.
fn between(nonce: &str, raw: &str) -> Option<Ran> {
    let (_, rest) = raw.split_once(&format!("{nonce}<"))?;
    let (output, status) = rest.rsplit_once(&format!("{nonce}>"))?;
    let status = status.lines().next()?.trim_end().strip_suffix('.')?.parse().ok()?;
    let output = output.trim().to_owned();
    (output.chars().count() <= OUTPUT_MAX).then_some(Ran { output, status })
}

#[cfg(test)]
pub(super) mod tests;
