//! Secrets: values that appear only in the one answer they belong to. Only the copies that this
//! code holds are wiped; `SECURITY.md` names those that others make.

use bytes::Bytes;
use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use std::cell::Cell;
use std::{fmt, mem};
use zeroize::{Zeroize, Zeroizing};

/// A value for one answer, and for no log or error. It is wiped when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret<T: Zeroize>(Zeroizing<T>);

impl<T: Zeroize> Secret<T> {
    /// Hides a value.
    pub fn new(value: T) -> Self {
        Self(Zeroizing::new(value))
    }

    /// Returns the value. The caller is responsible for where it goes.
    pub fn expose(&self) -> &T {
        &self.0
    }
}

impl<T: Zeroize> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

thread_local! {
    /// True if a secret was written since [`Json::of`] began.
    static HAS_SECRET: Cell<bool> = const { Cell::new(false) };
}

impl<T: Zeroize + Serialize> Serialize for Secret<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        HAS_SECRET.set(true);
        T::serialize(&self.0, serializer)
    }
}

/// Enough for any text with a secret. One that grows would leave a copy behind.
const ROOM: usize = 2 << 10;

/// Returns JSON, and true if it contains a secret, which the caller must wipe.
pub fn to_json(value: &impl Serialize) -> serde_json::Result<(String, bool)> {
    let mut json = Json::of(value)?;
    let text = String::from_utf8(mem::take(&mut json.bytes)).map_err(serde_json::Error::custom)?;
    Ok((text, json.has_secret))
}

/// If it contains a secret, it is wiped when it is dropped.
#[derive(Default)]
pub struct Json {
    pub bytes: Vec<u8>,
    pub has_secret: bool,
}

impl Json {
    pub fn of(value: &impl Serialize) -> serde_json::Result<Self> {
        let outer = HAS_SECRET.replace(false);
        let mut json = Self::with_capacity(ROOM, false);
        let done = serde_json::to_writer(&mut json.bytes, value);
        json.has_secret = HAS_SECRET.replace(outer);
        done.map(|()| json)
    }

    #[must_use]
    pub fn with_capacity(bytes: usize, has_secret: bool) -> Self {
        Self { bytes: Vec::with_capacity(bytes), has_secret }
    }

    /// Makes room, and leaves no copy of a secret behind.
    pub fn reserve(&mut self, bytes: usize, has_secret: bool) {
        if self.has_secret && self.bytes.capacity() - self.bytes.len() < bytes {
            let mut larger = Vec::with_capacity(self.bytes.len() + bytes);
            larger.extend_from_slice(&self.bytes);
            mem::replace(&mut self.bytes, larger).zeroize();
        }
        self.bytes.reserve(bytes);
        self.has_secret |= has_secret;
    }
}

impl Drop for Json {
    fn drop(&mut self) {
        if self.has_secret {
            self.bytes.zeroize();
        }
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.has_secret {
            true => f.write_str("[secret]"),
            false => f.write_str(&String::from_utf8_lossy(&self.bytes)),
        }
    }
}

impl From<Json> for Bytes {
    fn from(mut json: Json) -> Self {
        let bytes = mem::take(&mut json.bytes);
        if json.has_secret { Self::from_owner(Zeroizing::new(bytes)) } else { bytes.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[test]
    fn a_secret_does_not_show_itself() {
        assert_eq!(format!("{:?}", Secret::new("hunter2".to_owned())), "[secret]");
    }

    #[derive(Clone)]
    struct Witness(Arc<Mutex<u32>>);

    impl Zeroize for Witness {
        fn zeroize(&mut self) {
            *self.0.lock().unwrap() += 1;
        }
    }

    #[test]
    fn every_copy_of_a_secret_is_wiped_when_it_is_dropped() {
        let wiped = Arc::new(Mutex::new(0));
        let secret = Secret::new(Witness(wiped.clone()));
        drop(secret.clone());
        assert_eq!(*wiped.lock().unwrap(), 1);
        drop(Some(secret));
        assert_eq!(*wiped.lock().unwrap(), 2);
    }

    #[test]
    fn a_text_with_a_secret_is_distinguished_from_one_without() {
        let secret = Secret::new("hunter2".to_owned());
        assert_eq!(to_json(&("a", &secret)).unwrap(), (r#"["a","hunter2"]"#.to_owned(), true));
        assert_eq!(to_json(&"a").unwrap(), (r#""a""#.to_owned(), false));
    }
}
