//! The file format of a backup: a tar archive with a digest that proves that it is complete.
//!
//! ```text
//! backup.json  the service and the time of the backup
//! ...          the files of the data folder, under their names there
//! SHA256       the digest of all bytes before this entry
//! ```
//!
//! Any tar program can unpack it. [`backup`](crate::backup) decides which files belong in it, and
//! [`restore`](crate::restore) puts them in place.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Error, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Component, Path, PathBuf};
use tar::{Archive, Builder, EntryType, Header};
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::{hex, json};

pub(crate) const FORMAT: u32 = 1;

const MANIFEST: &str = "backup.json";

const DIGEST: &str = "SHA256";

const MANIFEST_MAX: u64 = 64 * 1024;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) backup: u32,
    pub(crate) service: String,
    pub(crate) version: String,
    pub(crate) layout: u32,
    pub(crate) made_at: Timestamp,
}

pub(crate) struct ArchiveWriter(Builder<Digesting<BufWriter<File>>>);

impl ArchiveWriter {
    pub(crate) fn begin(file: File, manifest: &Manifest) -> io::Result<Self> {
        let mut archive = Self(Builder::new(Digesting { inner: BufWriter::new(file), digest: Sha256::new() }));
        let manifest = serde_json::to_vec_pretty(manifest)?;
        archive.add(Path::new(MANIFEST), manifest.len() as u64, &manifest[..])?;
        Ok(archive)
    }

    pub(crate) fn add(&mut self, name: &Path, length: u64, from: impl Read) -> io::Result<()> {
        self.0.append_data(&mut header(length), name, Exactly { from, left: length })
    }

    pub(crate) fn finish(self) -> io::Result<()> {
        let mut file = self.0;
        let digest = file.get_ref().digest.clone().finalize();
        append_digest(&mut file, &digest)?;
        let file = file.into_inner()?.inner.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()
    }
}

pub(crate) struct ArchiveReader {
    pub(crate) manifest: Manifest,
    archive: Archive<BufReader<File>>,
}

impl ArchiveReader {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        check_digest(&mut file)?;
        file.rewind()?;
        let mut manifest = None;
        if let Some(first) = Archive::new(BufReader::new(&mut file)).entries()?.next() {
            let first = first?;
            if first.path_bytes() == MANIFEST.as_bytes() {
                let mut text = Vec::new();
                first.take(MANIFEST_MAX).read_to_end(&mut text)?;
                manifest = json::read_bytes(&text).ok();
            }
        }
        let manifest = manifest.ok_or_else(|| invalid("it is not a backup".to_owned()))?;
        file.rewind()?;
        Ok(Self { manifest, archive: Archive::new(BufReader::new(file)) })
    }

    /// Refuses an entry that is not a plain file with a plain name below the folder.
    pub(crate) fn files(mut self, mut put: impl FnMut(&Path, u64, &mut dyn Read) -> io::Result<()>) -> io::Result<()> {
        for entry in self.archive.entries()? {
            let mut entry = entry?;
            let name = String::from_utf8(entry.path_bytes().into_owned()).unwrap_or_default();
            if name == MANIFEST || name == DIGEST {
                continue;
            }
            let path = PathBuf::from(&name);
            if entry.header().entry_type() != EntryType::Regular || !is_plain(&path) {
                return Err(invalid(format!("its entry {name:?} is not a plain file of a data folder")));
            }
            let length = entry.size();
            put(&path, length, &mut entry)?;
        }
        Ok(())
    }
}

pub(crate) fn is_plain(path: &Path) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let mut parts = path.components().peekable();
    parts.peek().is_some()
        && parts.all(|part| match part {
            Component::Normal(name) => {
                name.to_str().is_some_and(|name| !name.starts_with('.') && name.chars().all(fits))
            }
            _ => false,
        })
}

fn check_digest(file: &mut File) -> io::Result<()> {
    let damaged = || invalid("it is not a backup, or it is damaged or truncated".to_owned());
    let end = trailer(&Sha256::digest(b""))?.len() as u64;
    let length = file.metadata()?.len().checked_sub(end).ok_or_else(damaged)?;
    let mut digesting = Digesting { inner: io::sink(), digest: Sha256::new() };
    file.rewind()?;
    io::copy(&mut BufReader::with_capacity(1 << 16, file.take(length)), &mut digesting)?;
    let mut found = Vec::new();
    file.seek(SeekFrom::Start(length))?;
    file.take(end + 1).read_to_end(&mut found)?;
    if found == trailer(&digesting.digest.finalize())? { Ok(()) } else { Err(damaged()) }
}

fn trailer(digest: &[u8]) -> io::Result<Vec<u8>> {
    let mut end = Builder::new(Vec::new());
    append_digest(&mut end, digest)?;
    end.into_inner()
}

fn append_digest(archive: &mut Builder<impl Write>, digest: &[u8]) -> io::Result<()> {
    let text = hex::encode(digest) + "\n";
    archive.append_data(&mut header(text.len() as u64), DIGEST, text.as_bytes())
}

