//! The pictures of simulated phones, and what can be touched on them. Fonts have ASCII alone, and
//! show a `?` for any other character.

use super::handset::{App, Area, BACK, NOTES, SETTINGS, SWITCH, ScreenState};
use crate::phones::contract::{DeviceState, ElementKind, Pixel, Proxy, ScreenElement};
use crate::phones::port::{DeviceReading, ScreenError, Still, StillSize};
use embedded_graphics::Pixel as Dot;
use embedded_graphics::mono_font::ascii::{FONT_7X13, FONT_8X13, FONT_9X15, FONT_9X18_BOLD, FONT_10X20};
use embedded_graphics::mono_font::{MonoFont, MonoTextStyle};
use embedded_graphics::pixelcolor::Rgb888;
use embedded_graphics::prelude::*;
use embedded_graphics::primitives::{Circle, PrimitiveStyle, Rectangle, RoundedRectangle};
use embedded_graphics::text::{Alignment, Text};
use std::convert::Infallible;
use std::net::IpAddr;
use toolwarrant::Timestamp;
use toolwarrant::text::Untrusted;

const SIZE: StillSize = StillSize { width: 360, height: 640 };

/// Lines and columns of the note, and columns of other values.
const NOTE_LINES: usize = 20;
const NOTE_COLUMNS: usize = 31;
const COLUMNS: usize = 36;

const WHITE: Rgb888 = Rgb888::WHITE;
const INK: Rgb888 = Rgb888::new(0x1b, 0x22, 0x33);
const QUIET: Rgb888 = Rgb888::new(0x56, 0x60, 0x74);
const LINK: Rgb888 = Rgb888::new(0x24, 0x50, 0xc8);
const NIGHT: Rgb888 = Rgb888::new(0x22, 0x30, 0x58);
const PAPER: Rgb888 = Rgb888::new(0xee, 0xf1, 0xf6);
const GREY: Rgb888 = Rgb888::new(0xd5, 0xda, 0xe4);

pub(super) struct Picture<'a> {
    pub(super) now: Timestamp,
    pub(super) phone: &'a DeviceReading,
    pub(super) address: Option<IpAddr>,
    /// In use, or switched off.
    pub(super) set_proxy: Option<Proxy>,
    pub(super) screen: ScreenState,
}

/// A picture, and what is on it.
pub(super) struct Drawing {
    pixels: Vec<u8>,
    pub(super) elements: Vec<ScreenElement>,
}

