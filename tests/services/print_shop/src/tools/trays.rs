//! Trays: `spec/tools/trays.toml`.

use crate::contract::{Command, FillTrayArgs, FillTrayError, GetTrayArgs, GetTrayError, Tray, TraysTools};
use crate::shop::Shop;
use toolwarrant::handler::{Call, Reply, Target};

impl TraysTools for Shop {
    async fn get_tray(&self, _: &Call<'_>, tray: &Target<Tray>, _: GetTrayArgs) -> Result<Reply<Tray>, GetTrayError> {
        Ok(Tray::clone(tray).into())
    }

    async fn fill_tray(&self, _: &Call<'_>, _: &Target<Tray>, args: FillTrayArgs) -> Result<Command, FillTrayError> {
        Ok(Command::FillTray(args))
    }
}
