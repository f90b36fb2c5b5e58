//! The pictures of simulated phones, as SVG without scripts, styles and references. Text from
//! outside gets in through [`escape`] only.

use super::handset::{App, Area, NOTES, SETTINGS, SWITCH, ScreenState};
use crate::phones::contract::{DeviceState, Proxy};
use crate::phones::port::{DeviceReading, Still, StillSize};
use std::net::IpAddr;
use toolwarrant::Timestamp;
use toolwarrant::text::{Untrusted, deceives};

const SIZE: StillSize = StillSize { width: 360, height: 640 };

/// Lines and columns of the note, and columns of other values.
const NOTE_LINES: usize = 20;
const NOTE_COLUMNS: usize = 31;
const COLUMNS: usize = 34;

const BLACK: &str =
    r#"<svg xmlns="http://www.w3.org/2000/svg" width="360" height="640"><rect width="360" height="640"/></svg>"#;

const INK: &str = "#1b2233";
const QUIET: &str = "#566074";
const LINK: &str = "#2450c8";

pub(super) struct Picture<'a> {
    pub(super) now: Timestamp,
    pub(super) phone: &'a DeviceReading,
    pub(super) address: Option<IpAddr>,
    /// In use, or switched off.
    pub(super) set_proxy: Option<Proxy>,
    pub(super) screen: ScreenState,
}