impl Picture<'_> {
    pub(super) fn draw(&self) -> Drawing {
        let pixels = vec![0; SIZE.width as usize * SIZE.height as usize * 3];
        let mut drawing = Drawing { pixels, elements: Vec::new() };
        let runs = self.phone.state == Some(DeviceState::Running);
        if runs && self.screen.sleeps {
            return drawing;
        }
        let on_paper = runs && self.screen.app != App::Home;
        let (ground, ink) = if on_paper { (PAPER, INK) } else { (NIGHT, WHITE) };
        drawing.fill(&Area { x: 0, y: 0, width: SIZE.width, height: SIZE.height }, 0, ground);
        let minutes = self.now.0 / 60_000;
        let clock = format!("{:02}:{:02} UTC", minutes / 60 % 24, minutes % 60);
        let name = Untrusted::<24>::clean(self.phone.name.as_str());
        drawing.write((20, 28), (&FONT_7X13, ink), &clock);
        drawing.write((340 - 7 * name.as_str().chars().count() as i32, 28), (&FONT_7X13, ink), name.as_str());
        match (self.phone.state, self.screen.app) {
            (Some(DeviceState::Running), App::Home) => self.home(&mut drawing),
            (Some(DeviceState::Running), App::Notes) => self.notes(&mut drawing),
            (Some(DeviceState::Running), App::Settings) => self.settings(&mut drawing),
            (Some(DeviceState::Stopping), _) => drawing.say((110, 330), (&FONT_10X20, WHITE), "Shutting down"),
            _ => drawing.say((140, 330), (&FONT_10X20, WHITE), "Starting"),
        }
        drawing.fill(&Area { x: 120, y: 624, width: 120, height: 5 }, 2, QUIET);
        drawing
    }

    fn home(&self, drawing: &mut Drawing) {
        drawing.say((24, 96), (&FONT_10X20, WHITE), Untrusted::<18>::clean(self.phone.name.as_str()).as_str());
        drawing.say((24, 126), (&FONT_8X13, WHITE), "Running");
        drawing.fill(&Area { x: 16, y: 150, width: 328, height: 172 }, 20, WHITE);
        let address = self.address.map_or_else(|| "no network".to_owned(), |address| address.to_string());
        let proxy = self.phone.proxy.as_ref().map_or_else(|| "none".to_owned(), proxy_text);
        for (y, label, value) in [(182, "Traffic leaves from", &address), (250, "Proxy", &proxy)] {
            drawing.say((32, y), (&FONT_7X13, QUIET), label);
            drawing.say_value(y + 26, value);
        }
        for (area, name) in [(&NOTES, "Notes"), (&SETTINGS, "Settings")] {
            drawing.fill(&Area { x: area.x + 12, y: area.y + 6, width: 72, height: 72 }, 20, LINK);
            for n in 0..3 {
                drawing.fill(&Area { x: area.x + 32, y: area.y + 28 + 12 * n, width: 32, height: 5 }, 2, WHITE);
            }
            let x = area.x + 48 - 4 * name.len() as u32;
            drawing.write((x as i32, area.y as i32 + 104), (&FONT_8X13, WHITE), name);
            drawing.note(ElementKind::Button, name, area, None);
        }
    }

    fn notes(&self, drawing: &mut Drawing) {
        const PAGE: Area = Area { x: 16, y: 108, width: 328, height: 492 };
        drawing.head("Notes");
        drawing.fill(&PAGE, 20, WHITE);
        drawing.note(ElementKind::Field, &self.screen.note, &PAGE, None);
        if self.screen.note.is_empty() {
            drawing.write((46, 142), (&FONT_7X13, QUIET), "Type with your keyboard");
        }
        let lines = wrap(&format!("{}|", self.screen.note), NOTE_COLUMNS);
        for (line, y) in lines[lines.len().saturating_sub(NOTE_LINES)..].iter().zip((142..).step_by(23)) {
            drawing.write((32, y), (&FONT_9X15, INK), line);
        }
    }

    fn settings(&self, drawing: &mut Drawing) {
        let (track, knob, about) = match (&self.set_proxy, &self.phone.proxy) {
            (None, _) => (GREY, 275, "no proxy is set"),
            (Some(_), None) => (QUIET, 275, "off"),
            (Some(_), Some(_)) => (LINK, 299, "on"),
        };
        drawing.head("Settings");
        drawing.fill(&SWITCH, 20, WHITE);
        drawing.write((32, 138), (&FONT_9X18_BOLD, INK), "Proxy");
        drawing.say((32, 158), (&FONT_7X13, QUIET), about);
        if let Some(set) = &self.set_proxy {
            drawing.say_value(181, &proxy_text(set));
        }
        drawing.fill(&Area { x: 272, y: 124, width: 52, height: 30 }, 15, track);
        drawing.dot((knob, 128), 22, WHITE);
        let is_on = self.set_proxy.as_ref().map(|_| self.phone.proxy.is_some());
        drawing.note(ElementKind::Switch, "Proxy", &SWITCH, Some(is_on.unwrap_or(false)));
    }
}

impl Drawing {
    pub(super) fn still(&self) -> Result<Still, ScreenError> {
        Still::of_pixels(SIZE, &self.pixels)
    }

