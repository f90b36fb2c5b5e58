//! The writing thread: appends lines to the latest file of their day, and seals each flush. Start
//! at [`Writer::run`].
//!
//! It holds the bytes that it cannot write, and tries again. So if the disk fills up in the middle
//! of a line, the rest of that line is written first.

use super::chain::{ChainLine, Covered, End, Head, SEAL_AT, Seal};
use super::line::DAY_MILLIS;
use super::queue::{Batch, Queue, Work};
use super::trail;
use std::collections::VecDeque;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::sync::watch;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::durable;
use toolwarrant_base::keyring::ChainKey;

const SYNC_EVERY: Duration = Duration::from_mins(1);

pub(super) struct Writer {
    dir: PathBuf,
    home: Option<(u64, u64)>,
    queue: Arc<Queue>,
    key: ChainKey,
    /// These lines keep their slots, so a disk that stays full finally makes calls refused.
    pub(super) held: Batch,
    /// A series of failures is logged once.
    pub(super) failing: bool,
    head: Head,
    open: Option<OpenFile>,
    sealed: watch::Sender<Head>,
    synced_at: Timestamp,
    pub(super) file_max: u64,
}

struct OpenFile {
    path: PathBuf,
    file: File,
    id: (u64, u64),
    covered: Covered,
    uncovered: bool,
    /// True if a line was written in part. The rest follows before anything else.
    in_line: bool,
    /// Bytes to write before anything else, each true if a seal covers it.
    first: VecDeque<(Vec<u8>, bool)>,
    begun: Option<Head>,
    new: bool,
}

impl Writer {
    /// Continues the chain after `recorded` if the trail has no later seal, so that the gap shows
    /// that something is missing.
    pub(super) fn open(
        dir: &Path,
        key: ChainKey,
        queue: Arc<Queue>,
        recorded: Option<Head>,
    ) -> io::Result<(Self, watch::Receiver<Head>)> {
        let (mut head, mut place, mut newest) = (Head::START, (0, false), None);
        for path in trail::days(dir)? {
            let end = File::open(&path).and_then(|file| End::of(&file))?;
            if let Some(last) = end.last.filter(|_| end.place() > place) {
                (head, place, newest) = (last, end.place(), Some(path));
            }
        }
        if let Some(recorded) = recorded.filter(|recorded| recorded.number > head.number) {
            let (found, recorded_number) = (head.number, recorded.number);
            tracing::error!(
                found,
                recorded_number,
                "seals are missing at the end of the audit trail; see `audit verify`"
            );
            head = recorded;
        }
        let (sealed, receiver) = watch::channel(head);
        let (held, failing, synced_at) = (Batch::default(), false, queue.clock.now());
        let home = id(parent(dir)).ok();
        let (dir, file_max) = (dir.to_owned(), u64::MAX);
        let mut writer = Self { dir, home, queue, key, held, failing, head, open: None, sealed, synced_at, file_max };
        // Seals what a killed process left unsealed. If this fails, the next line tries again.
        if let Some(path) = newest {
            let failed = |error| tracing::warn!(%error, "the latest file of the audit trail cannot be continued");
            writer.open = OpenFile::open(&path, head).map_err(failed).ok();
        }
        Ok((writer, receiver))
    }

    pub(super) fn run(mut self) {
        loop {
            let Work { reopen, asked, last } = self.queue.next(&mut self.held);
            self.flush();
            self.sync(last);
            if reopen && !self.failing {
                self.close();
            }
            self.queue.answered.send_replace(asked);
            if last {
                if self.failing {
                    let lines = self.held.lines;
                    tracing::error!(lines, "audit lines are lost: the server stopped while they could not be written");
                }
                return;
            }
        }
    }

