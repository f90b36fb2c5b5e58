//! The screen of a phone: pictures of it, and input for it.

use super::unreachable::Unreachable;
use crate::phones::contract::numbers::ELEMENTS_MOST;
use crate::phones::contract::{DeviceId, ScreenElement};
use async_trait::async_trait;
use bytes::Bytes;
use png::{BitDepth, ColorType, Compression, Encoder};
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use std::fmt;
use std::time::Duration;
use thiserror::Error as ThisError;
use url::Url;

/// Takes pictures of screens and sends input to them. The server drops a picture 1 s after
/// [`Still::WITHIN`], an input after 12 s, a list after 16 s, and each if the one who waits for it
/// leaves.
#[async_trait]
pub trait Screen: Send + Sync {
    /// Takes a picture of the screen as it is now. At most two of a phone are asked for in a
    /// second, one after the other, and only while somebody watches.
    async fn still(&self, id: &DeviceId) -> Result<Still, ScreenError>;

    /// Sends one input. Points lie within the latest picture. Inputs of several people can run at
    /// once, and beside a picture. An input is never stored or logged, and is not repeated after an
    /// error.
    async fn input(&self, id: &DeviceId, input: &ScreenInput) -> Result<(), ScreenError>;

    /// Lists what is on the screen, at most [`ELEMENTS_MAX`] and one more. `None` if it does not
    /// come to rest. Points lie within the latest picture. A password has no label.
    async fn elements(&self, id: &DeviceId) -> Result<Option<Vec<ScreenElement>>, ScreenError>;

    /// Returns true if the phone sleeps.
    async fn sleeps(&self, id: &DeviceId) -> Result<bool, Unreachable>;
}

/// The most elements that an agent gets.
pub const ELEMENTS_MAX: usize = ELEMENTS_MOST as usize;

/// The reason that there is no picture, or that a phone did not take an input.
#[derive(Clone, Debug, ThisError)]
pub enum ScreenError {
    /// The phone did not answer. The outcome of an input may be unknown. The text is for the log
    /// only.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    /// The phone sleeps, and takes no picture.
    #[error("{}", ASLEEP)]
    Asleep,
    /// The phone answers, and takes too long for a picture.
    #[error("{}", SLOW)]
    Slow,
    /// The phone answers, and shows no picture or takes no such input. The text is for people: a
    /// fragment that says why, or what it takes.
    #[error("{0}")]
    Refused(&'static str),
}

const ASLEEP: &str = "the phone sleeps, and takes no picture";
const SLOW: &str = "the phone answers, and takes more than 8 s for a picture";

impl ScreenError {
    /// Returns the reason for people; `None` if the phone did not answer.
    #[must_use]
    pub const fn reason(&self) -> Option<&'static str> {
        match self {
            Self::Unreachable(_) => None,
            Self::Asleep => Some(ASLEEP),
            Self::Slow => Some(SLOW),
            Self::Refused(why) => Some(why),
        }
    }
}

/// The size of a picture in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StillSize {
    /// From left to right.
    pub width: u32,
    /// From top to bottom.
    pub height: u32,
}

/// A picture of a screen: a PNG. Its size is that of its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Still {
    size: StillSize,
    bytes: Bytes,
}

impl Still {
    /// The most bytes of a picture.
    pub const BYTES_MAX: usize = 8 << 20;

    /// The most pixels of each side.
    pub const SIDE_MAX: u32 = 8_192;

    /// The time of a picture, from the question to its last byte.
    pub const WITHIN: Duration = Duration::from_secs(8);

    /// The media type.
    pub const CONTENT_TYPE: &str = "image/png";

