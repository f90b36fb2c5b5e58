//! The handler that changes the power state: `spec/tools/power.toml`.

use super::check_offer;
use crate::phones::contract::{Command, PowerTools, SetPowerArgs, SetPowerError};
use crate::phones::devices::Phones;
use crate::phones::port::DeviceSnapshot;
use std::sync::Arc;
use toolwarrant::handler::{Call, Target};

impl PowerTools for Phones {
    async fn set_power(
        &self,
        _: &Call<'_>,
        device: &Target<Arc<DeviceSnapshot>>,
        args: SetPowerArgs,
    ) -> Result<Command, SetPowerError> {
        check_offer(SetPowerArgs::ACTION, &args.action, &device.power_actions, |action| action.as_str())
            .map_err(|what| SetPowerError::NotOffered { what })?;
        Ok(Command::SetPower(args))
    }
}
