//! The screens of simulated phones: the open app, what was typed, and what an input does.
//!
//! An input takes storage for its phone until the phone restarts. The switch of the proxy is in the
//! [truth](super::truth). Its effects are no deeds, and are not in the journal.

mod picture;

use super::{PhoneAt, Sim, proxy_view};
use crate::phones::contract::{DeviceId, DeviceState};
use crate::phones::port::{InputError, Query, Screen, ScreenInput, ScreenKey, Still, Unreachable};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard};
use toolwarrant::BoxFuture;
use toolwarrant::base::ignore_poison;

const SCREENS_MAX: usize = 1_024;

/// In characters. The latest stay.
const NOTE_MAX: usize = 300;

/// By index and number of boots.
type ScreenStates = HashMap<(u32, u64), ScreenState>;

#[derive(Default)]
pub(super) struct Screens(Mutex<ScreenStates>);

#[derive(Clone, Default)]
struct ScreenState {
    app: App,
    note: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum App {
    #[default]
    Home,
    Notes,
    Settings,
}

/// Does not show the notes, because they can be passwords.
impl fmt::Debug for Screens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[screens]")
    }
}

impl Screens {
    fn lock(&self) -> MutexGuard<'_, ScreenStates> {
        ignore_poison(self.0.lock())
    }

    fn state(&self, phone: &PhoneAt) -> ScreenState {
        self.lock().get(&(phone.index, phone.state.boots)).cloned().unwrap_or_default()
    }

    /// Forgets all screens if there are too many. Returns true if the switch of the proxy was
    /// touched.
    fn take(&self, phone: &PhoneAt, input: &ScreenInput) -> bool {
        let (mut states, phone) = (self.lock(), (phone.index, phone.state.boots));
        if states.len() >= SCREENS_MAX && !states.contains_key(&phone) {
            states.clear();
        }
        states.entry(phone).or_default().take(input)
    }
}

impl ScreenState {
    fn take(&mut self, input: &ScreenInput) -> bool {
        match (self.app, input) {
            (_, ScreenInput::Key(ScreenKey::Home | ScreenKey::Back | ScreenKey::Recents)) => self.app = App::Home,
            (_, ScreenInput::Swipe { from, to, .. }) if picture::is_swipe_home(*from, *to) => self.app = App::Home,
            (App::Home, ScreenInput::Touch(point)) if picture::NOTES.has(*point) => self.app = App::Notes,
            (App::Home, ScreenInput::Touch(point)) if picture::SETTINGS.has(*point) => self.app = App::Settings,
            (App::Notes | App::Settings, ScreenInput::Touch(point)) if picture::BACK.has(*point) => {
                self.app = App::Home;
            }
            (App::Settings, ScreenInput::Touch(point)) => return picture::SWITCH.has(*point),
            (App::Notes, ScreenInput::Text(typed)) => self.write(typed.as_str()),
            (App::Notes, ScreenInput::Key(ScreenKey::Enter)) => self.write("\n"),
            (App::Notes, ScreenInput::Key(ScreenKey::Backspace)) => drop(self.note.pop()),
            _ => {}
        }
        false
    }

    fn write(&mut self, text: &str) {
        self.note.push_str(text);
        let surplus = self.note.chars().count().saturating_sub(NOTE_MAX);
        self.note = self.note.chars().skip(surplus).collect();
    }
}

impl Screen for Sim {
    fn still<'a>(&'a self, id: &'a DeviceId) -> Query<'a, Still> {
        Box::pin(async move {
            let phone = self.find_lit(id)?;
            let picture = picture::Picture {
                now: self.clock.now(),
                phone: &self.snapshot(&phone),
                address: self.leaves_from(id, None).ok(),
                set_proxy: phone.state.proxy.as_ref().map(proxy_view),
                screen: self.screens.state(&phone),
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
            if self.screens.take(&phone, input) {
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
