//! The bytes of the adb server's protocol. Whatever a server or a phone sends, the result is a
//! value or an error, and memory stays bounded.

use crate::phones::port::Unreachable;
use bytes::{Buf, BytesMut};
use serde::{Deserialize, Serialize};
use std::fmt;

/// In bytes. A service that is longer than the packets of a phone ends the server, for all phones.
const SERVICE_MAX: usize = 4_000;

const SERIAL_MAX: usize = 128;

/// In bytes, frames included: what a command may print, unless it takes a picture.
pub(super) const STREAM_MAX: usize = 64 << 10;

const HEAD: usize = 5;

pub(super) fn encode_request(service: &str) -> Result<Vec<u8>, Unreachable> {
    match service.len() {
        length @ 1..=SERVICE_MAX => Ok(format!("{length:04x}{service}").into_bytes()),
        length => Err(Unreachable(format!("a service of {length} bytes is never sent to an adb server").into())),
    }
}

pub(super) fn parse_length(digits: &[u8]) -> Option<usize> {
    digits.iter().try_fold(0, |length, digit| Some(length * 16 + char::from(*digit).to_digit(16)? as usize))
}

/// A serial, or `usb:` and a USB path. An empty serial would select any phone, and `model:X` all of
/// a model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Box<str>", into = "Box<str>")]
pub(super) struct PhoneAddress(Box<str>);

impl PhoneAddress {
    pub(super) fn of_serial(serial: &str) -> Option<Self> {
        let selects_others = ["usb:", "product:", "model:", "device:"].iter().any(|word| serial.starts_with(word));
        (!selects_others && is_plain(serial)).then(|| Self(serial.into()))
    }

