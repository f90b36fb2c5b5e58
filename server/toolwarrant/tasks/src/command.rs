//! Stored commands: opens their arguments, and finds those that the contract cannot read. The
//! engine sends nothing for these, and reads their targets only if that needs no arguments.

use crate::task::TaskId;
use toolwarrant_base::keyring::KeyRing;
use toolwarrant_base::text::Secret;
use toolwarrant_core::catalogue::Catalogue;

pub const UNREADABLE: &str = "the command of this task cannot be read by this contract";

/// Opens the sealed arguments of a task's command; checks them if there is a catalogue. The error
/// shows no values.
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
