//! Numbers in a table.

use toolwarrant::config::{Config, ConfigError, Spanned};

pub(super) fn check_number(
    config: &Config,
    name: &str,
    (usual, most): (u32, u32),
    written: Option<Spanned<u32>>,
) -> Result<u32, ConfigError> {
    let Some(number) = written else { return Ok(usual) };
    let given = *number.get_ref();
    match (1..=most).contains(&given) {
        true => Ok(given),
        false => {
            Err(config.mistake(number.span(), format!("`{name}` is {given}"), Some(format!("1 to {most} are allowed"))))
        }
    }
}