    /// Makes a picture of pixels, each of three bytes: red, green and blue.
    ///
    /// # Errors
    /// There are more or fewer pixels than the size has.
    pub fn of_pixels(size: StillSize, pixels: &[u8]) -> Result<Self, ScreenError> {
        let mut bytes = Vec::new();
        let mut encoder = Encoder::new(&mut bytes, size.width, size.height);
        encoder.set_color(ColorType::Rgb);
        encoder.set_depth(BitDepth::Eight);
        encoder.set_compression(Compression::Fast);
        let written = encoder.write_header().and_then(|mut writer| writer.write_image_data(pixels));
        written.map_err(|_| ScreenError::Refused("the pixels of the picture do not fill it"))?;
        Ok(Self { size, bytes: bytes.into() })
    }

    /// Makes a picture from outside. It begins at its signature: some phones print a warning first.
    ///
    /// # Errors
    /// The bytes are no whole PNG, or too many, or the sides are too long.
    pub fn from_outside(bytes: Vec<u8>) -> Result<Self, ScreenError> {
        let refused = |why| Err(ScreenError::Refused(why));
        if bytes.len() > Self::BYTES_MAX {
            return refused("the picture that the phone sends has more than 8 MiB");
        }
        let Some(at) = bytes.windows(PNG.len()).position(|window| window == PNG) else {
            return refused("the phone sends something other than a PNG as its picture");
        };
        let Some(size) = size_of_png(&bytes[at..]) else {
            return refused("the phone sends only a part of its picture");
        };
        if ![size.width, size.height].iter().all(|side| (1..=Self::SIDE_MAX).contains(side)) {
            return refused("a side of the picture that the phone sends has no pixel, or more than 8,192");
        }
        Ok(Self { size, bytes: Bytes::from(bytes).slice(at..) })
    }

    /// Returns the size.
    #[must_use]
    pub fn size(&self) -> StillSize {
        self.size
    }

    /// Returns the bytes.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }
}

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Returns `None` if the picture is not whole. Source: PNG, third edition, sections 5.2 to 5.4 and
/// 11.2.1.
fn size_of_png(bytes: &[u8]) -> Option<StillSize> {
    let chunks = bytes.strip_prefix(PNG)?;
    let (sides, _) = chunks.strip_prefix(b"\0\0\0\x0dIHDR")?.split_first_chunk::<8>()?;
    let mut rest = chunks;
    loop {
        let (&[l1, l2, l3, l4, ref name @ ..], _) = rest.split_first_chunk::<8>()?;
        // The length, the name and the checksum have four bytes each.
        rest = rest.get((u32::from_be_bytes([l1, l2, l3, l4]) as usize).checked_add(12)?..)?;
        if name == b"IEND" {
            let [w1, w2, w3, w4, height @ ..] = *sides;
            let [width, height] = [[w1, w2, w3, w4], height].map(u32::from_be_bytes);
            return Some(StillSize { width, height });
        }
    }
}

/// An input of a person or an agent.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ScreenInput {
    /// A short touch.
    Touch(Point),
    /// A finger that moves in a straight line. Without a distance it is a long touch.
    Swipe {
        /// The first point.
        from: Point,
        /// The last point.
        to: Point,
        /// How long it takes; at most 5,000.
        milliseconds: u16,
    },
    /// A key.
    Key(ScreenKey),
    /// Text for the field that has the focus. A person's typing comes in pieces.
    Text(Typed),
    /// An app or an address to open; only an agent sends it.
    #[serde(skip)]
    Open(OpenTarget),
}

/// The app or the address that a phone is to open. It has neither blanks nor quotes, and is not
/// logged.
#[derive(Clone, PartialEq, Eq)]
pub enum OpenTarget {
    /// The package of an app: names of letters, digits and `_` with dots between them.
    App(String),
    /// An https address, as URLs are serialized.
    Address(String),
}