    pub(super) fn of_usb_path(path: &str) -> Option<Self> {
        is_plain(path).then(|| Self(format!("usb:{path}").into()))
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        text.strip_prefix("usb:").map_or_else(|| Self::of_serial(text), Self::of_usb_path)
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<Box<str>> for PhoneAddress {
    type Error = &'static str;

    fn try_from(text: Box<str>) -> Result<Self, &'static str> {
        Self::parse(&text).ok_or("it is no address of a phone")
    }
}

impl From<PhoneAddress> for Box<str> {
    fn from(address: PhoneAddress) -> Self {
        address.0
    }
}

impl fmt::Display for PhoneAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns true for a text that means itself as an argument of a program. A text in brackets stands
/// for a missing serial.
fn is_plain(text: &str) -> bool {
    // An operator's program may pass it on to a shell. A `*` stands for any rest in a pattern.
    let is_special = |byte: u8| b"*;&|<>$`'\"\\!~{}?^".contains(&byte);
    let admits = |byte: u8| (byte.is_ascii_graphic() && !is_special(byte)) || byte == b' ';
    let begins = |byte: &u8| !b"-( ".contains(byte);
    let bytes = text.as_bytes();
    (1..=SERIAL_MAX).contains(&text.len()) && text.bytes().all(admits) && bytes.first().is_some_and(begins)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ShellFrame {
    /// Standard output.
    Output(Vec<u8>),
    Exit(u8),
    /// Standard error, or a kind that does not matter.
    Other,
}

#[derive(Debug)]
pub(super) struct FrameDecoder {
    pending: BytesMut,
    /// The bytes that may still come.
    left: usize,
}

impl FrameDecoder {
    pub(super) fn of_at_most(bound: usize) -> Self {
        Self { pending: BytesMut::new(), left: bound }
    }

    pub(super) fn feed(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    pub(super) fn next_frame(&mut self) -> Result<Option<ShellFrame>, Unreachable> {
        let head = self.pending.split_first_chunk::<HEAD>();
        let Some((&[kind, ref length @ ..], rest)) = head else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        let left = self.left.checked_sub(length.saturating_add(HEAD));
        let left = left.ok_or_else(|| Unreachable("a command on the phone prints too much".into()))?;
        let Some(data) = rest.get(..length) else { return Ok(None) };
        let frame = match (kind, data) {
            (1, data) => ShellFrame::Output(data.to_vec()),
            (3, [status]) => ShellFrame::Exit(*status),
            (3, _) => return Err(Unreachable("the phone sends an exit status that is none".into())),
            _ => ShellFrame::Other,
        };
        self.pending.advance(HEAD + length);
        self.left = left;
        Ok(Some(frame))
    }
}

pub(super) fn encode_input(data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len()).unwrap_or(u32::MAX).to_le_bytes();
    [&[0], &length[..], data].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_length_is_four_digits_and_no_service_is_made_that_is_empty_or_could_end_the_server() {
        for (digits, length) in [(b"000c", Some(12)), (b"FFff", Some(0xffff)), (b"+00c", None), (b" 00c", None)] {
            assert_eq!(parse_length(digits), length);
        }
        assert_eq!(encode_request("host:version").unwrap(), b"000chost:version");
        assert_eq!(encode_request(&"x".repeat(SERVICE_MAX)).unwrap().len(), 4 + SERVICE_MAX);
        assert!(encode_request("").is_err() && encode_request(&"x".repeat(SERVICE_MAX + 1)).is_err());
    }

    #[test]
    fn an_address_selects_one_phone() {
        for text in [
            "emulator-5554",
            "127.0.0.1:5555",
            "[fe80::1%eth0]:5555",
            "usb:1-1.2",
            "adb-X (2)._adb-tls-connect._tcp",
            "a#+/@b",
        ] {
            assert_eq!(PhoneAddress::parse(text).map(|address| address.to_string()).as_deref(), Some(text));
        }
        for text in [
            "",
            "usb:",
            "model:Pixel",
            "product:x",
            "device:y",
            " a",
            "a\n",
            "x;reboot",
            "x$(id)",
            "usb:model:é",
            "-e",
            "(none)",
        ] {
            assert_eq!(PhoneAddress::parse(text), None, "{text}");
        }
        assert_eq!(PhoneAddress::of_serial("usb:1-1"), None, "the list names a path elsewhere");
    }

    #[test]
    fn frames_are_found_wherever_the_stream_is_cut_and_a_status_is_one_byte() {
        let stream = [b"\x01\x02\0\0\0ok".as_slice(), b"\x02\x01\0\0\0!", b"\x03\x01\0\0\0\x2b"].concat();
        for cut in 0..stream.len() {
            let (mut decoder, mut frames) = (FrameDecoder::of_at_most(STREAM_MAX), Vec::new());
            for part in [&stream[..cut], &stream[cut..]] {
                decoder.feed(part);
                while let Some(frame) = decoder.next_frame().unwrap() {
                    frames.push(frame);
                }
            }
            assert_eq!(frames, [ShellFrame::Output(b"ok".to_vec()), ShellFrame::Other, ShellFrame::Exit(43)]);
        }
        for status in [b"\x03\0\0\0\0".as_slice(), b"\x03\x02\0\0\0\0\0"] {
            let mut decoder = FrameDecoder::of_at_most(STREAM_MAX);
            decoder.feed(status);
            assert!(decoder.next_frame().is_err());
        }
        assert_eq!(encode_input(b"go\n"), b"\0\x03\0\0\0go\n");
    }

    #[test]
    fn the_bound_of_a_stream_is_that_of_the_call_and_counts_whole_frames() {
        for (bound, is_taken) in [(2 * HEAD + 2, true), (2 * HEAD + 1, false)] {
            let mut decoder = FrameDecoder::of_at_most(bound);
            decoder.feed(b"\x01\x01\0\0\0a\x01\x01\0\0\0b");
            assert_eq!(decoder.next_frame().unwrap(), Some(ShellFrame::Output(b"a".to_vec())));
            assert_eq!(decoder.next_frame().is_ok(), is_taken);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_bytes_of_a_phone_panic_or_take_more_than_their_share_of_memory(
            chunks in proptest::collection::vec(proptest::collection::vec(0_u8..6, 0..64), 0..64),
        ) {
            let (mut decoder, mut total) = (FrameDecoder::of_at_most(STREAM_MAX), 0);
            'all: for chunk in chunks {
                decoder.feed(&chunk);
                loop {
                    match decoder.next_frame() {
                        Err(_) => break 'all,
                        Ok(None) => break,
                        Ok(Some(ShellFrame::Output(data))) => total += data.len(),
                        Ok(Some(_)) => {}
                    }
                }
                prop_assert!(decoder.pending.len() <= STREAM_MAX + HEAD && total <= STREAM_MAX);
            }
        }
    }
}
