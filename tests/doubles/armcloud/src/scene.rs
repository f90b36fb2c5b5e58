//! The picture on the screen of a pad, and what inputs make of it: a home screen with one app, the
//! settings with a switch, and a browser.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum App {
    #[default]
    Home,
    Settings,
    Browser,
}

/// A picture, apart from its size. Equal ones have equal pixels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shown {
    pub(crate) app: App,
    pub(crate) is_off: bool,
    pub(crate) typed: usize,
    /// Changes by itself.
    pub(crate) motion: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Scene {
    next: Shown,
    before: Shown,
    /// When the last input shows, in milliseconds since the Unix epoch.
    from: u64,
}

impl Scene {
    pub(crate) fn show(&self, now: u64, moves_every: Option<u64>) -> Shown {
        let shown = if now < self.from { &self.before } else { &self.next };
        Shown { motion: moves_every.map_or(0, |each| now / each.max(1)), ..shown.clone() }
    }

    /// Returns false if there is nothing to open.
    pub(crate) fn take(&mut self, words: &[&str], (width, height): (u32, u32), (now, late): (u64, u64)) -> bool {
        let mut next = self.next.clone();
        match words {
            ["input", "tap", x, y] => {
                let [x, y] = [x, y].map(|at| at.parse::<u32>().unwrap_or_default());
                match next.app {
                    App::Home if is_icon((x, y), (width, height)) => next.app = App::Settings,
                    App::Settings if is_switch(y, height) => next.is_off = !next.is_off,
                    _ => {}
                }
            }
            ["input", "keyevent", "3" | "4" | "187"] => next.app = App::Home,
            ["input", "text", text] if next.app == App::Browser => next.typed += text.len(),
            ["monkey", "-p", "com.android.settings", ..] => next.app = App::Settings,
            ["am", "start", .., url] if url.starts_with("https://") => next.app = App::Browser,
            ["monkey" | "am", ..] => return false,
            _ => {}
        }
        if next != self.next {
            self.before = self.show(now, None);
            (self.next, self.from) = (next, now + late);
        }
        true
    }
}

pub(crate) fn is_icon((x, y): (u32, u32), (width, height): (u32, u32)) -> bool {
    x >= width / 2 && (height / 2..height * 3 / 4).contains(&y)
}

pub(crate) fn is_switch(y: u32, height: u32) -> bool {
    (height / 8..height / 4).contains(&y)
}

impl Shown {
    /// The shade of a pixel.
    pub(crate) fn draw(&self, (x, y): (u32, u32), sides: (u32, u32)) -> u8 {
        let of_app = match self.app {
            App::Home if is_icon((x, y), sides) => return 255,
            App::Settings if is_switch(y, sides.1) => return if self.is_off { 0 } else { 255 },
            App::Home => 0,
            App::Settings => 64,
            App::Browser => 128,
        };
        (u64::from(x + y) + of_app + self.typed as u64 * 3 + self.motion * 5).to_le_bytes()[0]
    }

    /// As `uiautomator` does it.
    pub(crate) fn list(&self, (width, height): (u32, u32)) -> String {
        let node = |class: &str, rest: &str, bounds: [u32; 4]| {
            let [left, top, right, bottom] = bounds;
            format!(r#"<node class="android.{class}" {rest} bounds="[{left},{top}][{right},{bottom}]" />"#)
        };
        let inner = match self.app {
            App::Home => {
                let icon = [width / 2, height / 2, width, height * 3 / 4];
                node("widget.TextView", r#"text="Settings" clickable="true""#, icon)
            }
            App::Settings => {
                let rest = format!(r#"text="Proxy" checkable="true" checked="{}""#, !self.is_off);
                node("widget.Switch", &rest, [0, height / 8, width, height / 4])
            }
            App::Browser => node("widget.EditText", r#"text="" clickable="true""#, [0, 0, width, height / 8]),
        };
        format!("<?xml version='1.0' encoding='UTF-8' standalone='yes' ?><hierarchy rotation=\"0\">{inner}</hierarchy>")
    }
}
