//! Verifies a trail: finds every byte that differs from what was sealed, and everything that is
//! missing. Start at [`verify`].
//!
//! A file has several parts of the chain if the clock went back over midnight. Parts are put in
//! order by the seal that each continues. The record that is stored outside of the trail shows if
//! its beginning or its end is missing. Lines after the last seal are not a fault: a process that
//! is killed leaves them.

use super::anchor::Anchor;
use super::chain::{ChainLine, Covered, Head, Opening, Piece, Pieces, Seal, is_chain_line};
use super::trail::{days, name};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use toolwarrant_base::keyring::ChainKey;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    pub files: usize,
    pub sealed_lines: u64,
    /// Sealed by a later process, because the one that wrote them was killed.
    pub found_lines: u64,
    pub unsealed_lines: u64,
    pub pruned_seal: u64,
    pub last_seal: u64,
    pub faults: Vec<Fault>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub file: String,
    /// Counted from 1; 0 if the fault is not in certain lines.
    pub lines: (u64, u64),
    pub what: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    All,
    /// The newest file, and those before it while all fit into this many bytes. Their first opening
    /// is trusted.
    Newest(u64),
}

/// Lets a writer go on meanwhile, if `anchor` was read before.
pub fn verify(folder: &Path, key: &ChainKey, anchor: Option<&Anchor>, scope: Scope) -> io::Result<Verified> {
    // Lengths come first, so that files that are written meanwhile fit together.
    let mut files = Vec::new();
    for path in days(folder)? {
        let length = path.metadata()?.len();
        files.push((path, length));
    }
    if let Scope::Newest(bytes) = scope {
        let mut left = bytes;
        let fit = files.iter().rev().take_while(|(_, length)| {
            let fits = left == bytes || *length <= left;
            left = left.saturating_sub((*length).max(1));
            fits
        });
        files.drain(..files.len() - fit.count());
    }
    let mut reading = Reading { key, anchor, parts: Vec::new(), anchored: None, found: Verified::default() };
    for (path, length) in &files {
        reading.read(path, *length)?;
    }
    reading.found.files = files.len();
    Ok(reading.judge(scope))
}

struct Reading<'a> {
    key: &'a ChainKey,
    anchor: Option<&'a Anchor>,
    parts: Vec<Part>,
    anchored: Option<Head>,
    found: Verified,
}

struct Part {
    file: String,
    line: u64,
    after: Option<Head>,
    last: Head,
    seals: u64,
    loose: Loose,
}

#[derive(Default)]
struct Loose {
    covered: Covered,
    from: u64,
    strange: Option<u64>,
}

