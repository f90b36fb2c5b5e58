//! The screens of simulated phones.
//!
//! The switch of the proxy is in the [truth](super::truth). Its effects are no deeds, and are not
//! in the journal.

use super::picture::Picture;
use super::{PhoneAt, Sim, proxy_view};
use crate::phones::contract::{DeviceId, DeviceState};
use crate::phones::port::{InputError, Query, Screen, ScreenInput, Still, Unreachable};
use toolwarrant::BoxFuture;

impl Screen for Sim {
    fn still<'a>(&'a self, id: &'a DeviceId) -> Query<'a, Still> {
        Box::pin(async move {
            let phone = self.find_lit(id)?;
            let picture = Picture {
                now: self.clock.now(),
                phone: &self.snapshot(&phone),
                address: self.leaves_from(id, None).ok(),
                set_proxy: phone.state.proxy.as_ref().map(proxy_view),
                screen: self.screens.state((phone.index, phone.state.boots)),
            };
            Ok(picture.draw())
        })
    }

    fn input<'a>(&'a self, id: &'a DeviceId, input: &'a ScreenInput) -> BoxFuture<'a, Result<(), InputError>> {
        Box::pin(async move {
            let phone = self.find_lit(id)?;
            if phone.state.power != DeviceState::Running {
                return Err(Unreachable("the phone does not run".into()).into());
            }
            if self.screens.take((phone.index, phone.state.boots), input) {
                self.switch_proxy(phone.index);
            }
            Ok(())
        })
    }
}

impl Sim {
    fn find_lit(&self, id: &DeviceId) -> Result<PhoneAt, Unreachable> {
        self.reach()?;
        let refused = |why: &str| Unreachable(why.into());
        let phone = self.find(id).ok_or_else(|| refused("no such phone"))?;
        match phone.state.power {
            power if !phone.readable || power == DeviceState::Unknown => Err(refused("the phone cannot be read")),
            DeviceState::Stopped => Err(refused("the phone is stopped")),
            _ => Ok(phone),
        }
    }

    fn switch_proxy(&self, index: u32) {
        let truth = &mut self.record().truth;
        let phone = self.phone_in(truth, index, self.clock.now());
        if phone.state.proxy.is_some() {
            truth.switch_proxy(index, || phone.part.initial_state());
            self.table.write(index);
        }
    }
}
