//! The screen of a phone: pictures of it, and input for it.

use super::unreachable::{Query, Unreachable};
use crate::phones::contract::DeviceId;
use bytes::Bytes;
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use thiserror::Error as ThisError;
use toolwarrant::BoxFuture;

/// Takes pictures of screens and sends input to them. The server drops a picture after 8 s, an
/// input after 12 s, and either if the one who waits for it leaves.
pub trait Screen: Send + Sync {
    /// Takes a picture of the screen as it is now. At most two of a phone are asked for in a
    /// second, one after the other, and only while somebody watches.
    fn still<'a>(&'a self, id: &'a DeviceId) -> Query<'a, Still>;

    /// Sends one input. Points lie within the latest picture. Inputs of several people can run at
    /// once, and beside a picture. An input is never stored or logged, and is not repeated after an
    /// error.
    fn input<'a>(&'a self, id: &'a DeviceId, input: &'a ScreenInput) -> BoxFuture<'a, Result<(), InputError>>;
}

/// The reason that a phone did not take an input.
#[derive(Clone, Debug, ThisError)]
pub enum InputError {
    /// The outcome may be unknown. The text is for the log only.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    /// The phone takes no such input. The text is for people: a fragment that says what it takes.
    #[error("{0}")]
    Refused(&'static str),
}

/// The kind of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StillKind {
    /// A drawing of this program.
    Svg,
    /// A picture from outside.
    Png,
    /// A picture from outside.
    Jpeg,
}

impl StillKind {
    /// Returns the media type.
    #[must_use]
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Svg => "image/svg+xml",
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
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

/// A picture of a screen. Its kind and size are those of its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Still {
    kind: StillKind,
    size: StillSize,
    bytes: Bytes,
}

impl Still {
    /// The most bytes of a picture.
    pub const BYTES_MAX: usize = 8 << 20;

    /// The most pixels of each side.
    pub const SIDE_MAX: u32 = 8_192;

    /// Makes a picture from a drawing of this program, which escapes all text from outside.
    #[must_use]
    pub fn svg(drawing: String, size: StillSize) -> Self {
        Self { kind: StillKind::Svg, size, bytes: drawing.into() }
    }

    /// Makes a picture from outside. Only its head is read, so it may not be whole.
    ///
    /// # Errors
    /// The bytes are no PNG or JPEG, or too many, or the sides are too long.
    pub fn from_outside(bytes: Vec<u8>) -> Result<Self, Unreachable> {
        let refused = |why: &str| Unreachable(format!("the picture of the screen {why}").into());
        if bytes.len() > Self::BYTES_MAX {
            return Err(refused("has too many bytes"));
        }
        let (kind, size) = match size_of_png(&bytes) {
            Some(size) => (StillKind::Png, size),
            None => (StillKind::Jpeg, size_of_jpeg(&bytes).ok_or_else(|| refused("is no PNG or JPEG"))?),
        };
        let is_sound = |side| (1..=Self::SIDE_MAX).contains(&side);
        if !is_sound(size.width) || !is_sound(size.height) {
            return Err(refused("has a side that is too long, or none"));
        }
        Ok(Self { kind, size, bytes: bytes.into() })
    }

    /// Returns the kind.
    #[must_use]
    pub fn kind(&self) -> StillKind {
        self.kind
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

/// Source: PNG, third edition, sections 5.2 and 11.2.1.
fn size_of_png(bytes: &[u8]) -> Option<StillSize> {
    let rest = bytes.strip_prefix(b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR")?;
    let (width, rest) = rest.split_first_chunk()?;
    let (height, _) = rest.split_first_chunk()?;
    Some(StillSize { width: u32::from_be_bytes(*width), height: u32::from_be_bytes(*height) })
}

/// Source: ITU-T T.81, sections B.1.1.4 and B.2.2. Segments before the frame are skipped.
fn size_of_jpeg(bytes: &[u8]) -> Option<StillSize> {
    let mut rest = bytes.strip_prefix(b"\xff\xd8")?;
    loop {
        let (&[0xff, marker, high, low], _) = rest.split_first_chunk()? else { return None };
        let length = usize::from(u16::from_be_bytes([high, low]));
        // All frames but the markers of tables, arithmetic coding and extensions among them.
        if matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc) {
            let (&[_, h1, h2, w1, w2], _) = rest.get(4..)?.split_first_chunk()?;
            let [width, height] = [[w1, w2], [h1, h2]].map(|side| u16::from_be_bytes(side).into());
            return Some(StillSize { width, height });
        }
        rest = rest.get(2 + length.max(2)..)?;
    }
}

/// An input of a person.
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
#[expect(missing_docs, reason = "each is named as what is printed on it")]
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
}

/// Text that a person typed: 1 to 200 characters, none of them a control character.
#[derive(Clone, PartialEq, Eq)]
pub struct Typed(String);

impl Typed {
    /// The most characters.
    pub const CHARS_MAX: usize = 200;

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Does not show the text, because it can be a password.
impl std::fmt::Debug for Typed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[typed]")
    }
}

impl<'de> Deserialize<'de> for Typed {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        match (1..=Self::CHARS_MAX).contains(&text.chars().count()) && !text.contains(char::is_control) {
            true => Ok(Self(text)),
            false => Err(D::Error::custom("a text is 1 to 200 characters without control characters")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_png_or_jpeg_of_some_size_gets_in_from_outside() {
        let png = |width: u32, height: u32| {
            [&b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR"[..], &width.to_be_bytes(), &height.to_be_bytes(), b"\x08"].concat()
        };
        let jpeg = |sides: &[u8]| {
            // A segment of an application, a table, and a progressive frame of three colours.
            [&b"\xff\xd8\xff\xe0\0\x04ab\xff\xdb\0\x03\0\xff\xc2\0\x11\x08"[..], sides, b"\x03"].concat()
        };
        let large = [png(1, 1), vec![0; Still::BYTES_MAX]].concat();
        for (bytes, expected) in [
            (png(1080, 2400), Some((StillKind::Png, 1080, 2400))),
            (jpeg(b"\x09\x60\x04\x38"), Some((StillKind::Jpeg, 1080, 2400))),
            (png(Still::SIDE_MAX, 1), Some((StillKind::Png, 8_192, 1))),
            (png(Still::SIDE_MAX + 1, 1), None),
            (png(0, 1), None),
            (jpeg(b"\0\0\0\x01"), None),
            (png(1, 1)[..20].to_vec(), None),
            (jpeg(b"\x09\x60")[..20].to_vec(), None),
            (b"\xff\xd8\xff\xe0\xff\xff".to_vec(), None),
            (b"<svg xmlns=\"http://www.w3.org/2000/svg\"><script/></svg>".to_vec(), None),
            (large, None),
            (Vec::new(), None),
        ] {
            let start = format!("{:02x?}", &bytes[..bytes.len().min(24)]);
            let still = Still::from_outside(bytes).ok();
            assert_eq!(still.map(|still| (still.kind(), still.size().width, still.size().height)), expected, "{start}");
        }
    }
}
