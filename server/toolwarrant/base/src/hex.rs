//! Bytes as hexadecimal digits and back.

use std::fmt::Write;

/// Writes two lower-case digits for each byte.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// Parses pairs of digits in either case. Returns `None` for anything else.
#[must_use]
pub fn decode(hex: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pair = |pair: &[u8]| match pair {
        [high, low] => u8::try_from(digit(*high)? << 4 | digit(*low)?).ok(),
        _ => None,
    };
    hex.as_bytes().chunks(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_and_nothing_else_is_taken() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&all)), Some(all));
        assert_eq!((encode(&[0, 0xAB]), decode("00AB")), ("00ab".to_owned(), Some(vec![0, 0xAB])));
        for wrong in ["a", "abc", "+f", "0x", "g0", "é"] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
    }
}
