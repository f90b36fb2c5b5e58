//! Credentials that a service needs, such as the key of its account at a platform. They are in a
//! file that only its owner can read, or in the environment, and never in the configuration file.
//! They are wiped when dropped, and appear in no message. Start at [`CredentialSource::read`].

use std::env;
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use toolwarrant_base::secret_file::SecretFile;
use toolwarrant_base::text::Secret;
use zeroize::Zeroizing;

const LONGEST: usize = 4096;

/// The place of a credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CredentialSource {
    /// In this file, for which the rule of [`SecretFile`] holds.
    File(PathBuf),
    /// In the environment variable of this name.
    Environment(String),
}

/// The reason why there is no credential, with advice and without its content.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct CredentialError(String);

impl CredentialSource {
    /// Reads the credential. One line end after it is not part of it. Blocks on the disk.
    ///
    /// # Errors
    /// There is no credential, or other users can use its file.
    pub fn read(&self) -> Result<Secret<String>, CredentialError> {
        match self {
            Self::File(path) => {
                let bytes = read_private(path)?;
                credential(bytes, || format!("the credential file {}", path.display()))
            }
            Self::Environment(name) => {
                let value = env::var_os(name).filter(|value| !value.is_empty());
                let unset = || CredentialError(format!("the environment variable {name} has no value"));
                let value = value.ok_or_else(unset)?;
                credential(Zeroizing::new(value.into_vec()), || format!("the environment variable {name}"))
            }
        }
    }
}

fn credential(mut bytes: Zeroizing<Vec<u8>>, origin: impl Fn() -> String) -> Result<Secret<String>, CredentialError> {
    let malformed = |why| CredentialError(format!("{} does not contain a credential: {why}", origin()));
    if bytes.len() > LONGEST {
        return Err(malformed("it is longer than 4096 bytes"));
    }
    let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let length = line.strip_suffix(b"\r").unwrap_or(line).len();
    bytes.truncate(length);
    if bytes.is_empty() {
        return Err(malformed("it is empty"));
    }
    // The bytes are converted in place, so that no copy of them stays in memory.
    match String::from_utf8(std::mem::take(&mut *bytes)) {
        Ok(text) => Ok(Secret::new(text)),
        Err(error) => {
            drop(Zeroizing::new(error.into_bytes()));
            Err(malformed("it is not UTF-8; save it as UTF-8 or ASCII text"))
        }
    }
}

fn read_private(path: &Path) -> Result<Zeroizing<Vec<u8>>, CredentialError> {
    let unreadable =
        |error: io::Error| CredentialError(format!("cannot read the credential file {}: {error}", path.display()));
    let SecretFile { file, warning } = SecretFile::open(path).map_err(unreadable)?;
    if let Some(warning) = warning {
        tracing::warn!(file = %path.display(), "{warning}");
    }
    let mut bytes = Zeroizing::new(Vec::with_capacity(LONGEST + 2));
    file.take(LONGEST as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_credential_is_read_only_from_a_file_that_other_users_cannot_access() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let source = CredentialSource::File(path.clone());
        let put = |content: &[u8], mode| {
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            source.read().map(|secret| secret.expose().clone()).map_err(|error| error.to_string())
        };
        for (content, credential) in [("s", "s"), ("s t\n", "s t"), ("s\r\n", "s"), ("s\n\n", "s\n")] {
            assert_eq!(put(content.as_bytes(), 0o600).unwrap(), credential);
        }
        assert_eq!(put(b"s", 0o400).unwrap(), "s");
        assert!(put(&[b's'; LONGEST], 0o600).is_ok());
        let exposed = put(b"hidden", 0o640).unwrap_err();
        assert!(exposed.contains("its mode is 0640; run `chmod 600") && !exposed.contains("hidden"), "{exposed}");
        for (content, why) in [
            (&b""[..], "it is empty"),
            (b"\n", "it is empty"),
            (&[b's'; LONGEST + 1], "longer than 4096 bytes"),
            (b"hidden\xff", "not UTF-8"),
        ] {
            let said = put(content, 0o600).unwrap_err();
            assert!(said.contains(why) && !said.contains("hidden"), "{said}");
        }
        assert!(
            CredentialSource::File(folder.path().to_owned()).read().unwrap_err().to_string().contains("not a file")
        );
        let said = CredentialSource::Environment("TOOLWARRANT_NEVER_SET".to_owned()).read().unwrap_err().to_string();
        assert_eq!(said, "the environment variable TOOLWARRANT_NEVER_SET has no value");
    }
}
