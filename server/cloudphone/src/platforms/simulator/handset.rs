//! The open app of simulated phones, the typed text, and the effect of an input.
//!
//! An input takes storage for its phone until the phone restarts.

use crate::phones::port::{Point, ScreenInput, ScreenKey};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard};
use toolwarrant::base::ignore_poison;

pub(super) const NOTES: Area = Area { x: 64, y: 376, width: 96, height: 112 };
pub(super) const SETTINGS: Area = Area { x: 200, y: 376, width: 96, height: 112 };
const BACK: Area = Area { x: 0, y: 40, width: 112, height: 56 };
pub(super) const SWITCH: Area = Area { x: 16, y: 108, width: 328, height: 108 };

const SCREENS_MAX: usize = 1_024;

/// In characters. The latest stay.
const NOTE_MAX: usize = 300;

type ScreenStates = HashMap<(u32, u64), ScreenState>;

#[derive(Default)]
pub(super) struct Screens(Mutex<ScreenStates>);

#[derive(Clone, Default)]
pub(super) struct ScreenState {
    pub(super) app: App,
    pub(super) note: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum App {
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

    /// `phone` is its index and number of boots.
    pub(super) fn state(&self, phone: (u32, u64)) -> ScreenState {
        self.lock().get(&phone).cloned().unwrap_or_default()
    }

    /// Forgets all screens if there are too many. Returns true if the switch of the proxy was
    /// touched.
    pub(super) fn take(&self, phone: (u32, u64), input: &ScreenInput) -> bool {
        let mut states = self.lock();
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
            (_, ScreenInput::Swipe { from, to, .. }) if is_swipe_home(*from, *to) => self.app = App::Home,
            (App::Home, ScreenInput::Touch(point)) if NOTES.has(*point) => self.app = App::Notes,
            (App::Home, ScreenInput::Touch(point)) if SETTINGS.has(*point) => self.app = App::Settings,
            (App::Notes | App::Settings, ScreenInput::Touch(point)) if BACK.has(*point) => {
                self.app = App::Home;
            }
            (App::Settings, ScreenInput::Touch(point)) => return SWITCH.has(*point),
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

pub(super) struct Area {
    pub(super) x: u32,
    pub(super) y: u32,
    pub(super) width: u32,
    pub(super) height: u32,
}

impl Area {
    fn has(&self, point: Point) -> bool {
        let Self { x, y, width, height } = *self;
        (x..x + width).contains(&point.x) && (y..y + height).contains(&point.y)
    }
}

fn is_swipe_home(from: Point, to: Point) -> bool {
    from.y >= 592 && to.y.saturating_add(80) <= from.y
}
