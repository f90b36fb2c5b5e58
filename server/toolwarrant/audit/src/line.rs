//! The line of one call. Start at [`LineEncoder::write`], which writes what the derived `Serialize`
//! defines into a buffer that already exists.

use serde::Serialize;
use serde_json::value::RawValue;
use std::net::IpAddr;
use toolwarrant_base::clock::Timestamp;

pub(crate) const DAY_MILLIS: u64 = 24 * 60 * 60 * 1000;

/// In bytes. A longer line is written without its arguments.
const LINE_MAX: usize = 8 << 10;

const USUAL_LINE: usize = 512;

/// 9999-01-01T00:00:00Z. Later times are written with the `Display` of [`Timestamp`].
const YEAR_9999: u64 = 253_370_764_800_000;

#[derive(Clone, Copy, Debug, Serialize)]
pub struct Line<'a> {
    /// The time when the call arrived. Its UTC day names the file.
    pub time: Timestamp,
    pub request_id: &'a str,
    pub application: &'a str,
    pub key_id: &'a str,
    pub tool: &'a str,
    pub target: Option<&'a str>,
    /// JSON without secrets. If the arguments were refused, only their names.
    pub arguments: Option<&'a RawValue>,
    /// `ok`, an error code, or `cancelled` if the client disconnected.
    pub outcome: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<&'a str>,
    /// As the edge believes it; `None` if it is not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<IpAddr>,
    /// Above one only for refused calls.
    #[serde(skip_serializing_if = "is_one")]
    pub calls: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(calls: &u64) -> bool {
    *calls == 1
}

#[derive(Debug, Default)]
pub(super) struct LineEncoder {
    day: u64,
    date: String,
}

impl LineEncoder {
    pub(super) fn write(&mut self, line: &Line<'_>, text: &mut Vec<u8>) {
        let Line { time, request_id, application, key_id, tool, target, arguments, outcome, task_id, from, calls } =
            *line;
        let arguments = arguments.filter(|raw| raw.get().len() <= LINE_MAX);
        let start = text.len();
        text.reserve(USUAL_LINE);
        text.extend_from_slice(b"{\"time\":\"");
        self.time(time, text);
        text.extend_from_slice(b"\",\"request_id\":\"");
        string(request_id, text);
        text.extend_from_slice(b"\",\"application\":\"");
        string(application, text);
        text.extend_from_slice(b"\",\"key_id\":\"");
        string(key_id, text);
        text.extend_from_slice(b"\",\"tool\":\"");
        string(tool, text);
        match target {
            Some(target) => {
                text.extend_from_slice(b"\",\"target\":\"");
                string(target, text);
                text.extend_from_slice(b"\",\"arguments\":");
            }
            None => text.extend_from_slice(b"\",\"target\":null,\"arguments\":"),
        }
        match arguments {
            Some(raw) => layout(raw, text),
            None => text.extend_from_slice(b"null"),
        }
        text.extend_from_slice(b",\"outcome\":\"");
        string(outcome, text);
        text.push(b'"');
        if let Some(task_id) = task_id {
            text.extend_from_slice(b",\"task_id\":\"");
            string(task_id, text);
            text.push(b'"');
        }
        if let Some(from) = from {
            text.extend_from_slice(b",\"from\":\"");
            address(from, text);
            text.push(b'"');
        }
        if !is_one(&calls) {
            text.extend_from_slice(b",\"calls\":");
            text.extend_from_slice(calls.to_string().as_bytes());
        }
        text.push(b'}');
        if text.len() - start > LINE_MAX && arguments.is_some() {
            text.truncate(start);
            return self.write(&Line { arguments: None, ..*line }, text);
        }
        text.push(b'\n');
    }

    fn time(&mut self, time: Timestamp, text: &mut Vec<u8>) {
        if time.0 >= YEAR_9999 {
            return text.extend_from_slice(time.to_string().as_bytes());
        }
        let day = time.0 / DAY_MILLIS;
        if self.date.is_empty() || day != self.day {
            self.day = day;
            self.date = time.to_string();
            self.date.truncate("2026-07-28T".len());
        }
        text.extend_from_slice(self.date.as_bytes());
        let millis = time.0 % DAY_MILLIS;
        let (hours, minutes, seconds) = (millis / 3_600_000, millis / 60_000 % 60, millis / 1_000 % 60);
        let digit = |number: u64| b'0' + (number % 10) as u8;
        let [h, m, s] = [hours, minutes, seconds].map(|number| [digit(number / 10), digit(number)]);
        let [c, d, e] = [millis / 100, millis / 10, millis].map(digit);
        text.extend_from_slice(&[h[0], h[1], b':', m[0], m[1], b':', s[0], s[1], b'.', c, d, e, b'Z']);
    }
}

/// Appends the text between the quotes. Nearly all strings have nothing to escape.
fn string(value: &str, text: &mut Vec<u8>) {
    if !any(value.as_bytes(), escapes) {
        return text.extend_from_slice(value.as_bytes());
    }
    text.pop();
    let _ = serde_json::to_writer(&mut *text, value);
    text.pop();
}

