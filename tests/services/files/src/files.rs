//! Shared folders, which answer calls and carry writes out.

use crate::contract::*;
use std::fs;
use std::path::{Path, PathBuf};
use toolwarrant::BoxFuture;
use toolwarrant::handler::{Call, Caller, Flag, Picture, Reply, Resource, Target, Unresolved};
use toolwarrant::tasks::{Executor, Leave, Reading, Sent, Verdict, Write};

const LISTED: usize = 500;
const SHOWN: usize = 30_000;
const MISSING: &str = "the share has no such file";

/// Each folder in it is a share.
pub struct Files(PathBuf);

impl Files {
    pub const fn new(root: PathBuf) -> Self {
        Self(root)
    }

    fn share(&self, id: &ShareId) -> Option<PathBuf> {
        self.0.join(id.as_str()).canonicalize().ok().filter(|share| share.is_dir())
    }

    /// Returns the share, and the path of the file to delete.
    fn order(&self, write: &Write) -> Option<(PathBuf, FilePath)> {
        let Command::DeleteFile(DeleteFileArgs { share_id, path, .. }) =
            Command::read(&write.tool, write.arguments.expose())?;
        Some((self.share(&share_id)?, path))
    }
}

/// Finds a file in a share, and none outside of it.
fn find(share: &Path, path: &FilePath) -> Option<PathBuf> {
    let file = share.join(path.as_str()).canonicalize().ok()?;
    (file.starts_with(share) && file.is_file()).then_some(file)
}

fn entry(share: &Path, file: &Path) -> Option<FileEntry> {
    let size = Size::new(file.metadata().ok()?.len().try_into().ok()?).ok()?;
    Some(FileEntry { path: file.strip_prefix(share).ok()?.to_string_lossy().into_owned().into(), size })
}

fn list(share: &Path) -> Vec<FileEntry> {
    let (mut folders, mut found) = (vec![share.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for child in fs::read_dir(folder).into_iter().flatten().flatten() {
            match child.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(child.path()),
                Ok(kind) if kind.is_file() && found.len() < LISTED => found.extend(entry(share, &child.path())),
                _ => {}
            }
        }
    }
    found
}

/// Returns `None` if an old text does not stand exactly once.
fn replace(text: &str, edits: &[Edit]) -> Option<String> {
    edits.iter().try_fold(text.to_owned(), |text, Edit { old_text, new_text }| {
        let mut found = text.match_indices(old_text.as_str());
        let (Some(_), None) = (found.next(), found.next()) else { return None };
        Some(text.replacen(old_text.as_str(), new_text.as_str(), 1))
    })
}

/// Replaces the file as a whole, so that no reader sees a half of it.
fn overwrite(file: &Path, text: &str) -> std::io::Result<()> {
    let next = file.with_extension("next");
    fs::write(&next, text)?;
    fs::rename(next, file)
}

impl Resource<ShareId> for Files {
    type View = PathBuf;
    type Capability = ShareCapability;

    async fn resolve(&self, _: &Caller, id: &ShareId) -> Result<PathBuf, Unresolved> {
        self.share(id).ok_or(Unresolved::NotFound)
    }

    fn flag(share: &PathBuf, ShareCapability::Change: ShareCapability) -> Flag {
        if is_changeable(share) { Flag::Offered } else { Flag::Refused("it can only be read") }
    }
}

fn is_changeable(share: &Path) -> bool {
    share.metadata().is_ok_and(|folder| !folder.permissions().readonly())
}

impl FilesTools for Files {
    async fn list_files(
        &self,
        _: &Call<'_>,
        share: &Target<PathBuf>,
        ListFilesArgs { share_id }: ListFilesArgs,
    ) -> Result<Reply<Share>, ListFilesError> {
        let capabilities = ShareCapabilities { change: is_changeable(share) };
        Ok(Share { share_id, files: list(share), capabilities }.into())
    }

    async fn read_text_file(
        &self,
        _: &Call<'_>,
        share: &Target<PathBuf>,
        ReadTextFileArgs { path, from, .. }: ReadTextFileArgs,
    ) -> Result<Reply<FilePart>, ReadTextFileError> {
        let text = find(share, &path).and_then(|file| fs::read_to_string(file).ok());
        let text = text.ok_or_else(|| ReadTextFileError::NoSuchFile { what: MISSING.into() })?;
        let (mut content, mut next) = (String::new(), None);
        for (number, line) in (1..).zip(text.split_inclusive('\n')).skip_while(|(number, _)| *number < from.get()) {
            if !content.is_empty() && content.len() + line.len() > SHOWN {
                next = Line::new(number).ok();
                break;
            }
            content += line;
        }
        Ok(FilePart { content: content.into(), next }.into())
    }

    async fn look_at_picture(
        &self,
        _: &Call<'_>,
        share: &Target<PathBuf>,
        LookAtPictureArgs { path, .. }: LookAtPictureArgs,
    ) -> Result<Reply<PictureFile>, LookAtPictureError> {
        let bytes = find(share, &path)
            .and_then(|file| fs::read(file).ok())
            .ok_or_else(|| LookAtPictureError::NoSuchFile { what: MISSING.into() })?;
        let picture = Picture::read(bytes)
            .await
            .map_err(|_| LookAtPictureError::NoPicture { what: "the picture is broken or too large".into() })?;
        Ok(PictureFile { path: path.as_str().to_owned().into(), picture }.into())
    }

    async fn edit_file(
        &self,
        _: &Call<'_>,
        share: &Target<PathBuf>,
        EditFileArgs { path, edits, .. }: EditFileArgs,
    ) -> Result<Reply<FileEntry>, EditFileError> {
        let file = find(share, &path).ok_or_else(|| EditFileError::NoSuchFile { what: MISSING.into() })?;
        let text = fs::read_to_string(&file).map_err(|_| EditFileError::NoSuchFile { what: MISSING.into() })?;
        let text = replace(&text, &edits)
            .ok_or_else(|| EditFileError::NoSingleMatch { what: "an old text stands there never or twice".into() })?;
        overwrite(&file, &text).map_err(|why| EditFileError::Internal(why.to_string().into()))?;
        entry(share, &file).map(Reply::from).ok_or_else(|| EditFileError::NoSuchFile { what: MISSING.into() })
    }

    async fn delete_file(
        &self,
        _: &Call<'_>,
        _: &Target<PathBuf>,
        args: DeleteFileArgs,
    ) -> Result<Command, DeleteFileError> {
        Ok(Command::DeleteFile(args))
    }
}

impl Executor for Files {
    fn send<'a>(&'a self, write: &'a Write, leave: Leave) -> BoxFuture<'a, Sent> {
        Box::pin(async move {
            let Some(file) = self.order(write).and_then(|(share, path)| find(&share, &path)) else {
                return Sent::NotSent("no such file".into());
            };
            if let Err(why) = leave.confirm() {
                return Sent::NotSent(why);
            }
            match fs::remove_file(file) {
                Ok(()) => Sent::Ok,
                Err(why) => Sent::Err(why.to_string().into()),
            }
        })
    }

    fn probe<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Reading> {
        Box::pin(async move {
            let (verdict, observed) = match self.order(write) {
                Some((share, path)) if find(&share, &path).is_none() => (Verdict::Present, "no such file"),
                Some(_) => (Verdict::Absent, "the file"),
                None => (Verdict::Unreadable, "no such share"),
            };
            Reading { verdict, expected: "no such file".into(), observed: observed.into() }
        })
    }
}
