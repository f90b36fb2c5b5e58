//! Stored commands: opens their arguments, and finds those that the contract cannot read.

use crate::task::TaskId;
use toolwarrant_base::keyring::KeyRing;
use toolwarrant_base::text::Secret;
use toolwarrant_core::catalogue::Catalogue;

/// The reason why nothing more is sent for a task, and why it may not be verified.
pub const UNREADABLE: &str = "the command of this task cannot be read by this contract";

/// Opens the sealed arguments of a task's command. Without a catalogue, it does not check them.
///
/// # Errors
/// The reason why the command cannot be read. It shows no values.
pub fn open(
    catalogue: Option<&Catalogue>,
    keyring: &KeyRing,
    (id, tool): (TaskId, &str),
    sealed: Option<&[u8]>,
) -> Result<Secret<String>, String> {
    let sealed = sealed.ok_or("its arguments are gone")?;
    let arguments = keyring.open(&id.to_string(), sealed).map_err(|error| error.to_string())?;
    if let Some(catalogue) = catalogue {
        catalogue.judge_stored(tool, arguments.expose())?;
    }
    Ok(arguments)
}
