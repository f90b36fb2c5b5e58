//! Decodes pictures whole, and makes them smaller for models. It does so on a thread of its own,
//! and for two pictures at a time. Start at [`SizedPicture::of`].

use crate::phones::port::{ScreenError, Still, StillSize};
use bytes::Bytes;
use png::{Decoder, DecodingError, Limits, Transformations};
use std::io::Cursor;
use tokio::sync::Semaphore;

/// Each can take 64 MiB, and about as much again for what is made of it.
static TURNS: Semaphore = Semaphore::const_new(2);

const PIXELS_MAX: u64 = 1 << 24;

/// In base64 they fit into an answer.
const BYTES_MAX: usize = 3_000_000;

const BROKEN: ScreenError = ScreenError::Refused("the picture that the phone sends is broken");

/// A picture that was decoded whole.
pub(crate) struct SizedPicture {
    pub(crate) size: StillSize,
    pub(crate) png: Bytes,
    /// True if each pixel is black.
    pub(crate) is_black: bool,
}

impl SizedPicture {
    /// Decodes a picture, and makes its longer side as long as `longest` if it is longer.
    pub(crate) async fn of(still: Still, longest: u32) -> Result<Self, ScreenError> {
        let turn = TURNS.acquire().await.map_err(|_| ScreenError::Slow)?;
        let decoded = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            decode(still, longest)
        });
        decoded.await.map_err(|_| BROKEN)?
    }
}

/// Returns the size of a picture whose longer side is made as long as `longest`, if it is longer.
pub(crate) fn fit(StillSize { width, height }: StillSize, longest: u32) -> StillSize {
    let most = width.max(height);
    let scale = |side: u32| match most > longest {
        true => (u64::from(side) * u64::from(longest)).div_ceil(u64::from(most)) as u32,
        false => side,
    };
    StillSize { width: scale(width), height: scale(height) }
}

fn decode(still: Still, longest: u32) -> Result<SizedPicture, ScreenError> {
    let StillSize { width, height } = still.size();
    if u64::from(width) * u64::from(height) > PIXELS_MAX {
        return Err(ScreenError::Refused("the picture that the phone sends has more than 16,777,216 pixels"));
    }
    let pixels = read_pixels(&still).map_err(|_| BROKEN)?;
    let is_black = pixels.iter().all(|pixel| *pixel == [0; 3]);
    let mut longest = longest;
    loop {
        let size = fit(still.size(), longest);
        let png = match size == still.size() {
            true => still.bytes().clone(),
            false => Still::of_pixels(size, &shrink(&pixels, still.size(), size))?.bytes().clone(),
        };
        if png.len() <= BYTES_MAX {
            return Ok(SizedPicture { size, png, is_black });
        }
        longest = size.width.max(size.height) * 3 / 4;
    }
}

fn read_pixels(still: &Still) -> Result<Vec<[u8; 3]>, DecodingError> {
    let limits = Limits { bytes: PIXELS_MAX as usize * 8 };
    let mut decoder = Decoder::new_with_limits(Cursor::new(still.bytes()), limits);
    decoder.set_transformations(Transformations::normalize_to_color8());
    let mut reader = decoder.read_info()?;
    let mut bytes = vec![0; reader.output_buffer_size().ok_or(DecodingError::LimitsExceeded)?];
    let info = reader.next_frame(&mut bytes)?;
    reader.finish()?;
    let samples = info.color_type.samples();
    Ok(bytes.chunks_exact(samples).map(|at| if samples < 3 { [at[0]; 3] } else { [at[0], at[1], at[2]] }).collect())
}

/// Each pixel is the mean of those in its place.
fn shrink(pixels: &[[u8; 3]], from: StillSize, to: StillSize) -> Vec<u8> {
    let span = |at: u32, to: u32, from: u32| {
        let edge = |at: u32| (u64::from(at) * u64::from(from) / u64::from(to)) as usize;
        edge(at)..edge(at + 1).max(edge(at) + 1)
    };
    let mut made = Vec::with_capacity(to.width as usize * to.height as usize * 3);
    for y in 0..to.height {
        for x in 0..to.width {
            let (mut sum, mut count) = ([0_u32; 3], 0);
            for row in span(y, to.height, from.height) {
                let first = row * from.width as usize;
                let columns = span(x, to.width, from.width);
                for pixel in &pixels[first + columns.start..first + columns.end] {
                    (0..3).for_each(|n| sum[n] += u32::from(pixel[n]));
                    count += 1;
                }
            }
            made.extend(sum.map(|sum| (sum / count) as u8));
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    fn still(width: u32, height: u32, pixel: impl Fn(u32, u32) -> [u8; 3]) -> Still {
        let pixels: Vec<u8> =
            (0..height).flat_map(|y| (0..width).map(move |x| (x, y))).flat_map(|(x, y)| pixel(x, y)).collect();
        Still::of_pixels(StillSize { width, height }, &pixels).unwrap()
    }

    #[tokio::test]
    async fn a_picture_is_made_as_small_as_asked_and_keeps_its_shape_and_its_colours() {
        let red_above = |_, y| if y < 60 { [200, 0, 0] } else { [0, 0, 100] };
        let frame = SizedPicture::of(still(54, 120, red_above), 60).await.unwrap();
        assert_eq!((frame.size, frame.is_black), (StillSize { width: 27, height: 60 }, false));
        let small = Still::from_outside(frame.png.to_vec()).unwrap();
        let pixels = read_pixels(&small).unwrap();
        assert_eq!((pixels.len(), pixels[0], pixels[27 * 59]), (27 * 60, [200, 0, 0], [0, 0, 100]));
        let whole = still(54, 120, red_above);
        assert_eq!(SizedPicture::of(whole.clone(), 120).await.unwrap().png, whole.bytes());
        assert!(SizedPicture::of(still(9, 9, |_, _| [0; 3]), 9).await.unwrap().is_black);
    }

    /// Noise is not compressed. It fills the upper half of a screen of today's size.
    #[tokio::test]
    async fn a_picture_leaves_room_in_an_answer_however_large_it_is() {
        let (size, mut random) = (StillSize { width: 1_080, height: 2_400 }, toolwarrant_base::random::SplitMix(1));
        let mut pixels: Vec<u8> = (0..1_080 * 1_200 * 3).map(|_| random.below(256) as u8).collect();
        pixels.resize(1_080 * 2_400 * 3, 200);
        let whole = Still::of_pixels(size, &pixels).unwrap();
        assert!(whole.bytes().len() > BYTES_MAX);
        let frame = SizedPicture::of(whole, 2_400).await.unwrap();
        assert!(frame.png.len() <= BYTES_MAX && frame.size.height >= 1_600, "{} {:?}", frame.png.len(), frame.size);
    }

    #[tokio::test]
    async fn a_torn_picture_and_a_bomb_are_refused() {
        let whole = still(16, 16, |x, y| [x as u8, y as u8, 7]).bytes().to_vec();
        for at in 33..whole.len() - 12 {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            if let Ok(torn) = Still::from_outside(bytes) {
                assert!(SizedPicture::of(torn, 16).await.is_err(), "byte {at}");
            }
        }
        let mut bomb = whole.clone();
        bomb[16..24].copy_from_slice(&[0, 0, 32, 0, 0, 0, 8, 1]);
        let bomb = Still::from_outside(bomb).unwrap();
        assert_eq!(bomb.size(), StillSize { width: 8_192, height: 2_049 });
        let why = SizedPicture::of(bomb, 1_024).await.err().and_then(|error| error.reason()).unwrap();
        assert!(why.contains("pixels"), "{why}");
    }
}
