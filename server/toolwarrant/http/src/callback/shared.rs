//! One-time paths of a cluster: each replica knows a path of another one by its code, and notes in
//! a document who has requested it.
//!
//! A path is `/OWNER-SLOT-EPOCH-COUNT-RANDOM-CODE`. The code is a MAC that only replicas can make,
//! so a path that a stranger makes up costs no statement. Documents are never deleted. Therefore a
//! replica draws each path for a slot that no other expected path has, and notes about the slot
//! replace each other. `EPOCH` and `COUNT` order all paths of a replica's name, and a note never
//! replaces one about a later path. Every replica remembers the latest note about each slot. So the
//! same request again costs no statement, and neither does a path whose slot has a later one.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use subtle::ConstantTimeEq;
use tokio::sync::Mutex as TurnMutex;
use tokio::task::yield_now;
use tokio::time::{Instant, timeout};
use toolwarrant_base::{hex, ignore_poison};
use toolwarrant_core::documents::Document;
use toolwarrant_core::sharing::Sharing;

/// The name space of the documents.
const SPACE: &str = "callback";

/// The purposes of the codes.
const CODE_OF_OWNER: &str = "callback owner";
const CODE_OF_PATH: &str = "callback path";

/// Limit on the paths that a replica expects at a time, and so on the documents of its name.
const SLOTS: u16 = 4096;

/// Limit on the slots whose notes are remembered. The slots that are in use fit by far, because a
/// replica takes its lowest free one.
const REMEMBERED: usize = 16 * 1024;

/// Attempts to change a document. One fails only if another request has changed it meanwhile, and
/// two requests from different addresses are the last change for a path.
const ATTEMPTS: usize = 4;

/// The addresses that a note has at most. Two different ones show that a third party repeats
/// requests.
const ADDRESSES: usize = 2;

/// The interval at which the notes are read that somebody waits for.
const READ_EVERY: Duration = Duration::from_millis(150);

/// Time for one statement that reads.
const PATIENCE: Duration = Duration::from_secs(2);

/// The paths of a replica, and its knowledge of the paths of the others.
#[derive(Debug)]
pub(super) struct SharedPaths {
    sharing: Sharing,
    /// Stands for the name of this replica.
    owner: String,
    /// All callers that wait read at multiples of the interval since then, in one statement.
    started: Instant,
    state: Mutex<SharedState>,
    /// The latest reading that has ended, and true if it succeeded. Locked while one reads.
    read: TurnMutex<(u64, bool)>,
}

#[derive(Debug)]
struct SharedState {
    /// The number of paths that this run has drawn.
    drawn: u64,
    free: BTreeSet<u16>,
    /// The keys that the next reading reads, and the number of readings that have begun.
    wanted: BTreeSet<String>,
    begun: u64,
    /// The latest known note for each key.
    notes: HashMap<String, Note>,
}

/// The slot of an expected path. It is free again when this is dropped.
#[derive(Debug)]
pub(super) struct Claim {
    slot: u16,
    key: String,
    paths: Arc<SharedPaths>,
}

/// The content of a document: a path, and the addresses that have requested it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Note {
    path: String,
    from: Vec<IpAddr>,
}

/// The parts of a path.
struct PathParts<'a> {
    signed: &'a str,
    code: &'a str,
    owner: &'a str,
    slot: &'a str,
    /// Epoch and count.
    order: (u64, u64),
}

impl SharedPaths {
    pub(super) fn new(sharing: Sharing) -> Self {
        let code = sharing.authenticate(&[CODE_OF_OWNER, &sharing.member.name()]);
        let owner = hex::encode(&code[..6]);
        let (drawn, begun, wanted, notes) = Default::default();
        let state = Mutex::new(SharedState { drawn, free: (0..SLOTS).collect(), wanted, begun, notes });
        Self { sharing, owner, started: Instant::now(), state, read: TurnMutex::default() }
    }

    /// Draws a path. Returns `None` if too many are expected.
    pub(super) fn draw(self: &Arc<Self>, random: [u8; 8]) -> Option<(String, Claim)> {
        let mut state = self.lock();
        let slot = state.free.pop_first()?;
        state.drawn += 1;
        let (epoch, count) = (self.sharing.member.epoch().0, state.drawn);
        let key = format!("{}-{slot:x}", self.owner);
        let signed = format!("{key}-{epoch:x}-{count:x}-{}", hex::encode(&random));
        let path = format!("/{signed}-{}", self.code(&signed));
        Some((path, Claim { slot, key, paths: Arc::clone(self) }))
    }

