//! Shared folders, which answer calls and carry writes out.

use crate::contract::*;
use std::path::{Path, PathBuf};
use std::{fs, io};
use toolwarrant::BoxFuture;
use toolwarrant::handler::{Call, Caller, Flag, Picture, Reply, Resource, Target, Unresolved};
use toolwarrant::tasks::{Executor, Leave, Reading, Sent, Verdict, Write};

const LISTED: usize = 500;
const SHOWN: usize = 30_000;
const MISSING: &str = "the share has no such file";

/// The folder of a share.
type Root = Target<PathBuf>;

/// Each folder in it is a share.
pub struct Files(pub PathBuf);

impl Files {
    fn share(&self, id: &ShareId) -> Option<PathBuf> {
        self.0.join(id.as_str()).canonicalize().ok().filter(|share| share.is_dir())
    }

    fn order(&self, write: &Write) -> Option<(PathBuf, FileText)> {
        let Command::WriteFile(args) = Command::read(&write.tool, write.arguments.expose())?;
        Some((place(&self.share(&args.share_id)?, &args.name)?, args.text))
    }
}

/// Leaves out `.` and `..`, and hidden files.
fn place(share: &Path, name: &FileName) -> Option<PathBuf> {
    (!name.as_str().starts_with('.')).then(|| share.join(name.as_str()))
}

fn find(share: &Path, name: &FileName) -> Option<PathBuf> {
    // A link may lead out of the share.
    place(share, name).filter(|file| file.symlink_metadata().is_ok_and(|file| file.is_file()))
}

fn entry(file: &Path) -> Option<FileEntry> {
    let name = FileName::new(file.file_name()?.to_str()?).ok()?;
    let size = file.symlink_metadata().ok().filter(|file| file.is_file())?.len();
    Some(FileEntry { name, size: size.try_into().ok()? })
}

/// Returns `None` if an old text does not stand exactly once.
fn replace(text: String, edits: &[Edit]) -> Option<String> {
    edits.iter().try_fold(text, |text, Edit { old_text, new_text }| {
        let is_single = text.matches(old_text.as_str()).count() == 1;
        is_single.then(|| text.replacen(old_text.as_str(), new_text.as_str(), 1))
    })
}

/// Replaces the file as a whole, so that no reader sees a half of it.
fn overwrite(file: &Path, text: &str) -> io::Result<()> {
    // No client can name it.
    let next = file.with_extension("~");
    fs::write(&next, text).and_then(|()| fs::rename(next, file))
}

fn is_changeable(share: &Path) -> bool {
    share.metadata().is_ok_and(|folder| !folder.permissions().readonly())
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

impl FilesTools for Files {
    async fn list_files(&self, _: &Call<'_>, at: &Root, args: ListFilesArgs) -> Result<Reply<Share>, ListFilesError> {
        let files = fs::read_dir(&**at).map_err(|why| ListFilesError::Internal(why.to_string().into()))?;
        let files = files.flatten().filter_map(|file| entry(&file.path())).take(LISTED).collect();
        let capabilities = ShareCapabilities { change: is_changeable(at) };
        Ok(Share { share_id: args.share_id, files, capabilities }.into())
    }

    async fn read_text_file(
        &self,
        _: &Call<'_>,
        at: &Root,
        ReadTextFileArgs { name, from, .. }: ReadTextFileArgs,
    ) -> Result<Reply<FilePart>, ReadTextFileError> {
        let text = find(at, &name).and_then(|file| fs::read_to_string(file).ok());
        let text = text.ok_or_else(|| ReadTextFileError::NoSuchFile { what: MISSING.into() })?;
        let (mut content, mut next) = (String::new(), None);
        for (number, line) in (1..).zip(text.split_inclusive('\n')).skip_while(|(number, _)| *number < from) {
            if !content.is_empty() && content.len() + line.len() > SHOWN {
                next = Some(number);
                break;
            }
            content += line;
        }
        Ok(FilePart { content: content.into(), next }.into())
    }

    async fn look_at_picture(
        &self,
        _: &Call<'_>,
        at: &Root,
        LookAtPictureArgs { name, .. }: LookAtPictureArgs,
    ) -> Result<Reply<PictureFile>, LookAtPictureError> {
        let missing = |what: &'static str| LookAtPictureError::NoSuchFile { what: what.into() };
        let bytes = find(at, &name).and_then(|file| fs::read(file).ok()).ok_or_else(|| missing(MISSING))?;
        let picture = Picture::read(bytes).await.map_err(|_| missing("the picture is broken or too large"))?;
        Ok(PictureFile { name, picture }.into())
    }

    async fn edit_file(&self, _: &Call<'_>, at: &Root, args: EditFileArgs) -> Result<Reply<FileEntry>, EditFileError> {
        let missing = || EditFileError::NoSuchFile { what: MISSING.into() };
        let file = find(at, &args.name).ok_or_else(missing)?;
        let text = fs::read_to_string(&file).map_err(|_| missing())?;
        let text = replace(text, &args.edits)
            .ok_or_else(|| EditFileError::NoSingleMatch { what: "an old text stands there never or twice".into() })?;
        overwrite(&file, &text).map_err(|why| EditFileError::Internal(why.to_string().into()))?;
        entry(&file).map(Reply::from).ok_or_else(missing)
    }

    async fn write_file(&self, _: &Call<'_>, _: &Root, args: WriteFileArgs) -> Result<Command, WriteFileError> {
        Ok(Command::WriteFile(args))
    }
}

impl Executor for Files {
    fn send<'a>(&'a self, write: &'a Write, leave: Leave) -> BoxFuture<'a, Sent> {
        Box::pin(async move {
            let Some((file, text)) = self.order(write) else { return Sent::NotSent("it has no place".into()) };
            match leave.confirm().map(|()| overwrite(&file, text.as_str())) {
                Ok(Ok(())) => Sent::Ok,
                Ok(Err(why)) => Sent::Err(why.to_string().into()),
                Err(why) => Sent::NotSent(why),
            }
        })
    }

    fn probe<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Reading> {
        Box::pin(async move {
            let (verdict, observed) = match self.order(write).map(|(file, text)| (fs::read_to_string(file), text)) {
                Some((Ok(seen), text)) if seen == text.as_str() => (Verdict::Present, "this text"),
                Some((Ok(_), _)) => (Verdict::Absent, "another text"),
                Some((Err(why), _)) if why.kind() == io::ErrorKind::NotFound => (Verdict::Absent, "no file"),
                Some((Err(_), _)) | None => (Verdict::Unreadable, "no text"),
            };
            Reading { verdict, expected: "this text".into(), observed: observed.into() }
        })
    }
}