fn header(length: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Regular);
    header.set_size(length);
    header.set_mode(0o600);
    header
}

fn invalid(why: String) -> Error {
    Error::new(ErrorKind::InvalidData, why)
}

struct Digesting<W> {
    inner: W,
    digest: Sha256,
}

impl<W: Write> Write for Digesting<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.digest.update(bytes.get(..written).unwrap_or_default());
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// A reader of the length that the header has recorded. A file that grows is cut there; a file that
/// shrinks is an error.
struct Exactly<R> {
    from: R,
    left: u64,
}

impl<R: Read> Read for Exactly<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
        let read = self.from.read(bytes.get_mut(..most).unwrap_or_default())?;
        if read == 0 && most > 0 {
            return Err(Error::new(ErrorKind::UnexpectedEof, "a file was truncated while it was copied"));
        }
        self.left -= read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MADE_AT: Timestamp = Timestamp(1_800_000_000_000);

    fn manifest() -> Manifest {
        Manifest { backup: FORMAT, service: "shop".into(), version: "1".into(), layout: 7, made_at: MADE_AT }
    }

    fn read(path: &Path, write: impl FnOnce(&mut Builder<Digesting<BufWriter<File>>>)) -> io::Result<Vec<String>> {
        let mut archive = ArchiveWriter::begin(File::create(path).unwrap(), &manifest()).unwrap();
        write(&mut archive.0);
        archive.finish().unwrap();
        let mut names = Vec::new();
        ArchiveReader::open(path)?.files(|name, length, bytes| {
            names.push(format!("{} {length} {}", name.display(), io::copy(bytes, &mut io::sink())?));
            Ok(())
        })?;
        Ok(names)
    }

    #[test]
    fn an_archive_is_read_as_written_and_a_growing_file_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("archive");
        let mut archive = ArchiveWriter::begin(File::create(&path).unwrap(), &manifest()).unwrap();
        archive.add(Path::new("audit/audit-2026-07-28.jsonl"), 3, &b"12345"[..]).unwrap();
        let long = "x".repeat(200);
        archive.add(Path::new(&long), 600, &[7; 600][..]).unwrap();
        archive.finish().unwrap();
        let reader = ArchiveReader::open(&path).unwrap();
        assert_eq!((reader.manifest.made_at, &*reader.manifest.service), (MADE_AT, "shop"));
        let mut found = Vec::new();
        let put = |name: &Path, length, bytes: &mut dyn Read| {
            let mut content = Vec::new();
            bytes.read_to_end(&mut content)?;
            found.push((name.to_owned(), length, content));
            Ok(())
        };
        reader.files(put).unwrap();
        let day = ("audit/audit-2026-07-28.jsonl".into(), 3, b"123".to_vec());
        assert_eq!(found, [day, (long.into(), 600, vec![7; 600])]);
    }

    #[test]
    fn a_file_that_shrinks_while_it_is_copied_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let mut archive =
            ArchiveWriter::begin(File::create(folder.path().join("archive")).unwrap(), &manifest()).unwrap();
        assert_eq!(archive.add(Path::new("a"), 3, &b"12"[..]).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }

    #[test]
    fn an_entry_that_is_not_a_plain_file_below_the_folder_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("archive");
        let named = |name: &str| {
            let mut header = header(0);
            let place = header.as_old_mut();
            place.name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_cksum();
            header
        };
        for name in ["/etc/passwd", "../up", "a/../../up", "./a/./../b", "a/.hidden", "a b", "", "a\u{1b}"] {
            let header = named(name);
            let refused = read(&path, |archive| archive.append(&header, io::empty()).unwrap()).unwrap_err();
            assert!(refused.to_string().contains("is not a plain file of a data folder"), "{name}: {refused}");
        }
        for kind in [EntryType::Symlink, EntryType::Link, EntryType::Directory, EntryType::Fifo, EntryType::Char] {
            let mut header = named("link");
            header.set_entry_type(kind);
            header.set_link_name("/etc/passwd").unwrap();
            header.set_cksum();
            read(&path, |archive| archive.append(&header, io::empty()).unwrap()).unwrap_err();
        }
        assert_eq!(read(&path, |archive| archive.append(&named("a/b"), io::empty()).unwrap()).unwrap(), ["a/b 0 0"]);
    }

    #[test]
    fn each_byte_of_an_archive_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("archive");
        let mut archive = ArchiveWriter::begin(File::create(&path).unwrap(), &manifest()).unwrap();
        archive.add(Path::new("a"), 5, &b"12345"[..]).unwrap();
        archive.finish().unwrap();
        let whole = std::fs::read(&path).unwrap();
        ArchiveReader::open(&path).unwrap();
        for at in (0..whole.len()).step_by(7).chain(whole.len() - 2050..whole.len()) {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x20;
            std::fs::write(&path, &bytes).unwrap();
            assert!(ArchiveReader::open(&path).is_err(), "byte {at}");
            std::fs::write(&path, &whole[..at]).unwrap();
            assert!(ArchiveReader::open(&path).is_err(), "cut at {at}");
        }
    }
}