    /// Stores that `from` has requested a path of another replica. Returns `None` if the path is
    /// from no other replica, if its slot has a later one, or if the store does not confirm.
    pub(super) async fn note(&self, path: &str, from: IpAddr) -> Option<()> {
        let key = self.key_of(path)?;
        let known = self.lock().notes.get(&key).cloned().unwrap_or_default();
        if known.add(path, from)? == known {
            return Some(());
        }
        let documents = &self.sharing.documents;
        for _ in 0..ATTEMPTS {
            let found = documents.documents(SPACE, vec![key.clone()]).await.ok()?.pop();
            let (version, stored) = found.map(|found| (found.version, Note::decode(&found.body))).unwrap_or_default();
            let next = stored.add(path, from);
            let is_stored = match &next {
                Some(next) if *next != stored => {
                    let document = Document { key: key.clone(), version, body: next.encode() };
                    documents.put_documents(SPACE, vec![document]).await.ok()? == [true]
                }
                _ => true,
            };
            if is_stored {
                self.remember(key, next.clone().unwrap_or(stored));
                return next.map(drop);
            }
        }
        None
    }

    /// Returns the key of the document for a path of another replica.
    fn key_of(&self, path: &str) -> Option<String> {
        let PathParts { signed, code, owner, slot, .. } = PathParts::parse(path)?;
        let is_authentic = bool::from(self.code(signed).as_bytes().ct_eq(code.as_bytes()));
        (is_authentic && owner != self.owner).then(|| format!("{owner}-{slot}"))
    }

    /// Returns 128 bits that only a replica can compute.
    fn code(&self, signed: &str) -> String {
        hex::encode(&self.sharing.authenticate(&[CODE_OF_PATH, signed])[..16])
    }

    fn remember(&self, key: String, note: Note) {
        let notes = &mut self.lock().notes;
        if notes.len() >= REMEMBERED {
            notes.clear();
        }
        notes.insert(key, note);
    }

    fn lock(&self) -> MutexGuard<'_, SharedState> {
        ignore_poison(self.state.lock())
    }
}

impl Claim {
    /// Returns the moment of the next reading of those that wait.
    pub(super) fn next_reading(&self) -> Instant {
        let SharedPaths { started, .. } = *self.paths;
        let number = started.elapsed().as_millis() / READ_EVERY.as_millis() + 1;
        started + READ_EVERY * u32::try_from(number).unwrap_or(u32::MAX)
    }

    /// Reads the notes about this path and about all others whose callers have called this, in one
    /// statement. Calls `record` for each path and address. Returns false if the store did not
    /// answer.
    pub(super) async fn read(&self, record: impl Fn(&str, IpAddr)) -> bool {
        let earlier = {
            let mut state = self.paths.lock();
            state.wanted.insert(self.key.clone());
            state.begun
        };
        // Others that want to read at this moment get their turn to say so.
        yield_now().await;
        let mut read = self.paths.read.lock().await;
        // Another caller's reading counts if it has begun since.
        if read.0 > earlier {
            return read.1;
        }
        let (number, mut keys) = {
            let mut state = self.paths.lock();
            state.begun += 1;
            (state.begun, std::mem::take(&mut state.wanted))
        };
        // A reading that was dropped may have taken it.
        keys.insert(self.key.clone());
        let documents = self.paths.sharing.documents.documents(SPACE, keys.into_iter().collect());
        let found = timeout(PATIENCE, documents).await.ok().and_then(Result::ok);
        *read = (number, found.is_some());
        for Note { path, from } in found.into_iter().flatten().map(|found| Note::decode(&found.body)) {
            from.into_iter().for_each(|from| record(&path, from));
        }
        read.1
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.paths.lock().free.insert(self.slot);
    }
}

impl Note {
    /// Adds a request. Returns `None` if the note is about a later path.
    fn add(&self, path: &str, from: IpAddr) -> Option<Self> {
        let is_same = path == self.path;
        if !is_same && order_of(path) <= order_of(&self.path) {
            return None;
        }
        let mut next = if is_same { self.clone() } else { Self { path: path.to_owned(), from: Vec::new() } };
        if next.from.len() < ADDRESSES && !next.from.contains(&from) {
            next.from.push(from);
        }
        Some(next)
    }

    fn encode(&self) -> Vec<u8> {
        self.from.iter().fold(self.path.clone(), |text, from| format!("{text} {from}")).into_bytes()
    }

    /// Reads the content of a document. One that is damaged is replaced by the next note.
    fn decode(body: &[u8]) -> Self {
        let mut words = str::from_utf8(body).unwrap_or_default().split(' ');
        let path = words.next().unwrap_or_default().to_owned();
        Self { path, from: words.filter_map(|word| word.parse().ok()).collect() }
    }
}

impl<'a> PathParts<'a> {
    fn parse(path: &'a str) -> Option<Self> {
        let (signed, code) = path.strip_prefix('/')?.rsplit_once('-')?;
        let [owner, slot, epoch, count, _] = signed.split('-').collect::<Vec<_>>()[..] else { return None };
        let number = |text| u64::from_str_radix(text, 16).ok();
        Some(Self { signed, code, owner, slot, order: (number(epoch)?, number(count)?) })
    }
}

/// Returns the place of a path among those of its replica's name. Any path comes after no path.
fn order_of(path: &str) -> Option<(u64, u64)> {
    PathParts::parse(path).map(|parts| parts.order)
}
