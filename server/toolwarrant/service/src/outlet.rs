//! Writes to a stream that may be stuck, and never waits for it.
//!
//! A pipe without a reader, a stopped terminal and a full disk accept no data. Lines in an
//! [`Outlet`] wait in memory, up to a limit, while a thread writes them. Lost lines are counted in
//! [`LOST_LINES`].

use std::io::{self, ErrorKind, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};
use toolwarrant_base::ignore_poison;
use toolwarrant_core::counts::LOST_LINES;

/// The same number of bytes can be in the middle of a write.
const WAITING_MAX: usize = 256 << 10;

/// Pause if a nonblocking stream would block, such as a shared terminal.
const RETRY: Duration = Duration::from_millis(20);

#[derive(Clone)]
pub(crate) struct Outlet(Arc<Shared>);

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: Vec<u8>,
    is_writing: bool,
}

impl Outlet {
    /// Starts a thread, which calls `wrote` whenever all waiting lines are written.
    pub(crate) fn start(
        name: &'static str,
        stream: impl Write + Send + 'static,
        wrote: impl Fn() + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let queue = Arc::clone(&shared);
        thread::Builder::new().name(name.to_owned()).spawn(move || queue.write_to(stream, wrote))?;
        Ok(Self(shared))
    }

    pub(crate) fn put(&self, lines: &[u8]) {
        let mut queue = self.0.lock();
        if queue.waiting.len() + lines.len() > WAITING_MAX {
            LOST_LINES.add(count(lines));
        } else {
            queue.waiting.extend_from_slice(lines);
            self.0.changed.notify_all();
        }
    }

    pub(crate) fn flush(&self, end: Instant) {
        let busy = |queue: &mut Queue| queue.is_writing || !queue.waiting.is_empty();
        let patience = end.saturating_duration_since(Instant::now());
        drop(self.0.changed.wait_timeout_while(self.0.lock(), patience, busy));
    }
}

/// Takes one event of the log with each call.
impl Write for &Outlet {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        self.put(lines);
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        ignore_poison(self.queue.lock())
    }

    fn write_to(&self, mut stream: impl Write, wrote: impl Fn()) {
        loop {
            let idle = |queue: &mut Queue| queue.waiting.is_empty();
            let mut queue = ignore_poison(self.changed.wait_while(self.lock(), idle));
            let lines = std::mem::take(&mut queue.waiting);
            queue.is_writing = true;
            drop(queue);
            if write_all(&mut stream, &lines) {
                wrote();
            }
            self.lock().is_writing = false;
            self.changed.notify_all();
        }
    }
}

/// Returns true if no line is lost.
fn write_all(stream: &mut impl Write, lines: &[u8]) -> bool {
    let mut rest = lines;
    loop {
        let written = if rest.is_empty() { stream.flush().map(|()| 0) } else { stream.write(rest) };
        match written {
            Ok(_) if rest.is_empty() => return true,
            Ok(length @ 1..) => rest = &rest[length..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(RETRY),
            Ok(0) | Err(_) => {
                LOST_LINES.add(count(rest).max(1));
                return false;
            }
        }
    }
}

fn count(lines: &[u8]) -> u64 {
    lines.iter().filter(|byte| **byte == b'\n').count() as u64
}
