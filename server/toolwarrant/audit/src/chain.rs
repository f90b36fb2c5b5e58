//! The chain of seals, which shows any change of the trail. Start at [`ChainLine`].
//!
//! After the lines of a flush comes a seal: a line with a hash keyed by the master key. The hash
//! covers the seal before it, every byte of the file since then, and its own number. If a file
//! continues after a seal that is not its own last one, an opening line names that seal.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use toolwarrant_base::keyring::{ChainKey, Digest};
use toolwarrant_base::{hex, json};

/// Sizes of the end of a file in which its last seal is searched.
const SEARCHED: [u64; 3] = [64 << 10, 512 << 10, 4 << 20];

/// In bytes. A writer seals at least this often, also in the middle of a flush.
pub(super) const SEAL_AT: usize = 1 << 20;

const PIECE: u64 = 64 << 10;

/// A reference to a seal. Numbers count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub number: u64,
    pub hash: Digest,
}

impl Head {
    pub const START: Self = Self { number: 0, hash: [0; 32] };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum ChainLine {
    Chain(Opening),
    Seal(Seal),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Opening {
    after: u64,
    hash: Hash,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Seal {
    number: u64,
    pub(super) lines: u64,
    /// Lines that an earlier process left unsealed, for example because it was killed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) found: u64,
    hash: Hash,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

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
        hash.map(Self).ok_or_else(|| de::Error::custom("not a hash"))
    }
}

impl ChainLine {
    /// Parses a line without its line break. Returns `None` unless it is exactly as a writer writes
    /// it.
    pub(super) fn read(line: &[u8]) -> Option<Self> {
        let read: Self = is_chain_line(line).then(|| json::read_bytes(line).ok())??;
        (read.bytes().strip_suffix(b"\n") == Some(line)).then_some(read)
    }

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

    pub(super) fn next(key: &ChainKey, last: Head, covered: Covered) -> Self {
        let Covered { bytes, lines, found } = covered;
        let number = last.number.saturating_add(1);
        let parts = [number, lines, found].map(u64::to_be_bytes);
        let hash = key.mac(&[&last.hash, &bytes.finalize(), parts.as_flattened()]);
        Self { number, lines, found, hash: Hash(hash) }
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Covered {
    bytes: Sha256,
    pub(super) lines: u64,
    pub(super) found: u64,
}

impl Covered {
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.bytes.update(bytes);
    }
}

#[must_use]
pub fn is_chain_line(line: &[u8]) -> bool {
    line.starts_with(b"{\"seal\":") || line.starts_with(b"{\"chain\":")
}

#[derive(Debug, Default)]
pub(super) struct End {
    /// Its last seal, or the one that a later opening names.
    pub(super) last: Option<Head>,
    pub(super) behind: Covered,
    pub(super) uncovered: bool,
    pub(super) torn: bool,
}

impl End {
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
            // A seal whose line break is missing is valid: the writer adds the line break.
            let line = ChainLine::read(bytes.strip_suffix(b"\n").unwrap_or(bytes)).filter(|_| whole);
            match line {
                Some(ChainLine::Seal(seal)) => end = Self { last: Some(seal.head()), ..Self::default() },
                Some(ChainLine::Chain(opening)) => {
                    end = Self { last: Some(opening.head()), uncovered: true, ..Self::default() };
                    end.behind.add(bytes);
                }
                None => {
                    end.uncovered = true;
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

    /// Places a file with content after its last seal behind one that ends with the same seal.
    pub(super) fn place(&self) -> (u64, bool) {
        (self.last.map_or(0, |last| last.number), self.last.is_some() && self.uncovered)
    }
}

pub(super) struct Pieces<R> {
    from: R,
    piece: Vec<u8>,
    ended: bool,
}

pub(super) struct Piece<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) whole: bool,
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
