//! The key of a client. It is read from the environment or from a file, never from a command line,
//! which every user of a machine can see. Start at [`KeySource::open`].
//!
//! The format is `KEY_ID:SECRET`, or the JSON that `key create --json` prints. Messages and `Debug`
//! output contain no part of the text that was read.

use crate::error::SetupError;
use serde::Deserialize;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use toolwarrant_common::json;

#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    pub id: String,
    secret: String,
}

#[derive(Debug)]
pub struct KeySource {
    origin: Origin,
    latest: Mutex<Arc<ApiKey>>,
}

#[derive(Debug)]
enum Origin {
    Environment(String),
    File(PathBuf),
    /// The server knows the user by the socket.
    #[cfg(unix)]
    Socket,
}

impl ApiKey {
    #[must_use]
    pub fn secret(&self) -> &str {
        &self.secret
    }

    fn parse(text: &str) -> Result<Self, &'static str> {
        #[derive(Deserialize)]
        struct Printed {
            key_id: String,
            secret: String,
        }
        // Editors on Windows begin a file with a byte order mark.
        let text = text.trim_start_matches('\u{feff}').trim();
        let (id, secret) = if text.starts_with('{') {
            let printed: Printed = json::read(text).map_err(|_| "expected the JSON that `key create --json` prints")?;
            (printed.key_id, printed.secret)
        } else {
            let (id, secret) = text.split_once(':').ok_or(EXPECTED)?;
            (id.to_owned(), secret.to_owned())
        };
        let sound = |half: &str| !half.is_empty() && half.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':');
        if sound(&id) && sound(&secret) { Ok(Self { id, secret }) } else { Err(EXPECTED) }
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ApiKey").field("id", &self.id).finish_non_exhaustive()
    }
}

impl KeySource {
    /// Refuses a file that other users can access.
    pub fn open(file: Option<&Path>, variable: &str) -> Result<Self, SetupError> {
        let (origin, key) = match file {
            Some(path) => (Origin::File(path.to_owned()), read(path)?),
            None => {
                let text = std::env::var(variable).unwrap_or_default();
                if text.is_empty() {
                    return Err(SetupError(format!(
                        "no key is given: set {variable} to KEY_ID:SECRET, or name a file that holds it with --key-file"
                    )));
                }
                let malformed = |why| SetupError(format!("{variable} holds no key: {why}"));
                (Origin::Environment(variable.to_owned()), ApiKey::parse(&text).map_err(malformed)?)
            }
        };
        Ok(Self { origin, latest: Mutex::new(Arc::new(key)) })
    }

    /// Names an application in place of a key, for a server that adds the key itself.
    #[cfg(unix)]
    pub(crate) fn of_application(name: &str) -> Self {
        let key = ApiKey { id: name.to_owned(), secret: String::new() };
        Self { origin: Origin::Socket, latest: Mutex::new(Arc::new(key)) }
    }

    #[must_use]
    pub fn latest(&self) -> Arc<ApiKey> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads the file again. Returns `None` if the key is still `refused`.
    pub fn reload(&self, refused: &ApiKey) -> Result<Option<Arc<ApiKey>>, SetupError> {
        let Origin::File(path) = &self.origin else { return Ok(None) };
        let key = Arc::new(read(path)?);
        if *key == *refused {
            return Ok(None);
        }
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = key.clone();
        Ok(Some(key))
    }

    pub(crate) fn how_to_replace(&self) -> String {
        match &self.origin {
            Origin::Environment(variable) => {
                format!("set {variable} to KEY_ID:SECRET of a live key, and start this program again")
            }
            Origin::File(path) => {
                format!("write KEY_ID:SECRET of a live key to {}, which is read again at the next call", path.display())
            }
            Origin::Socket => {
                "let the operator create a key for this application, and start this program again".to_owned()
            }
        }
    }
}

const EXPECTED: &str = "expected KEY_ID:SECRET, both without white space and further colons";

/// A key is one line, so a larger file was named by mistake.
const LONGEST: u64 = 4096;

fn read(path: &Path) -> Result<ApiKey, SetupError> {
    let shown = path.display();
    let unreadable = |error: io::Error| SetupError(format!("the key file {shown} cannot be read: {error}"));
    let malformed = |why| SetupError(format!("the key file {shown} holds no key: {why}"));
    let mut bytes = Vec::new();
    open(path).and_then(|file| file.take(LONGEST + 1).read_to_end(&mut bytes)).map_err(unreadable)?;
    if bytes.len() as u64 > LONGEST {
        return Err(malformed(EXPECTED));
    }
    let text = String::from_utf8(bytes).map_err(|_| malformed("it is not UTF-8; save it as UTF-8 or ASCII text"))?;
    ApiKey::parse(&text).map_err(malformed)
}

/// Leaves the warning about a mounted secret to the server: a client would repeat it at each call.
#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    toolwarrant_base::secret_file::SecretFile::open(path).map(|opened| opened.file)
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

#[cfg(test)]
mod tests {
    use super::ApiKey;

    #[test]
    fn a_key_is_a_pair_or_the_json_that_key_create_prints() {
        let cases = [
            ("key_1:secret_1", true),
            ("  key_1:secret_1\r\n", true),
            ("\u{feff}key_1:secret_1", true),
            (r#"{"key_id":"key_1","secret":"secret_1","note":"the secret is shown this once"}"#, true),
            ("key_1", false),
            (":secret_1", false),
            ("key_1:", false),
            ("key_1:secret:1", false),
            ("key_1:secret 1", false),
            ("key_1:secret_1\nkey_2:secret_2", false),
            ("key_1:s\u{e9}cret", false),
            (r#"{"key_id":"key_1"}"#, false),
            (r#"{"key_id":"key_1","secret":"a:b"}"#, false),
            ("{", false),
            ("", false),
        ];
        for (text, sound) in cases {
            let key = ApiKey::parse(text);
            assert_eq!(key.is_ok(), sound, "{text:?}");
            if let Ok(key) = key {
                assert_eq!((&*key.id, key.secret()), ("key_1", "secret_1"));
                assert!(!format!("{key:?}").contains("secret_1"));
            }
        }
    }
}
