//! The screens of simulated phones: pictures, and the effects of inputs.
//!
//! A phone forgets its open app and its note when it restarts. The effects of inputs are not in the
//! journal.

use super::handset::{App, ScreenState};
use super::phone::PhoneAt;
use super::picture::{Drawing, Picture};
use super::{Phones, Sim};
use crate::phones::contract::{DeviceId, DeviceState, ScreenElement};
use crate::phones::port::{Screen, ScreenError, ScreenInput, Still, Unreachable};
use async_trait::async_trait;

#[async_trait]
impl Screen for Sim {
    async fn still(&self, id: &DeviceId) -> Result<Still, ScreenError> {
        self.draw_screen(id)?.still()
    }

    async fn elements(&self, id: &DeviceId) -> Result<Option<Vec<ScreenElement>>, ScreenError> {
        Ok(Some(self.draw_screen(id)?.elements))
    }

    async fn sleeps(&self, id: &DeviceId) -> Result<bool, Unreachable> {
        Ok(self.read_lit(&self.phones(), id)?.1.sleeps)
    }

    async fn input(&self, id: &DeviceId, input: &ScreenInput) -> Result<(), ScreenError> {
        let mut phones = self.phones_mut();
        let (phone, mut screen) = self.read_lit(&phones, id)?;
        if phone.power != DeviceState::Running {
            return Err(Unreachable("the phone does not run".into()).into());
        }
        if let ScreenInput::Open(what) = input
            && App::of(what).is_none()
        {
            return Err(ScreenError::Refused("this phone has no such app, and no browser"));
        }
        let is_switched = screen.take(input) && phone.proxy.is_some();
        let written = phones.write(phone.index);
        written.screen = (phone.boots, screen);
        if is_switched {
            written.switched_off = (!phone.is_off).then(|| self.clock.now());
        }
        Ok(())
    }
}

impl Sim {
    fn draw_screen(&self, id: &DeviceId) -> Result<Drawing, Unreachable> {
        let (phone, screen) = self.read_lit(&self.phones(), id)?;
        let (now, address) = (self.clock.now(), self.leaves_from(id, None).ok());
        Ok(Picture { now, phone: &phone.reading(), address, set_proxy: phone.proxy, screen }.draw())
    }

    /// Reads a phone whose screen is on.
    fn read_lit(&self, phones: &Phones, id: &DeviceId) -> Result<(PhoneAt, ScreenState), Unreachable> {
        self.reach()?;
        let refused = |why: &str| Unreachable(why.into());
        let phone = self.find(phones, id).ok_or_else(|| refused("no such phone"))?;
        match phone.power {
            _ if !phone.readable => return Err(refused("the phone cannot be read")),
            DeviceState::Stopped => return Err(refused("the phone is stopped")),
            _ => {}
        }
        let screen = phones.written.get(&phone.index).map(|written| &written.screen);
        let screen = screen.filter(|(boots, _)| *boots == phone.boots).map(|(_, screen)| screen.clone());
        Ok((phone, screen.unwrap_or_default()))
    }
}
