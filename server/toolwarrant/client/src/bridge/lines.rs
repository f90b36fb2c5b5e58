//! Reads lines of bounded length.

use bytes::{Bytes, BytesMut};
use std::io;
use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// Servers accept no longer message.
pub(super) const LONGEST_MESSAGE: usize = 1 << 20;

/// A line between the two lengths is still parsed, because its refusal needs the id.
const LONGEST_LINE: usize = 8 << 20;

pub(super) struct Lines<R> {
    from: R,
    line: BytesMut,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    pub(super) fn of(from: R) -> Self {
        Self { from, line: BytesMut::new() }
    }

    /// Cuts a line that is too long, and skips blank lines. Dropping the future loses no data.
    pub(super) async fn next(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            let part = self.from.fill_buf().await?;
            let (at_end, feed) = (part.is_empty(), part.iter().position(|byte| *byte == b'\n'));
            let text = &part[..feed.unwrap_or(part.len())];
            let room = LONGEST_LINE.saturating_sub(self.line.len());
            self.line.extend_from_slice(&text[..text.len().min(room)]);
            let read = text.len() + usize::from(feed.is_some());
            self.from.consume(read);
            if at_end || feed.is_some() {
                let line = std::mem::take(&mut self.line).freeze();
                if !line.trim_ascii().is_empty() {
                    return Ok(Some(line));
                }
                if at_end {
                    return Ok(None);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_come_whole_and_blank_lines_are_skipped() {
        let long = "x".repeat(LONGEST_LINE + 5);
        let text = format!("one\r\n\n  \ntwo\n{long}\nlast");
        let mut lines = Lines::of(tokio::io::BufReader::with_capacity(3, text.as_bytes()));
        let mut seen = Vec::new();
        while let Some(line) = lines.next().await.expect("text") {
            seen.push(line);
        }
        assert_eq!(seen.iter().map(|line| line.len()).collect::<Vec<_>>(), [4, 3, LONGEST_LINE, 4]);
        assert_eq!((&seen[1][..], &seen[3][..]), (&b"two"[..], &b"last"[..]));
    }
}
