//! Scans of JSON, written so that the compiler processes many bytes at once.

#[inline]
fn count(bytes: &[u8], is: impl Fn(u8) -> bool) -> usize {
    // A count that fits into a byte does that.
    let counts = bytes.chunks(128).map(|block| block.iter().map(|byte| u8::from(is(*byte))).sum::<u8>());
    counts.map(usize::from).sum()
}

/// Returns true if brackets outside of strings nest deeper.
#[must_use]
#[inline]
pub fn is_deeper_than(depth_max: usize, json: &[u8]) -> bool {
    count(json, |byte| byte | 0x20 == b'{') > depth_max && nests_deeper_than(depth_max, json)
}

fn nests_deeper_than(depth_max: usize, json: &[u8]) -> bool {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => {
                depth += 1;
                if depth > depth_max {
                    return true;
                }
            }
            b']' | b'}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    false
}

/// Returns the length of [`quote`]d JSON.
#[must_use]
#[inline]
pub fn quote_len(json: &[u8]) -> usize {
    // The only bytes below the space that JSON contains are white space.
    json.len() + count(json, |byte| (byte < b' ') | (byte == b'"') | (byte == b'\\'))
}

/// Appends JSON, escaped for a JSON string.
#[inline]
pub fn quote(mut json: &[u8], out: &mut Vec<u8>) {
    while let Some(at) = json.iter().position(|byte| ESCAPES[usize::from(*byte)] != 0) {
        out.extend_from_slice(&json[..at]);
        out.extend_from_slice(&[b'\\', ESCAPES[usize::from(json[at])]]);
        json = &json[at + 1..];
    }
    out.extend_from_slice(json);
}

/// The character after the backslash; 0 without an escape.
static ESCAPES: [u8; 256] = {
    let mut escapes = [0; 256];
    escapes[b'"' as usize] = b'"';
    escapes[b'\\' as usize] = b'\\';
    escapes[b'\n' as usize] = b'n';
    escapes[b'\r' as usize] = b'r';
    escapes[b'\t' as usize] = b't';
    escapes
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_too_deep_by_its_brackets_outside_of_strings() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(!is_deeper_than(64, nested(64).as_bytes()) && is_deeper_than(64, nested(65).as_bytes()));
        let texts = format!("{{\"a\":\"{}\\\"\"}}", "{[;".repeat(500));
        assert!(!is_deeper_than(64, texts.as_bytes()));
    }
}
