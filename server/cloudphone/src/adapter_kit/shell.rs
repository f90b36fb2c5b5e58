//! Commands on a phone, for every platform that can run one.
//!
//! Platforms return output without an exit status, and may lose, cut or replace it silently. So a
//! script is placed between two random marks: an output without both marks is an unknown outcome.
//! The phone can still print anything between them. Scripts use only the common subset of POSIX sh
//! and mksh, and fit on one line. A script never contains a password, because platforms store the
//! commands that they run. Start at [`run_whole`].

use crate::phones::contract::DeviceId;
use crate::phones::port::Unreachable;
use async_trait::async_trait;
use strum::{EnumString, IntoStaticStr, VariantArray};
use toolwarrant::Random;
use toolwarrant::base::hex;

/// In bytes, as platforms accept.
pub const COMMAND_MAX: usize = 4_000;

/// In characters, as platforms pass on in full.
pub const OUTPUT_MAX: usize = 2_000;

/// A platform that runs commands, with a deadline and without repeats.
#[async_trait]
pub trait Shell: Send + Sync {
    async fn run(&self, id: &DeviceId, script: &str) -> Result<String, Unreachable>;
}

/// A program with which a phone makes requests, in the order in which a phone tries them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Tool {
    /// The only program that can be told to use a proxy.
    Curl,
    ToyboxWget,
    Wget,
    Nc,
    ToyboxNc,
    Missing,
}

/// Runs a script of one line, which may end in `&`, but not within a comment or a quotation.
/// Processes that it leaves running must not print. Returns its output, whatever its status is.
pub async fn run_whole(shell: &dyn Shell, random: &Random, id: &DeviceId, script: &str) -> Result<String, Unreachable> {
    let nonce: [u8; 8] = random.bytes().map_err(|_| Unreachable("the system has no randomness".into()))?;
    let nonce = hex::encode(&nonce);
    let marked = wrap_in_marks(&nonce, script);
    if marked.len() > COMMAND_MAX {
        return Err(Unreachable("a command is longer than platforms take".into()));
    }
    let raw = shell.run(id, &marked).await?;
    between(&nonce, &raw).ok_or_else(|| Unreachable("the output of a command is not whole".into()))
}

/// Quotes a value without NUL.
#[must_use]
pub fn quote(value: &str) -> String {
    format!("'{}'", value.replace('\'', r"'\''"))
}

/// Adds the marks. The command contains neither mark, so that an echo of it is no output.
fn wrap_in_marks(nonce: &str, script: &str) -> String {
    format!("echo {nonce}'<';( {script} ) 2>&1;echo {nonce}'>'$?.")
}

/// Finds the output. The second mark has the status, and must end its line. The platform may add
/// lines.
fn between(nonce: &str, raw: &str) -> Option<String> {
    let (_, rest) = raw.split_once(&format!("{nonce}<"))?;
    let (output, status) = rest.rsplit_once(&format!("{nonce}>"))?;
    let _status: u8 = status.lines().next()?.trim_end().strip_suffix('.')?.parse().ok()?;
    Some(output.trim().to_owned()).filter(|output| output.chars().count() <= OUTPUT_MAX)
}

#[cfg(test)]
pub(super) mod tests;
