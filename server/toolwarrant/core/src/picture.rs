//! Pictures in results: PNG or JPEG, which were decoded whole.
//!
//! Hosts pass a picture on to a model, and a broken one can end a conversation. So only
//! [`Picture::read`] makes one.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use png::Limits;
use serde::{Serialize, Serializer};
use std::fmt;
use std::io::Cursor;
use std::sync::Arc;
use tokio::sync::Semaphore;
use toolwarrant_base::text::Remark;
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::options::DecoderOptions;

/// In base64 they leave room in an answer of 4 MiB, the most that clients of the framework take.
const MAX_BYTES: usize = 3_000_000;

/// Models take no more.
const MAX_SIDE: usize = 8_000;

/// A decoded JPEG of this size takes 48 MiB.
const MAX_PIXELS: usize = 1 << 24;

/// A row of a PNG has up to 8 bytes a pixel.
const PNG_LIMITS: Limits = Limits { bytes: 8 * MAX_SIDE * 16 };

/// Each takes a thread and memory.
static TURNS: Semaphore = Semaphore::const_new(2);

/// A picture that a model can see.
#[derive(Clone, PartialEq, Eq)]
pub struct Picture {
    base64: Arc<str>,
}

impl Picture {
    /// Decodes a PNG or a JPEG on a thread of its own, and waits for a turn before that.
    ///
    /// # Errors
    /// It is neither, it is broken, or it has more than 3,000,000 bytes, 8,000 pixels on a side or
    /// 16,777,216 in all. The reason is for the log alone.
    pub async fn read(bytes: impl Into<Vec<u8>>) -> Result<Self, Remark> {
        let bytes = bytes.into();
        if bytes.len() > MAX_BYTES {
            return Err(format!("the picture has {} bytes, and at most {MAX_BYTES} leave", bytes.len()).into());
        }
        let turn = TURNS.acquire().await.map_err(|_| "nothing decodes pictures any more")?;
        let decoded = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            decode(&bytes).map(|()| STANDARD.encode(&bytes))
        });
        let base64 = decoded.await.map_err(|_| "the decoder of pictures panicked")??;
        Ok(Self { base64: base64.into() })
    }
}

fn decode(bytes: &[u8]) -> Result<(), Remark> {
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        decode_png(bytes)
    } else if bytes.starts_with(b"\xff\xd8\xff") {
        decode_jpeg(bytes)
    } else {
        Err("the picture is neither PNG nor JPEG".into())
    }
}

/// Keeps one row at a time.
fn decode_png(bytes: &[u8]) -> Result<(), Remark> {
    let broken = |error: png::DecodingError| Remark::from(format!("the PNG is broken: {error}"));
    let decoder = png::Decoder::new_with_limits(Cursor::new(bytes), PNG_LIMITS);
    let mut reader = decoder.read_info().map_err(broken)?;
    let (width, height) = reader.info().size();
    check_size(width as usize, height as usize)?;
    while reader.next_row().map_err(broken)?.is_some() {}
    reader.finish().map_err(broken)
}

fn decode_jpeg(bytes: &[u8]) -> Result<(), Remark> {
    let broken = |error| Remark::from(format!("the JPEG is broken: {error:?}"));
    let options = DecoderOptions::new_safe().set_strict_mode(true).set_max_width(MAX_SIDE).set_max_height(MAX_SIDE);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().map_err(broken)?;
    let (width, height) = decoder.dimensions().unwrap_or_default();
    check_size(width, height)?;
    decoder.decode().map_err(broken)?;
    // The decoder fills in what a torn file lacks at its end.
    if bytes.ends_with(b"\xff\xd9") { Ok(()) } else { Err("the JPEG has no end".into()) }
}

fn check_size(width: usize, height: usize) -> Result<(), Remark> {
    let fits = width <= MAX_SIDE && height <= MAX_SIDE && width * height <= MAX_PIXELS;
    if fits { Ok(()) } else { Err(format!("the picture has {width} x {height} pixels, which is too many").into()) }
}

/// Takes a picture as a JSON string, and returns its media type.
pub(super) fn media_type(json: &str) -> &'static str {
    // The signature of PNG in base64.
    if json.starts_with("\"iVBORw0KGgo") { "image/png" } else { "image/jpeg" }
}

impl Serialize for Picture {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.base64)
    }
}