impl OpenTarget {
    /// Returns `None` if it is neither.
    #[must_use]
    pub fn parse(what: &str) -> Option<Self> {
        let is_name = |name: &str| {
            name.starts_with(|c: char| c.is_ascii_alphabetic())
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        if what.contains('.') && what.split('.').all(is_name) {
            return Some(Self::App(what.to_owned()));
        }
        let url = Url::parse(what).ok().filter(|url| url.scheme() == "https" && url.has_host())?;
        Some(Self::Address(url.to_string().replace('\'', "%27")))
    }
}

/// Does not show the address, because it can have a secret.
impl fmt::Debug for OpenTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[opening]")
    }
}

/// A point of a picture, in pixels from its left and upper edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// From the left edge.
    pub x: u32,
    /// From the upper edge.
    pub y: u32,
}

/// A key of a phone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "most are named as what is printed on them")]
pub enum ScreenKey {
    Back,
    Home,
    Recents,
    Enter,
    Backspace,
    Tab,
    Up,
    Down,
    Left,
    Right,
    /// Wakes a phone that sleeps, and does nothing else.
    Wake,
    Power,
    VolumeUp,
    VolumeDown,
    /// Selects all text of the field that has the focus.
    SelectAll,
}

/// Text that a person typed: 1 to 200 characters, none of them a control character.
#[derive(Clone, PartialEq, Eq)]
pub struct Typed(String);

impl Typed {
    /// The most characters.
    pub const CHARS_MAX: usize = 200;

    /// Returns `None` if the text is empty, too long, or has a control character.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let fits = (1..=Self::CHARS_MAX).contains(&text.chars().count()) && !text.contains(char::is_control);
        fits.then(|| Self(text.to_owned()))
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Does not show the text, because it can be a password.
impl fmt::Debug for Typed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[typed]")
    }
}

impl<'de> Deserialize<'de> for Typed {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::new(&String::deserialize(from)?)
            .ok_or_else(|| D::Error::custom("a text is 1 to 200 characters without control characters"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A picture without pixels, in its order: the head, a chunk of data and the end.
    fn png(width: u32, height: u32) -> Vec<u8> {
        let (head, data) = (b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR", b"\x08\0\0\0\0crc.\0\0\0\x02IDAT..crc.");
        [&head[..], &width.to_be_bytes(), &height.to_be_bytes(), data, b"\0\0\0\0IEND\xaeB`\x82"].concat()
    }

    #[test]
    fn only_a_whole_png_of_some_size_gets_in_from_outside() {
        let large = [png(1, 1), vec![0; Still::BYTES_MAX]].concat();
        for (bytes, expected) in [
            (png(1080, 2400), Some((1080, 2400))),
            (png(Still::SIDE_MAX, 1), Some((8_192, 1))),
            (png(Still::SIDE_MAX + 1, 1), None),
            (png(0, 1), None),
            (b"\xff\xd8\xff\xe0\xff\xff".to_vec(), None),
            (b"\x89PNG\r\n\x1a\n\xff\xff\xff\xffIHDR".to_vec(), None),
            (b"<svg xmlns=\"http://www.w3.org/2000/svg\"><script/></svg>".to_vec(), None),
            (large, None),
            (Vec::new(), None),
        ] {
            let start = format!("{:02x?}", &bytes[..bytes.len().min(24)]);
            let still = Still::from_outside(bytes).ok();
            assert_eq!(still.map(|still| (still.size().width, still.size().height)), expected, "{start}");
        }
    }

    #[test]
    fn a_picture_begins_at_its_signature_and_is_whole_only_with_its_end() {
        let picture = png(3, 4);
        for before in [&b""[..], b"[Warning] Multiple displays were found\n", b"\x89PN\xff\xd8\xfe"] {
            let still = Still::from_outside([before, &picture].concat()).unwrap();
            assert_eq!((&**still.bytes(), still.size()), (&*picture, StillSize { width: 3, height: 4 }));
            for length in 0..picture.len() {
                let half = Still::from_outside([before, &picture[..length]].concat());
                assert!(half.is_err(), "{length} bytes of {picture:02x?}");
            }
        }
    }
}