    pub(super) fn flush(&mut self) {
        let appended = self.append();
        self.queue.failing.store(appended.is_err(), Relaxed);
        match appended {
            Ok(()) => {
                self.queue.wrote(std::mem::take(&mut self.held.lines));
                if std::mem::take(&mut self.failing) {
                    tracing::info!("the audit trail can be written again");
                }
            }
            Err(error) if !self.failing => {
                self.failing = true;
                tracing::error!(%error, dir = %self.dir.display(), "the audit trail cannot be written; retrying");
            }
            Err(_) => {}
        }
    }

    fn append(&mut self) -> io::Result<()> {
        self.seal()?;
        while let Some(day) = self.held.days.keys().next().copied() {
            self.open_day(day)?;
            let (Some(open), Some(bytes)) = (&mut self.open, self.held.days.get_mut(&day)) else { return Ok(()) };
            let upto = bytes.iter().skip(SEAL_AT).position(|byte| *byte == b'\n');
            let rest = bytes.split_off(upto.map_or(bytes.len(), |at| SEAL_AT + at + 1));
            let wrote = open.write(bytes);
            bytes.extend_from_slice(&rest);
            wrote?;
            if bytes.is_empty() {
                self.held.finish_day(day);
            }
            self.seal()?;
        }
        Ok(())
    }

    fn seal(&mut self) -> io::Result<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        if let Some(head) = open.seal(&self.key, self.head)? {
            self.head = head;
        }
        Ok(())
    }

    fn open_day(&mut self, day: u64) -> io::Result<()> {
        let day = trail::day_of(Timestamp(day * DAY_MILLIS));
        let stays = |OpenFile { path, file, id: known, in_line, .. }: &OpenFile| {
            trail::day(path) == Some(&*day)
                && id(path).is_ok_and(|found| found == *known)
                && file.metadata().is_ok_and(|about| *in_line || about.len() < self.file_max)
        };
        if self.open.as_ref().is_some_and(stays) {
            return Ok(());
        }
        self.close();
        // A person who moved the folder wants it back as it was. The one in its place is another's.
        if self.home.is_none() || id(parent(&self.dir)).ok() != self.home {
            return Err(io::Error::other(format!("`{}` was moved or replaced", parent(&self.dir).display())));
        }
        let open = || OpenFile::open(&trail::last_file(&self.dir, &day, self.file_max)?, self.head);
        // A person who removed the directory wanted to delete the old lines, not future ones.
        let open = open().or_else(|error| match error.kind() {
            ErrorKind::NotFound => DirBuilder::new().mode(0o700).create(&self.dir).and_then(|()| open()),
            _ => Err(error),
        })?;
        self.open = Some(open);
        Ok(())
    }

    fn close(&mut self) {
        if let Some(Err(error)) = self.open.take().map(|mut open| open.sync()) {
            tracing::warn!(%error, "a file of the audit trail could not be forced to the disk");
        }
    }

    fn sync(&mut self, last: bool) {
        let now = self.queue.clock.now();
        if *self.sealed.borrow() == self.head || !(last || now.since(self.synced_at) >= SYNC_EVERY) {
            return;
        }
        self.synced_at = now;
        match self.open.as_mut().map_or(Ok(()), |open| open.sync()) {
            Ok(()) => {
                self.queue.sealed_at.store(now.0, Relaxed);
                self.sealed.send_replace(self.head);
            }
            Err(error) => tracing::error!(%error, "the audit trail cannot be forced to the disk"),
        }
    }
}

