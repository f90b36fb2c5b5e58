//! The journal: one line of JSON for each request and for each effect. It never contains a password
//! or a token.
//!
//! `kind` is `request` (a call and its answer), `did` (an effect and its time), or `adb` (a service
//! that a client of the adb server asked for).

use serde_json::{Map, Value, json};
use std::collections::VecDeque;
use std::fs::File;
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};

/// Older lines are only in the file.
const KEPT: usize = 500_000;

#[derive(Debug)]
pub(crate) struct Journal {
    lines: Mutex<Lines>,
}

#[derive(Debug)]
struct Lines {
    kept: VecDeque<Value>,
    file: Option<File>,
}

impl Journal {
    pub(crate) fn new(file: Option<File>) -> Self {
        Self { lines: Mutex::new(Lines { kept: VecDeque::new(), file }) }
    }

    /// Writes `at` (milliseconds since the Unix epoch), `kind`, and then `entry`, an object.
    pub(crate) fn write(&self, at: u64, kind: &str, entry: Value) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let mut line = Map::new();
        line.insert("at".to_owned(), at.into());
        line.insert("kind".to_owned(), kind.into());
        if let Value::Object(members) = entry {
            line.extend(members);
        }
        let line = Value::Object(line);
        if let Some(file) = &mut lines.file
            && let Err(error) = file.write_all(format!("{line}\n").as_bytes())
        {
            eprintln!("the journal cannot be written: {error}");
        }
        lines.kept.push_back(line);
        if lines.kept.len() > KEPT {
            lines.kept.pop_front();
        }
    }

    pub(crate) fn show(&self) -> Value {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        json!({"entries": lines.kept})
    }
}