impl fmt::Debug for Picture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a picture of {} characters", self.base64.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 16 x 16 pixels, baseline and progressive.
    const JPEGS: [&str; 2] = [
        "/9j/4AAQSkZJRgABAgAAAQABAAD/2wBDACgcHiMeGSgjISMtKygwPGRBPDc3PHtYXUlkkYCZlo+AjIqgtObDoKrarYqMyP/L2u71////m8H////6/+b9//j/wAALCAAQABABAREA/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoL/8QAtRAAAgEDAwIEAwUFBAQAAAF9AQIDAAQRBRIhMUEGE1FhByJxFDKBkaEII0KxwRVS0fAkM2JyggkKFhcYGRolJicoKSo0NTY3ODk6Q0RFRkdISUpTVFVWV1hZWmNkZWZnaGlqc3R1dnd4eXqDhIWGh4iJipKTlJWWl5iZmqKjpKWmp6ipqrKztLW2t7i5usLDxMXGx8jJytLT1NXW19jZ2uHi4+Tl5ufo6erx8vP09fb3+Pn6/9oACAEBAAA/AKFr2rYte1Y9r2rYte1f/9k=",
        "/9j/4AAQSkZJRgABAgAAAQABAAD/2wBDACgcHiMeGSgjISMtKygwPGRBPDc3PHtYXUlkkYCZlo+AjIqgtObDoKrarYqMyP/L2u71////m8H////6/+b9//j/wgALCAAQABABAREA/8QAFAABAAAAAAAAAAAAAAAAAAAABP/aAAgBAQAAAAE7Bs//xAAVEAEBAAAAAAAAAAAAAAAAAAAAAv/aAAgBAQABBQKUpS//xAAUEAEAAAAAAAAAAAAAAAAAAAAg/9oACAEBAAY/Ah//xAAUEAEAAAAAAAAAAAAAAAAAAAAg/9oACAEBAAE/IR//2gAIAQEAAAAQ/wD/xAAVEAEBAAAAAAAAAAAAAAAAAAAAQf/aAAgBAQABPxCEIQ//2Q==",
    ];

    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, width, height);
        encoder.set_depth(png::BitDepth::One);
        let rows = vec![0x5a; width.div_ceil(8) as usize * height as usize];
        encoder.write_header().unwrap().write_image_data(&rows).unwrap();
        bytes
    }

    fn jpegs() -> [Vec<u8>; 2] {
        JPEGS.map(|jpeg| STANDARD.decode(jpeg).unwrap())
    }

    #[tokio::test]
    async fn a_whole_picture_is_sent_and_one_that_is_cut_anywhere_is_not() {
        for (bytes, media) in [png(16, 16)].into_iter().chain(jpegs()).zip(["image/png", "image/jpeg", "image/jpeg"]) {
            let json = serde_json::to_string(&Picture::read(&*bytes).await.unwrap()).unwrap();
            assert_eq!((json.clone(), media_type(&json)), (format!("{:?}", STANDARD.encode(&bytes)), media));
            for length in 0..bytes.len() {
                assert!(Picture::read(&bytes[..length]).await.is_err(), "{media}: {length} of {} bytes", bytes.len());
            }
        }
    }

    #[tokio::test]
    async fn a_changed_byte_of_a_png_and_another_format_are_refused() {
        let whole = png(16, 16);
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            assert!(Picture::read(bytes).await.is_err(), "byte {at}");
        }
        for other in [&b""[..], b"GIF89a", b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"RIFF\0\0\0\0WEBP"] {
            assert!(Picture::read(other).await.unwrap_err().as_str().contains("neither PNG nor JPEG"));
        }
    }

    /// A few bytes can say that they are a gigabyte of pixels.
    #[tokio::test]
    async fn a_picture_with_too_many_bytes_or_pixels_is_refused_before_it_is_decoded() {
        for (width, height) in [(8_001, 1), (1, 8_001), (4_097, 4_096)] {
            let refused = Picture::read(png(width, height)).await.unwrap_err();
            assert!(refused.as_str().contains("too many"), "{refused:?}");
        }
        Picture::read(png(8_000, 2_097)).await.unwrap();
        let [mut large, _] = jpegs();
        let size = large.windows(2).position(|marker| marker == [0xff, 0xc0]).unwrap() + 5;
        for sides in [[0xff; 4], [0x1f, 0x40, 0x1f, 0x40]] {
            large[size..size + 4].copy_from_slice(&sides);
            let refused = Picture::read(&*large).await.unwrap_err();
            assert!(refused.as_str().contains("too many") || refused.as_str().contains("8000"), "{refused:?}");
        }
        assert!(Picture::read(vec![0xff; MAX_BYTES + 1]).await.unwrap_err().as_str().contains("at most 3000000"));
    }
}