    fn head(&mut self, title: &str) {
        self.write((20, 78), (&FONT_9X15, LINK), "< Home");
        self.note(ElementKind::Button, "Home", &BACK, None);
        let style = MonoTextStyle::new(&FONT_9X18_BOLD, INK);
        let Ok(_) = Text::with_alignment(title, Point::new(180, 78), style, Alignment::Center).draw(self);
    }

    fn write(&mut self, (x, y): (i32, i32), (font, ink): (&MonoFont<'_>, Rgb888), text: &str) {
        let Ok(_) = Text::new(text, Point::new(x, y), MonoTextStyle::new(font, ink)).draw(self);
    }

    /// Writes a text that an agent reads, too.
    fn say(&mut self, at: (i32, i32), (font, ink): (&MonoFont<'_>, Rgb888), text: &str) {
        self.write(at, (font, ink), text);
        let (x, y) = (at.0 as u32, at.1 as u32);
        let width = font.character_size.width * text.chars().count() as u32;
        self.note(ElementKind::Text, text, &Area { x, y: y - 10, width, height: 12 }, None);
    }

    /// Writes at most two lines.
    fn say_value(&mut self, y: i32, value: &str) {
        for (line, y) in wrap(value, COLUMNS).iter().zip([y, y + 22]) {
            self.write((32, y), (&FONT_8X13, INK), line);
        }
        self.note(ElementKind::Text, value, &Area { x: 32, y: y as u32 - 10, width: 296, height: 12 }, None);
    }

    fn note(&mut self, kind: ElementKind, label: &str, area: &Area, on: Option<bool>) {
        let [x, y] = [area.x + area.width / 2, area.y + area.height / 2].map(|at| Pixel::new(at.into()));
        if let (Ok(x), Ok(y)) = (x, y) {
            self.elements.push(ScreenElement { kind, label: label.into(), on, x, y });
        }
    }

    fn fill(&mut self, Area { x, y, width, height }: &Area, radius: u32, fill: Rgb888) {
        let area = Rectangle::new(Point::new(*x as i32, *y as i32), Size::new(*width, *height));
        let rounded = RoundedRectangle::with_equal_corners(area, Size::new_equal(radius));
        let Ok(()) = rounded.into_styled(PrimitiveStyle::with_fill(fill)).draw(self);
    }

    fn dot(&mut self, (x, y): (i32, i32), diameter: u32, fill: Rgb888) {
        let Ok(()) = Circle::new(Point::new(x, y), diameter).into_styled(PrimitiveStyle::with_fill(fill)).draw(self);
    }
}

impl OriginDimensions for Drawing {
    fn size(&self) -> Size {
        Size::new(SIZE.width, SIZE.height)
    }
}

impl DrawTarget for Drawing {
    type Color = Rgb888;
    type Error = Infallible;

    fn draw_iter<I: IntoIterator<Item = Dot<Rgb888>>>(&mut self, dots: I) -> Result<(), Infallible> {
        let (width, area) = (SIZE.width as usize, self.bounding_box());
        for Dot(at, color) in dots.into_iter().filter(|Dot(at, _)| area.contains(*at)) {
            let first = (at.y as usize * width + at.x as usize) * 3;
            self.pixels[first..first + 3].copy_from_slice(&[color.r(), color.g(), color.b()]);
        }
        Ok(())
    }
}

fn proxy_text(Proxy { scheme, host, port }: &Proxy) -> String {
    format!("{}://{}:{}", scheme.as_str(), Untrusted::<50>::clean(host.as_str()).as_str(), port.get())
}

/// Breaks lines.
fn wrap(text: &str, columns: usize) -> Vec<String> {
    let (mut lines, mut line) = (Vec::new(), String::new());
    for c in text.chars() {
        if c == '\n' || line.chars().count() == columns {
            lines.push(std::mem::take(&mut line));
        }
        if c != '\n' {
            line.push(c);
        }
    }
    lines.push(line);
    lines
}