impl OpenFile {
    fn open(path: &Path, head: Head) -> io::Result<Self> {
        // Opening a pipe would wait for a reader, and a link leads to another file.
        let before = path.symlink_metadata();
        if before.as_ref().is_ok_and(|about| !about.is_file()) {
            return Err(io::Error::other(format!("`{}` is not a file; remove it", path.display())));
        }
        let file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
        let about = file.metadata()?;
        let found = (about.dev(), about.ino());
        if id(path)? != found {
            return Err(io::Error::other(format!("`{}` was replaced meanwhile", path.display())));
        }
        let End { last, mut behind, uncovered, torn } = End::of(&file)?;
        let (continues, mut first) = (last == Some(head), VecDeque::new());
        if torn {
            first.push_back((b"\n".to_vec(), continues && uncovered));
        }
        if continues {
            behind.found = behind.lines;
        } else {
            behind = Covered::default();
            first.push_back((ChainLine::opening(head).bytes(), true));
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            id: found,
            covered: behind,
            uncovered: continues && uncovered,
            in_line: false,
            first,
            begun: None,
            new: before.is_err(),
        })
    }

    fn write(&mut self, bytes: &mut Vec<u8>) -> io::Result<()> {
        self.write_first()?;
        let Self { file, covered, uncovered, in_line, .. } = self;
        put(file, bytes, |written| {
            *in_line = !written.ends_with(b"\n");
            covered.add(written);
            covered.lines += line_breaks(written);
            *uncovered = true;
        })
    }

    fn seal(&mut self, key: &ChainKey, last: Head) -> io::Result<Option<Head>> {
        if self.in_line {
            return Ok(None);
        }
        if self.begun.is_none() {
            if !self.uncovered {
                // A seal without its line break gets it, even if the next line goes to another
                // file.
                let ends_a_seal = self.first.iter().all(|(_, covered)| !covered);
                return if ends_a_seal { self.write_first().map(|()| None) } else { Ok(None) };
            }
            self.write_first()?;
            let seal = Seal::next(key, last, self.covered.clone());
            self.first.push_back((ChainLine::Seal(seal).bytes(), false));
            self.begun = Some(seal.head());
        }
        self.write_first()?;
        self.covered = Covered::default();
        self.uncovered = false;
        Ok(self.begun.take())
    }

    fn write_first(&mut self) -> io::Result<()> {
        let Self { file, covered, first, .. } = self;
        while let Some((bytes, covers)) = first.front_mut() {
            put(file, bytes, |written| {
                if *covers {
                    covered.add(written);
                }
            })?;
            first.pop_front();
        }
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        if let Some(dir) = self.path.parent().filter(|_| self.new) {
            durable::sync_folder(dir)?;
        }
        self.new = false;
        Ok(())
    }
}

fn put(mut file: &File, bytes: &mut Vec<u8>, mut wrote: impl FnMut(&[u8])) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => {
                wrote(&bytes[..written]);
                bytes.drain(..written);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Sums in u8 first, which the compiler vectorises.
fn line_breaks(bytes: &[u8]) -> u64 {
    let few = |piece: &[u8]| u64::from(piece.iter().map(|byte| u8::from(*byte == b'\n')).sum::<u8>());
    bytes.chunks(u8::MAX.into()).map(few).sum()
}

/// Identifies the file at a path itself, not the target of a link.
fn id(path: &Path) -> io::Result<(u64, u64)> {
    let about = path.symlink_metadata()?;
    Ok((about.dev(), about.ino()))
}

fn parent(dir: &Path) -> &Path {
    match dir.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

pub(super) fn create(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolwarrant_base::keyring::KeyRing;
    use toolwarrant_base::random::Random;

    #[test]
    fn a_line_that_a_full_disk_has_cut_is_finished_before_it_is_sealed() {
        let path = std::env::temp_dir().join(format!("audit-{}-in-line", std::process::id()));
        let key = KeyRing::new("test", &[7; 32], Random::System).chain_key();
        let mut open = OpenFile::open(&path, Head::START).expect("a file");
        let seal = |open: &mut OpenFile| open.seal(&key, Head::START).expect("written").is_some();
        for (part, is_whole) in [("{\"a\":", false), ("1}\n", true)] {
            open.write(&mut part.into()).expect("written");
            assert_eq!(seal(&mut open), is_whole, "{part}");
        }
        let text = std::fs::read_to_string(&path).expect("text");
        std::fs::remove_file(&path).expect("removed");
        assert!(text.contains("{\"a\":1}\n") && text.ends_with("}\n"), "{text}");
    }
}