impl Picture<'_> {
    pub(super) fn draw(&self) -> Still {
        let (ground, ink, body) = match (self.phone.state, self.screen.app) {
            (Some(DeviceState::Running), _) if self.screen.sleeps => return Still::svg(BLACK.to_owned(), SIZE),
            (Some(DeviceState::Running), App::Home) => ("#223058", "#fff", self.home()),
            (Some(DeviceState::Running), App::Notes) => ("#eef1f6", INK, self.notes()),
            (Some(DeviceState::Running), App::Settings) => ("#eef1f6", INK, self.settings()),
            (Some(DeviceState::Stopping), _) => ("#10131c", "#fff", waiting("Shutting down…")),
            _ => ("#10131c", "#fff", waiting("Starting…")),
        };
        let minutes = self.now.0 / 60_000;
        let clock = format!("{:02}:{:02} UTC", minutes / 60 % 24, minutes % 60);
        let name = Untrusted::<24>::clean(self.phone.name.as_str());
        let status = [text(20, 28, 14, "", &clock), text(340, 28, 14, r#"text-anchor="end""#, name.as_str())].concat();
        let StillSize { width, height } = SIZE;
        let drawing = format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="sans-serif">
<rect width="{width}" height="{height}" fill="{ground}"/>
<g fill="{ink}">{status}</g>
{body}
<rect x="120" y="624" width="120" height="5" rx="2.5" fill="{ink}" opacity="0.6"/>
</svg>
"#
        );
        Still::svg(drawing, SIZE)
    }

    fn home(&self) -> String {
        let name = Untrusted::<18>::clean(self.phone.name.as_str());
        let name = text(24, 96, 26, r##"font-weight="bold" fill="#fff""##, name.as_str());
        let state = text(42, 126, 16, r##"fill="#dbe4ff""##, "Running");
        let card = card(&Area { x: 16, y: 150, width: 328, height: 172 });
        let address = self.address.map_or_else(|| "no network".to_owned(), |address| address.to_string());
        let rows = [
            label(32, 182, "Traffic leaves from"),
            value(208, &address),
            label(32, 250, "Proxy"),
            value(276, &self.phone.proxy.as_ref().map_or_else(|| "none".to_owned(), proxy_text)),
        ];
        let icons = [(&NOTES, "#f5a524", "Notes", NOTES_ICON), (&SETTINGS, "#5b6ee1", "Settings", SETTINGS_ICON)];
        let icons = icons.map(|(Area { x, y, .. }, fill, name, drawing)| {
            let name = text(x + 48, y + 104, 16, r##"text-anchor="middle" fill="#fff""##, name);
            format!(
                r##"<g transform="translate({x} {y})"><rect x="12" y="6" width="72" height="72" rx="20" fill="{fill}"/><g stroke="#fff" stroke-width="5" stroke-linecap="round" fill="{fill}">{drawing}</g></g>{name}"##
            )
        });
        format!(
            r##"{name}<circle cx="30" cy="121" r="5" fill="#4ade80"/>{state}{card}{}<path d="M32 226h296" stroke="#dde2ec"/>{}"##,
            rows.concat(),
            icons.concat()
        )
    }

    fn notes(&self) -> String {
        let lines = wrap(&self.screen.note, NOTE_COLUMNS);
        let shown = lines[lines.len().saturating_sub(NOTE_LINES)..].join("\n");
        let shown = format!(r#"{}<tspan fill="{LINK}">|</tspan>"#, escape(&shown));
        let lines = shown.split('\n').zip(0..);
        let lines = lines.map(|(line, n)| format!(r#"<tspan x="32" y="{}">{line}</tspan>"#, 142 + 23 * n));
        let hint = if self.screen.note.is_empty() { label(46, 142, "Type with your keyboard") } else { String::new() };
        format!(
            r#"{}{}{hint}<text xml:space="preserve" font-size="15" font-family="monospace" fill="{INK}">{}</text>"#,
            header("Notes"),
            card(&Area { x: 16, y: 108, width: 328, height: 492 }),
            lines.collect::<String>()
        )
    }

    fn settings(&self) -> String {
        let (track, knob, about) = match (&self.set_proxy, &self.phone.proxy) {
            (None, _) => ("#d5dae4", 286, "no proxy is set"),
            (Some(_), None) => ("#7d879a", 286, "off"),
            (Some(_), Some(_)) => (LINK, 310, "on"),
        };
        let proxy = self.set_proxy.as_ref().map_or_else(String::new, |set| value(181, &proxy_text(set)));
        format!(
            r##"{}{}{}{}{proxy}<rect x="272" y="124" width="52" height="30" rx="15" fill="{track}"/><circle cx="{knob}" cy="139" r="11" fill="#fff"/>"##,
            header("Settings"),
            card(&SWITCH),
            text(32, 138, 17, &format!(r#"fill="{INK}""#), "Proxy"),
            label(32, 158, about),
        )
    }
}

const NOTES_ICON: &str = r#"<path d="M32 30h32M32 42h32M32 54h20"/>"#;
const SETTINGS_ICON: &str =
    r#"<path d="M30 32h36M30 52h36"/><circle cx="56" cy="32" r="6"/><circle cx="40" cy="52" r="6"/>"#;

fn waiting(what: &str) -> String {
    text(180, 330, 20, r##"text-anchor="middle" fill="#dbe4ff""##, what)
}

fn header(title: &str) -> String {
    let back = text(20, 78, 17, &format!(r#"fill="{LINK}""#), "‹ Home");
    back + &text(180, 78, 17, &format!(r#"text-anchor="middle" font-weight="bold" fill="{INK}""#), title)
}

fn card(Area { x, y, width, height }: &Area) -> String {
    format!(r##"<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="20" fill="#fff"/>"##)
}

fn label(x: u32, y: u32, words: &str) -> String {
    text(x, y, 14, &format!(r#"fill="{QUIET}""#), words)
}

/// Draws at most two lines.
fn value(y: u32, value: &str) -> String {
    let look = format!(r#"font-family="monospace" fill="{INK}""#);
    wrap(value, COLUMNS).iter().zip([y, y + 22]).map(|(line, y)| text(32, y, 14, &look, line)).collect()
}

fn text(x: u32, y: u32, size: u32, look: &str, text: &str) -> String {
    format!(r#"<text x="{x}" y="{y}" font-size="{size}" {look}>{}</text>"#, escape(text))
}

fn proxy_text(Proxy { scheme, host, port }: &Proxy) -> String {
    format!("{}://{}:{}", scheme.as_str(), Untrusted::<50>::clean(host.as_str()).as_str(), port.get())
}

/// Breaks lines. A character outside of ASCII takes two columns.
fn wrap(text: &str, columns: usize) -> Vec<String> {
    let (mut lines, mut line, mut room) = (Vec::new(), String::new(), columns);
    for c in text.chars() {
        let width = if c.is_ascii() { 1 } else { 2 };
        if c == '\n' || width > room {
            lines.push(std::mem::take(&mut line));
            room = columns;
        }
        if c != '\n' {
            line.push(c);
            room -= width;
        }
    }
    lines.push(line);
    lines
}

/// Leaves out what hides or reorders text, and what is no character of XML. Keeps line breaks.
fn escape(text: &str) -> String {
    let shown = text.chars().filter(|c| *c == '\n' || !(deceives(*c) || matches!(c, '\u{fffe}' | '\u{ffff}')));
    let mut escaped = String::with_capacity(text.len());
    for c in shown {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            c => escaped.push(c),
        }
    }
    escaped
}
