//! The screen of a phone: `screencap -p` prints a picture, and `input` tells the double what it was
//! given.

use super::phone::{Failure, Phone};
use crate::display::{Display, ScreenFault, ScreenTold};
use crate::net;
use png::chunk::ChunkType;
use png::{ColorType, Compression, Encoder, EncodingError};
use serde_json::json;
use std::io::{self, Write as _};
use std::time::Duration;

pub(super) async fn screencap(phone: &Phone, arguments: &[String]) -> Result<(), Failure> {
    if arguments != ["-p"] {
        return Err(Failure::new(1, "usage: screencap [-ahp] [-d display-id] [FILENAME]"));
    }
    let ScreenTold { count, shown, .. } = tell(phone, "screencap", arguments).await?;
    let Display { width, height, bytes, fault } = &phone.display;
    let fault = *fault;
    let is_black = fault == Some(ScreenFault::Black);
    let draw = |sides: (u32, u32)| png(sides, *bytes, |x, y| if is_black { 0 } else { shown.draw((x, y), sides) });
    let turns = fault == Some(ScreenFault::Turns) && count.is_multiple_of(2);
    let picture = draw(if turns { (*height, *width) } else { (*width, *height) });
    let picture = picture.map_err(|error| Failure::new(1, error.to_string()))?;
    let printed = match fault {
        Some(ScreenFault::Asleep) => return Err(Failure::new(1, "Capturing failed.")),
        Some(ScreenFault::Missing) => return Err(Failure::new(127, "/bin/sh: screencap: inaccessible or not found")),
        Some(ScreenFault::NoPicture) => b"Error: failed to take a screenshot\n".to_vec(),
        Some(ScreenFault::Silent) => std::future::pending().await,
        Some(ScreenFault::Half) => picture[..picture.len() / 2].to_vec(),
        Some(ScreenFault::Preceded) => [b"[Warning] Multiple displays were found\n", &*picture].concat(),
        _ => picture,
    };
    if fault == Some(ScreenFault::Slow) {
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    let mut stdout = io::stdout().lock();
    // The reader may have closed the pipe.
    let mut written = stdout.write_all(&printed);
    while fault == Some(ScreenFault::Endless) && written.is_ok() {
        written = stdout.write_all(&[0; 4 << 10]);
    }
    Ok(())
}

/// Prints of its report the lines of sleep.
pub(super) fn dumpsys(phone: &Phone, arguments: &[String]) -> Result<(), Failure> {
    if arguments != ["power"] {
        return Err(Failure::new(20, "Can't find service"));
    }
    let state = if phone.display.fault == Some(ScreenFault::Asleep) { "Asleep" } else { "Awake" };
    println!("Power Manager State:\n  mWakefulness={state}\n  mWakefulnessChanging=false");
    Ok(())
}

/// Returns the error status of the real one, whose usage is longer.
pub(super) async fn input(phone: &Phone, arguments: &[String]) -> Result<(), Failure> {
    let is_known = match arguments {
        [command, text] if command == "text" => text.is_ascii() && !text.is_empty(),
        [command, numbers @ ..] => {
            let count = match command.as_str() {
                "tap" => 2,
                "swipe" => 5,
                "keyevent" => 1,
                "keycombination" => 2,
                _ => 0,
            };
            numbers.len() == count && numbers.iter().all(|number| number.parse::<u32>().is_ok())
        }
        [] => false,
    };
    if !is_known {
        return Err(Failure::new(255, "Usage: input [<source>] tap|swipe|keyevent|keycombination|text"));
    }
    tell(phone, "input", arguments).await.map(drop)
}

/// Prints of the real reports the words by which a caller knows a failure.
pub(super) async fn open(phone: &Phone, name: &str, arguments: &[String]) -> Result<(), Failure> {
    match (tell(phone, name, arguments).await?.is_done, name) {
        (true, _) => Ok(()),
        (false, "am") => {
            println!("Error: Activity not started, unable to resolve Intent");
            Ok(())
        }
        (false, _) => Err(Failure::new(252, "** No activities found to run, monkey aborted.")),
    }
}

pub(super) async fn list(phone: &Phone, arguments: &[String]) -> Result<(), Failure> {
    let [dump, file] = arguments else { return Err(Failure::new(1, "usage: uiautomator dump FILE")) };
    let ScreenTold { is_moving, list, .. } = tell(phone, "uiautomator", std::slice::from_ref(dump)).await?;
    if is_moving {
        return Err(Failure::new(1, "ERROR: could not get idle state."));
    }
    std::fs::write(file, list).map_err(|error| Failure::new(1, format!("{file}: {error}")))
}

async fn tell(phone: &Phone, operation: &str, arguments: &[String]) -> Result<ScreenTold, Failure> {
    let (path, arguments) = (format!("pads/{}/screen/{operation}", phone.pad), json!(arguments).to_string());
    net::post(&phone.control, &path, &arguments)
        .await
        .map_err(|error: io::Error| Failure::new(1, format!("{operation}: {error}")))
}

/// Draws shades of grey, and fills the picture up to `bytes` with a chunk of zeros.
fn png((width, height): (u32, u32), bytes: usize, shade: impl Fn(u32, u32) -> u8) -> Result<Vec<u8>, EncodingError> {
    const HEAD_AND_CHECKSUM: usize = 12;
    let shade = &shade;
    let pixels: Vec<u8> = (0..height).flat_map(|y| (0..width).map(move |x| shade(x, y))).collect();
    let draw = |fill: Option<usize>| {
        let mut drawn = Vec::new();
        let mut encoder = Encoder::new(&mut drawn, width, height);
        encoder.set_color(ColorType::Grayscale);
        encoder.set_compression(Compression::NoCompression);
        let mut writer = encoder.write_header()?;
        fill.map_or(Ok(()), |fill| writer.write_chunk(ChunkType(*b"fiLl"), &vec![0; fill]))?;
        writer.write_image_data(&pixels)?;
        writer.finish()?;
        Ok(drawn)
    };
    let plain = draw(None)?;
    match bytes.checked_sub(plain.len() + HEAD_AND_CHECKSUM) {
        Some(fill) => draw(Some(fill)),
        None => Ok(plain),
    }
}