/// Formats IPv4, which nearly all addresses are, at a lower cost.
fn address(address: IpAddr, text: &mut Vec<u8>) {
    let IpAddr::V4(address) = address else { return text.extend_from_slice(address.to_string().as_bytes()) };
    for (n, byte) in address.octets().into_iter().enumerate() {
        if n > 0 {
            text.push(b'.');
        }
        let digits = [byte / 100, byte / 10 % 10, byte % 10].map(|digit| b'0' + digit);
        let begin = if byte >= 100 { 0 } else { 2 - usize::from(byte >= 10) };
        text.extend_from_slice(&digits[begin..]);
    }
}

/// Turns a line break, which in JSON is only layout, into a space.
fn layout(raw: &RawValue, text: &mut Vec<u8>) {
    let (raw, start) = (raw.get().as_bytes(), text.len());
    text.extend_from_slice(raw);
    if any(raw, |word| below(word, b' ') & !word) {
        let breaks = text.iter_mut().skip(start).filter(|byte| matches!(byte, b'\n' | b'\r'));
        breaks.for_each(|byte| *byte = b' ');
    }
}

/// Passes eight bytes at a time to `found`, which sets the highest bit of a byte. The last eight
/// may overlap.
fn any(bytes: &[u8], found: impl Fn(u64) -> u64) -> bool {
    let (words, rest) = bytes.as_chunks();
    let last = bytes.last_chunk().copied().unwrap_or_else(|| {
        let mut word = [b' '; 8];
        word.iter_mut().zip(rest).for_each(|(to, byte)| *to = *byte);
        word
    });
    let found = |word: &[u8; 8]| found(u64::from_ne_bytes(*word));
    words.iter().fold(found(&last), |all, word| all | found(word)) & each(0x80) != 0
}

/// Finds the bytes that JSON escapes. Flipping the second bit swaps the quote with the space.
fn escapes(word: u64) -> u64 {
    (below(word ^ each(b'"' ^ b' '), b' ' + 1) | below(word ^ each(b'\\'), 1)) & !word
}

/// Sets the highest bit of each byte below `n`. It may also set it for bytes beyond ASCII, and for
/// the next higher byte, from which the subtraction borrows (Anderson, Bit Twiddling Hacks).
fn below(word: u64, n: u8) -> u64 {
    word.wrapping_sub(each(n))
}

fn each(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolwarrant_base::random::SplitMix;

    fn reference_bytes(line: &Line<'_>) -> Vec<u8> {
        let whole = serde_json::to_string(line).expect("JSON");
        if whole.len() > LINE_MAX && line.arguments.is_some() {
            return reference_bytes(&Line { arguments: None, ..*line });
        }
        format!("{}\n", whole.replace(['\n', '\r'], " ")).into_bytes()
    }

    #[test]
    fn a_line_is_byte_for_byte_what_its_definition_says() {
        let mut random = SplitMix(17);
        let mut pen = LineEncoder::default();
        for n in 0..20_000 {
            let mut text = |longest: u64| -> String {
                let any = |random: &mut SplitMix| match random.below(12) {
                    0 => char::from(random.below(32) as u8),
                    1 => ['"', '\\', '/', '\u{7f}', '\u{2028}', 'é', '😀'][random.below(7) as usize],
                    _ => char::from(b'a' + random.below(26) as u8),
                };
                let length =
                    if random.below(200) == 0 { random.below(3 * LINE_MAX as u64) } else { random.below(longest) };
                (0..length).map(|_| any(&mut random)).collect()
            };
            let [request_id, application, key_id, tool, target, outcome, value, task_id] =
                [40, 20, 20, 12, 40, 12, 60, 37].map(&mut text);
            let value = serde_json::to_string(&value).expect("JSON");
            let arguments = RawValue::from_string(format!("{{\r\n \"a\":\t{value}\n}}")).expect("JSON");
            let time = match random.below(8) {
                0 => [0, DAY_MILLIS - 1, YEAR_9999 - 1, YEAR_9999, u64::MAX][random.below(5) as usize],
                1 => random.below(YEAR_9999 + DAY_MILLIS),
                _ => 1_790_000_000_000 + random.below(3 * DAY_MILLIS),
            };
            let line = Line {
                time: Timestamp(time),
                request_id: &request_id,
                application: &application,
                key_id: &key_id,
                tool: &tool,
                target: (random.below(3) > 0).then_some(target.as_str()),
                arguments: (random.below(3) > 0).then_some(&*arguments),
                outcome: &outcome,
                task_id: (random.below(3) == 0).then_some(task_id.as_str()),
                from: match random.below(3) {
                    0 => None,
                    1 => Some(IpAddr::from((random.below(1 << 32) as u32).to_be_bytes())),
                    _ => Some(IpAddr::from(u128::from(random.below(u64::MAX)).to_be_bytes())),
                },
                calls: if random.below(3) == 0 { random.below(1 << 40) } else { 1 },
            };
            let mut written = vec![b'\n'; LINE_MAX];
            pen.write(&line, &mut written);
            let written = String::from_utf8(written.split_off(LINE_MAX)).expect("text");
            assert_eq!(written, String::from_utf8(reference_bytes(&line)).expect("text"), "{n}");
        }
    }
}
