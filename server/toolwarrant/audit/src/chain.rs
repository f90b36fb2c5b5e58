//! The chain of seals: what makes a change of the trail show.
//!
//! The lines of a flush are followed by a seal, a line with a hash that is keyed by the master key. It is made of the seal before
//! it, of every byte of the file since then, and of its own number. A file that goes on elsewhere than after its own last seal says
//! so in an opening line. This module knows the lines of the chain and reads the end of a file. It writes nothing.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use toolwarrant_base::hex;
use toolwarrant_base::keyring::{ChainKey, Digest};

/// Bytes at the end of a file in which its last seal is looked for, in less at first. A writer seals at least every [`SEAL_AT`] bytes.
const SEARCHED: [u64; 3] = [64 << 10, 512 << 10, 4 << 20];

/// Bytes after which a writer seals within a flush.
pub(super) const SEAL_AT: usize = 1 << 20;

/// Longest piece of a line that is read at once, in bytes.
const PIECE: u64 = 64 << 10;

/// A seal as others refer to it: its number, which counts from 1, and its hash. [`Head::START`] is before all seals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The number of the seal.
    pub number: u64,
    /// Its hash.
    pub hash: Digest,
}

impl Head {
    /// Where a chain begins.
    pub const START: Self = Self { number: 0, hash: [0; 32] };
}

/// A line of the chain. All other lines are about calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum ChainLine {
    /// What follows in this file continues the chain after that seal.
    Chain(Opening),
    /// Seals what stands in this file since the seal before, or since the opening.
    Seal(Seal),
}

/// See [`ChainLine::Chain`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Opening {
    after: u64,
    hash: Hash,
}

/// See [`ChainLine::Seal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Seal {
    number: u64,
    /// The lines that it covers, without lines of the chain.
    pub(super) lines: u64,
    /// How many of them an earlier process left without a seal, as one that is killed does.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) found: u64,
    hash: Hash,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// As hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hash(Digest);

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&hex::encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let hash = hex::decode(&text).and_then(|bytes| bytes.try_into().ok());
        hash.map(Self).ok_or_else(|| de::Error::custom("no hash"))
    }
}

impl ChainLine {
    /// Reads a line without its line break. `None`: it is about a call, or not exactly as a writer writes it.
    pub(super) fn read(line: &[u8]) -> Option<Self> {
        let read: Self = is_chain_line(line).then(|| serde_json::from_slice(line).ok())??;
        (read.bytes().strip_suffix(b"\n") == Some(line)).then_some(read)
    }

    /// The line, with its line break.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }

    pub(super) fn opening(Head { number, hash }: Head) -> Self {
        Self::Chain(Opening { after: number, hash: Hash(hash) })
    }
}

impl Opening {
    pub(super) fn head(&self) -> Head {
        Head { number: self.after, hash: self.hash.0 }
    }
}

impl Seal {
    pub(super) fn head(&self) -> Head {
        Head { number: self.number, hash: self.hash.0 }
    }

    /// The seal after `last` over what was covered.
    pub(super) fn next(key: &ChainKey, last: Head, covered: Covered) -> Self {
        let Covered { bytes, lines, found } = covered;
        let number = last.number.saturating_add(1);
        let parts = [number, lines, found].map(u64::to_be_bytes);
        let hash = key.mac(&[&last.hash, &bytes.finalize(), parts.as_flattened()]);
        Self { number, lines, found, hash: Hash(hash) }
    }
}

/// What stands in a file since its last seal, or since its opening.
#[derive(Clone, Debug, Default)]
pub(super) struct Covered {
    bytes: Sha256,
    /// Lines, without lines of the chain.
    pub(super) lines: u64,
    /// How many of them an earlier process left.
    pub(super) found: u64,
}

impl Covered {
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.bytes.update(bytes);
    }
}

/// Whether a line of a trail belongs to the chain. All others are about calls.
#[must_use]
pub fn is_chain_line(line: &[u8]) -> bool {
    line.starts_with(b"{\"seal\":") || line.starts_with(b"{\"chain\":")
}

/// The end of a file.
#[derive(Debug, Default)]
pub(super) struct End {
    /// The seal after which the file goes on: its last one, or the one that a later opening names. `None` if it has neither.
    pub(super) last: Option<Head>,
    /// What stands behind that, with the line break that an incomplete line gets.
    pub(super) behind: Covered,
    /// Whether anything stands there.
    pub(super) uncovered: bool,
    /// Whether the last line has no line break.
    pub(super) torn: bool,
}

impl End {
    /// Reads the end of a file.
    pub(super) fn of(file: &File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        let mut end = Self::default();
        for searched in SEARCHED {
            end = Self::read(file, length.saturating_sub(searched))?;
            if end.last.is_some() || length <= searched {
                break;
            }
        }
        Ok(end)
    }

    fn read(mut file: &File, start: u64) -> io::Result<Self> {
        file.seek(SeekFrom::Start(start))?;
        let (mut end, mut pieces) = (Self::default(), Pieces::new(BufReader::new(file)));
        let mut about_a_call = false;
        while let Some(Piece { bytes, whole, ends }) = pieces.next()? {
            // A seal that lacks nothing but its line break is one: the writer adds that.
            let line = ChainLine::read(bytes.strip_suffix(b"\n").unwrap_or(bytes)).filter(|_| whole);
            match line {
                Some(ChainLine::Seal(seal)) => end = Self { last: Some(seal.head()), ..Self::default() },
                Some(ChainLine::Chain(opening)) => {
                    end = Self { last: Some(opening.head()), uncovered: true, ..Self::default() };
                    end.behind.add(bytes);
                }
                None => {
                    end.uncovered = true;
                    // Without a seal before it, nobody asks what it is.
                    if end.last.is_some() {
                        end.behind.add(bytes);
                    }
                }
            }
            about_a_call = line.is_none() && !(whole && is_chain_line(bytes));
            end.torn = !ends;
            end.behind.lines += u64::from(ends && about_a_call);
        }
        end.behind.lines += u64::from(end.torn && about_a_call);
        Ok(end)
    }

    /// Its place in the chain, for comparison. What was begun after a seal comes behind it.
    pub(super) fn place(&self) -> (u64, bool) {
        (self.last.map_or(0, |last| last.number), self.last.is_some() && self.uncovered)
    }
}

/// Reads lines in pieces of bounded length.
pub(super) struct Pieces<R> {
    from: R,
    piece: Vec<u8>,
    /// Whether the piece before ended its line.
    ended: bool,
}

/// A line, or a part of one that is very long.
pub(super) struct Piece<'a> {
    /// With the line break.
    pub(super) bytes: &'a [u8],
    /// Whether it begins its line and has all of it.
    pub(super) whole: bool,
    /// Whether it ends with a line break.
    pub(super) ends: bool,
}

impl<R: BufRead> Pieces<R> {
    pub(super) fn new(from: R) -> Self {
        Self { from, piece: Vec::new(), ended: true }
    }

    pub(super) fn next(&mut self) -> io::Result<Option<Piece<'_>>> {
        self.piece.clear();
        let begins = self.ended;
        if io::Read::take(&mut self.from, PIECE).read_until(b'\n', &mut self.piece)? == 0 {
            return Ok(None);
        }
        self.ended = self.piece.ends_with(b"\n");
        let whole = begins && (self.ended || (self.piece.len() as u64) < PIECE);
        Ok(Some(Piece { bytes: &self.piece, whole, ends: self.ended }))
    }
}