impl Reading<'_> {
    fn read(&mut self, path: &Path, length: u64) -> io::Result<()> {
        let file = name(path).to_owned();
        let mut pieces = Pieces::new(BufReader::new(File::open(path)?.take(length)));
        let (mut part, mut before) = (None::<Part>, 0);
        let (mut line, mut begins) = (0, true);
        while let Some(piece) = pieces.next()? {
            line += u64::from(begins);
            begins = piece.ends;
            let read = is_chain(&piece).then(|| ChainLine::read(&piece.bytes[..piece.bytes.len() - 1])).flatten();
            match (read, &mut part) {
                (Some(ChainLine::Chain(opening)), _) => {
                    self.parts.extend(part.replace(Part::open(&file, line, &opening, piece.bytes)));
                }
                (Some(ChainLine::Seal(seal)), Some(part)) => self.seal(part, seal, line),
                (Some(ChainLine::Seal(seal)), None) => part = Some(self.orphan(&file, line, seal)),
                (None, Some(Part { loose, .. })) => {
                    loose.covered.add(piece.bytes);
                    loose.covered.lines += u64::from(piece.ends && !is_chain(&piece));
                    loose.strange = loose.strange.or(is_chain(&piece).then_some(line));
                }
                (None, None) => before += u64::from(piece.ends),
            }
        }
        self.parts.extend(part);
        if before > 0 && !self.found.faults.iter().any(|fault| fault.file == file) {
            self.fault(&file, (1, before), "not in the chain".to_owned());
        }
        Ok(())
    }

    fn seal(&mut self, part: &mut Part, seal: Seal, line: u64) {
        let Loose { mut covered, from, strange: _ } = std::mem::take(&mut part.loose);
        covered.found = seal.found;
        let (lines, head) = (covered.lines, seal.head());
        let expected = Seal::next(self.key, part.last, covered);
        if expected == seal {
            self.found.sealed_lines += lines;
            self.found.found_lines += seal.found;
        } else if head.number != part.last.number.saturating_add(1) {
            let what = format!(
                "seal {} follows seal {}: the seals between them are missing or moved",
                head.number, part.last.number
            );
            self.fault(&part.file, (from, line), what);
        } else {
            let what = match seal.lines {
                count if count == lines => format!("changed since seal {} was made", head.number),
                count => format!("{lines} lines, but seal {} covers {count}", head.number),
            };
            self.fault(&part.file, (from, line), what);
        }
        self.note(head);
        part.last = head;
        part.seals += 1;
        part.loose.from = line + 1;
    }

    fn orphan(&mut self, file: &str, line: u64, seal: Seal) -> Part {
        let head = seal.head();
        self.fault(
            file,
            (1, line),
            format!("the line that names the seal before this is missing, up to seal {}", head.number),
        );
        self.note(head);
        let loose = Loose { from: line + 1, ..Loose::default() };
        Part { file: file.to_owned(), line, after: None, last: head, seals: 1, loose }
    }

    fn note(&mut self, head: Head) {
        if self.anchor.is_some_and(|anchor| anchor.newest.number == head.number) {
            self.anchored = Some(head);
        }
    }

    fn judge(mut self, scope: Scope) -> Verified {
        let mut parts = std::mem::take(&mut self.parts);
        parts.sort_by_key(|part| (part.after.unwrap_or(part.last).number, part.last.number));
        let pruned = self.anchor.map_or(Head::START, |anchor| anchor.pruned);
        let mut last = match scope {
            Scope::All => pruned,
            Scope::Newest(_) => parts.first().and_then(|part| part.after).unwrap_or(pruned),
        };
        let count = parts.len();
        for (n, part) in parts.into_iter().enumerate() {
            if part.last.number <= pruned.number && part.seals > 0 {
                continue;
            }
            self.between(last, &part);
            if part.last.number >= last.number {
                last = part.last;
            }
            let Loose { covered, from, strange } = part.loose;
            if let Some(line) = strange {
                self.fault(&part.file, (line, line), "looks like a seal but is not one".to_owned());
            }
            if n + 1 == count {
                self.found.unsealed_lines = covered.lines;
            } else if part.seals == 0 && covered.lines == 0 {
                self.fault(
                    &part.file,
                    (part.line, part.line),
                    "no lines follow this, but the chain continues".to_owned(),
                );
            } else if covered.lines > 0 {
                let lines = (from, from + covered.lines - 1);
                self.fault(&part.file, lines, "after the last seal of this part, and never sealed".to_owned());
            }
        }
        self.end(last);
        self.found.pruned_seal = pruned.number;
        self.found.last_seal = last.number;
        self.found
    }

    fn between(&mut self, last: Head, part: &Part) {
        let Some(after) = part.after.filter(|after| *after != last) else { return };
        let first = after.number + 1;
        let what = match after.number {
            number if number > last.number => {
                format!("{} before this: a file is missing, or the end of one", missing(last.number + 1, number))
            }
            number if number < last.number => format!("seal {first} is here and in another place"),
            number => format!("this continues a seal {number} that differs from the one in the trail"),
        };
        self.fault(&part.file, (part.line, part.line), what);
    }

    fn end(&mut self, last: Head) {
        let Some(newest) = self.anchor.map(|anchor| anchor.newest) else {
            if last.number > 0 {
                self.fault("", (0, 0), "the database has no record of this chain: its end may be missing".to_owned());
            }
            return;
        };
        if newest.number > last.number {
            let what = missing(last.number + 1, newest.number);
            self.fault("", (0, 0), format!("{what} at the end: the newest file is missing, or its end was cut off"));
        } else if self.anchored.is_some_and(|found| found != newest) {
            let what = format!("seal {} differs from the one that the database has recorded", newest.number);
            self.fault("", (0, 0), what);
        }
    }

    fn fault(&mut self, file: &str, lines: (u64, u64), what: String) {
        self.found.faults.push(Fault { file: file.to_owned(), lines, what });
    }
}

impl Part {
    fn open(file: &str, line: u64, opening: &Opening, bytes: &[u8]) -> Self {
        let mut loose = Loose { from: line + 1, ..Loose::default() };
        loose.covered.add(bytes);
        let head = opening.head();
        Self { file: file.to_owned(), line, after: Some(head), last: head, seals: 0, loose }
    }
}

fn is_chain(piece: &Piece<'_>) -> bool {
    piece.whole && piece.ends && is_chain_line(piece.bytes)
}

fn missing(first: u64, last: u64) -> String {
    if first == last { format!("seal {first} is missing") } else { format!("seals {first} to {last} are missing") }
}
