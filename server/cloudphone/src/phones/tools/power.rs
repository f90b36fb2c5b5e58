//! The handler that changes the power state: `spec/tools/power.toml`.

use super::offered;
use crate::phones::contract::{Command, PowerTools, SetPowerArgs, SetPowerError};
use crate::phones::devices::Phones;
use crate::phones::port::Seen;
use std::sync::Arc;
use toolwarrant::{Call, Target};

impl PowerTools for Phones {
    async fn set_power(
        &self,
        _: &Call<'_>,
        device: &Target<Arc<Seen>>,
        args: SetPowerArgs,
    ) -> Result<Command, SetPowerError> {
        offered("action", &args.action, &device.power_actions, |action| action.as_str())
            .map_err(|what| SetPowerError::NotOffered { what })?;
        Ok(Command::SetPower(args))
    }
}
