//! The screen of a phone: `screencap -p` prints a picture, and `input` tells the double what it was
//! given.

use super::phone::{Failure, Phone};
use crate::display::{Display, ScreenFault, ScreenTold};
use crate::net;
use serde_json::json;
use std::io::{self, Write as _};
use std::time::Duration;

pub(super) async fn screencap(phone: &Phone, arguments: &[String]) -> Result<(), Failure> {
    if arguments != ["-p"] {
        return Err(Failure::new(1, "usage: screencap [-ahp] [-d display-id] [FILENAME]"));
    }
    let ScreenTold { count, shown, .. } = tell(phone, "screencap", arguments).await?;
    let Display { width, height, bytes, fault } = &phone.display;
    let (sides, fault) = ((*width, *height), *fault);
    let is_black = fault == Some(ScreenFault::Black);
    let picture = png(sides, *bytes, |x, y| if is_black { 0 } else { shown.draw((x, y), sides) });
    let printed = match fault {
        Some(ScreenFault::Asleep) => return Err(Failure::new(1, "Capturing failed.")),
        Some(ScreenFault::Missing) => return Err(Failure::new(127, "/bin/sh: screencap: inaccessible or not found")),
        Some(ScreenFault::NoPicture) => b"Error: failed to take a screenshot\n".to_vec(),
        Some(ScreenFault::Silent) => std::future::pending().await,
        Some(ScreenFault::Half) => picture[..picture.len() / 2].to_vec(),
        Some(ScreenFault::Preceded) => [b"[Warning] Multiple displays were found\n", &*picture].concat(),
        Some(ScreenFault::Turns) if count.is_multiple_of(2) => {
            png((*height, *width), *bytes, |x, y| shown.draw((x, y), (*height, *width)))
        }
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

/// Draws shades of grey, and fills the picture up to `bytes` with a chunk of zeros. Source: PNG,
/// third edition, sections 5.3, 11.2 and Annex D; RFC 1950 and RFC 1951, section 3.2.4.
fn png((width, height): (u32, u32), bytes: usize, shade: impl Fn(u32, u32) -> u8) -> Vec<u8> {
    let shade = &shade;
    let row = |y: u32| std::iter::once(0).chain((0..width).map(move |x| shade(x, y)));
    let rows: Vec<u8> = (0..height).flat_map(row).collect();
    let blocks = rows.chunks(usize::from(u16::MAX));
    let (count, mut data) = (blocks.len(), vec![0x78, 0x01]);
    for (at, block) in blocks.enumerate() {
        let length = u16::try_from(block.len()).unwrap_or(u16::MAX);
        data.push(u8::from(at + 1 == count));
        data.extend([length.to_le_bytes(), (!length).to_le_bytes()].concat());
        data.extend(block);
    }
    let (low, high) = rows.iter().fold((1, 0), |(low, high), byte| {
        let low = (low + u32::from(*byte)) % 65_521;
        (low, (high + low) % 65_521)
    });
    data.extend((high << 16 | low).to_be_bytes());
    // Eight bits of grey.
    let head = [&width.to_be_bytes()[..], &height.to_be_bytes(), &[8, 0, 0, 0, 0]].concat();
    // The signature, and the length, name and checksum of four chunks, have 56 bytes.
    let fill = vec![0; bytes.saturating_sub(56 + head.len() + data.len())];
    let parts = [(b"IHDR", head), (b"IDAT", data), (b"fiLl", fill), (b"IEND", Vec::new())];
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    for (name, data) in parts {
        let body = [&name[..], &data].concat();
        png.extend(u32::try_from(data.len()).unwrap_or(u32::MAX).to_be_bytes());
        png.extend(&body);
        png.extend(crc(&body).to_be_bytes());
    }
    png
}

fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 })
    })
}
