//! The handset of a simulated phone: what its screen shows after touches, keys and text.

use crate::phones::port::{OpenTarget, Point, ScreenInput, ScreenKey};

pub(super) const NOTES: Area = Area { x: 64, y: 376, width: 96, height: 112 };
pub(super) const SETTINGS: Area = Area { x: 200, y: 376, width: 96, height: 112 };
pub(super) const BACK: Area = Area { x: 0, y: 40, width: 112, height: 56 };
pub(super) const SWITCH: Area = Area { x: 16, y: 108, width: 328, height: 108 };

/// In characters. The latest stay.
const NOTE_MAX: usize = 300;

#[derive(Clone, Default)]
pub(super) struct ScreenState {
    pub(super) app: App,
    pub(super) note: String,
    pub(super) sleeps: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum App {
    #[default]
    Home,
    Notes,
    Settings,
}

impl App {
    pub(super) fn of(what: &OpenTarget) -> Option<Self> {
        match what {
            OpenTarget::App(package) if package == "com.android.settings" => Some(Self::Settings),
            OpenTarget::App(package) if package == "com.example.notes" => Some(Self::Notes),
            OpenTarget::App(_) | OpenTarget::Address(_) => None,
        }
    }
}

impl ScreenState {
    /// Returns true if the switch of the proxy was touched.
    pub(super) fn take(&mut self, input: &ScreenInput) -> bool {
        match input {
            ScreenInput::Key(ScreenKey::Power) => self.sleeps = !self.sleeps,
            ScreenInput::Key(ScreenKey::Wake) => self.sleeps = false,
            _ if self.sleeps => return false,
            _ => {}
        }
        match (self.app, input) {
            (_, ScreenInput::Key(ScreenKey::Home | ScreenKey::Back | ScreenKey::Recents)) => self.app = App::Home,
            (app, ScreenInput::Open(what)) => self.app = App::of(what).unwrap_or(app),
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
