//! The door: codes that work once, and the sessions of those who came in. Codes and session ids are
//! kept as hashes, in memory alone, so they end with the server.

use crate::answer::encode;
use sha2::{Digest, Sha256};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use subtle::ConstantTimeEq;
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::random::Random;
use toolwarrant_base::{hex, ignore_poison};
use toolwarrant_core::act::Operator;
use toolwarrant_core::limit::Window;
use toolwarrant_operator::answers::ConsoleSession;

const CODE_LASTS: Duration = Duration::from_secs(60);

const IDLE_MAX: Duration = Duration::from_mins(30);
const SESSION_LASTS: Duration = Duration::from_hours(12);

/// Of one user. The oldest ends for a new one.
const SESSIONS_MAX: usize = 32;
const CODES_MAX: usize = 32;
const FORMS_MAX: usize = 128;

/// Of one user, in all sessions. A browser sends at most 6 at a time.
pub(crate) const PAGES_A_MINUTE: u32 = 300;
const PAGES_AT_ONCE: usize = 8;

pub(crate) struct Door {
    clock: Clock,
    random: Random,
    inside: Mutex<Inside>,
}

#[derive(Default)]
struct Inside {
    codes: VecDeque<Code>,
    sessions: VecDeque<DoorSession>,
    /// The latest pages of users.
    pages: HashMap<u32, Arc<Window>>,
}

struct Code {
    hash: [u8; 32],
    until: Timestamp,
    operator: Operator,
}

struct DoorSession {
    hash: [u8; 32],
    /// The name of the session, which opens nothing.
    id: String,
    operator: Operator,
    began_at: Timestamp,
    used_at: Timestamp,
    /// The ids of forms that were shown and not sent.
    forms: VecDeque<String>,
}

/// A request in a session.
#[derive(Clone)]
pub(crate) struct Visitor {
    pub(crate) session: String,
    pub(crate) operator: Operator,
}

fn hash(text: &str) -> [u8; 32] {
    Sha256::digest(text).into()
}

fn is_same(one: &[u8; 32], other: &[u8; 32]) -> bool {
    one.ct_eq(other).into()
}

/// Drops the first of a user who has `most`, so that no user ends the sessions of another.
fn make_room<T>(queue: &mut VecDeque<T>, most: usize, is_own: impl Fn(&T) -> bool) {
    if queue.iter().filter(|each| is_own(each)).count() >= most
        && let Some(first) = queue.iter().position(is_own)
    {
        queue.remove(first);
    }
}

impl DoorSession {
    fn ends_at(&self) -> Timestamp {
        self.used_at.plus(IDLE_MAX).min(self.began_at.plus(SESSION_LASTS))
    }
}

impl Door {
    pub(crate) fn new(clock: Clock, random: Random) -> Self {
        Self { clock, random, inside: Mutex::default() }
    }

    /// Drops all that has ended before.
    fn inside(&self) -> (MutexGuard<'_, Inside>, Timestamp) {
        let (mut inside, now) = (ignore_poison(self.inside.lock()), self.clock.now());
        inside.codes.retain(|code| code.until > now);
        inside.sessions.retain(|session| session.ends_at() > now);
        (inside, now)
    }

    fn random_text<const N: usize>(&self) -> Result<String, String> {
        self.random.bytes::<N>().map(|bytes| hex::encode(&bytes)).map_err(|error| error.to_string())
    }

    /// Returns the code, and the time until which it works.
    pub(crate) fn make_code(&self, operator: Operator) -> Result<(String, Timestamp), String> {
        let code = self.random_text::<16>()?;
        let (mut inside, now) = self.inside();
        let until = now.plus(CODE_LASTS);
        make_room(&mut inside.codes, CODES_MAX, |code| code.operator.uid == operator.uid);
        inside.codes.push_back(Code { hash: hash(&code), until, operator });
        Ok((code, until))
    }

    /// Returns the user of a code.
    pub(crate) fn user_of(&self, code: &str) -> Option<String> {
        let sent = hash(code);
        let (inside, _) = self.inside();
        inside.codes.iter().find(|code| is_same(&code.hash, &sent)).map(|code| code.operator.name.clone())
    }

    /// Takes a code, and returns the id of a new session for the cookie, with the user's name.
    pub(crate) fn enter(&self, code: &str) -> Option<String> {
        let (random, id) = (self.random_text::<32>().ok()?, self.random_text::<4>().ok()?);
        let sent = hash(code);
        let (mut inside, now) = self.inside();
        let place = inside.codes.iter().position(|code| is_same(&code.hash, &sent))?;
        let Code { operator, .. } = inside.codes.remove(place)?;
        let secret = format!("{random}.{}", encode(&operator.name));
        let (session, role) = (&id, operator.role);
        tracing::info!(session, ?role, operator = operator.name, "a browser enters the console");
        make_room(&mut inside.sessions, SESSIONS_MAX, |session| session.operator.uid == operator.uid);
        inside.sessions.push_back(DoorSession {
            hash: hash(&secret),
            id,
            operator,
            began_at: now,
            used_at: now,
            forms: VecDeque::new(),
        });
        Some(secret)
    }

    /// Returns the visitor with this cookie. A request that waits for a change is no use.
    pub(crate) fn admit(&self, cookie: &str, is_use: bool) -> Option<Visitor> {
        let sent = hash(cookie);
        let (mut inside, now) = self.inside();
        let session = inside.sessions.iter_mut().find(|session| is_same(&session.hash, &sent))?;
        if is_use {
            session.used_at = now;
        }
        Some(Visitor { session: session.id.clone(), operator: session.operator.clone() })
    }

    /// Returns the turn of a page, which lasts until it is dropped. `None` if the user has had too
    /// many.
    pub(crate) fn take_turn(&self, Visitor { operator, .. }: &Visitor) -> Option<Arc<Window>> {
        let (mut inside, now) = self.inside();
        inside.pages.retain(|_, pages| pages.usage(now) > 0 || Arc::strong_count(pages) > 1);
        let pages = inside.pages.entry(operator.uid).or_insert_with(|| Arc::new(Window::new(PAGES_A_MINUTE)));
        let has_turn = Arc::strong_count(pages) <= PAGES_AT_ONCE && pages.admit(None, now, 1).is_ok();
        has_turn.then(|| Arc::clone(pages))
    }

    /// Makes the id of a form. An empty one is never taken.
    pub(crate) fn make_form(&self, visitor: &Visitor) -> String {
        let id = self.random_text::<16>().unwrap_or_default();
        let (mut inside, _) = self.inside();
        if let Some(session) = inside.sessions.iter_mut().find(|session| session.id == visitor.session) {
            session.forms.push_back(id.clone());
            while session.forms.len() > FORMS_MAX {
                session.forms.pop_front();
            }
        }
        id
    }

    /// Returns true for the id of a form the first time that it is sent.
    pub(crate) fn take_form(&self, visitor: &Visitor, id: &str) -> bool {
        let (mut inside, _) = self.inside();
        let session = inside.sessions.iter_mut().find(|session| session.id == visitor.session);
        let place = session.and_then(|session| {
            let place = session.forms.iter().position(|known| known == id && !id.is_empty())?;
            session.forms.remove(place)
        });
        place.is_some()
    }

    pub(crate) fn end(&self, session: Option<&str>) -> Vec<String> {
        let (mut inside, _) = self.inside();
        let is_meant = |known: &DoorSession| session.is_none_or(|id| known.id == id);
        let ended: Vec<_> =
            inside.sessions.iter().filter(|known| is_meant(known)).map(|known| known.id.clone()).collect();
        inside.sessions.retain(|known| !is_meant(known));
        if session.is_none() {
            inside.codes.clear();
        }
        ended
    }

    pub(crate) fn list(&self) -> Vec<ConsoleSession> {
        let (inside, _) = self.inside();
        let line = |session: &DoorSession| {
            let DoorSession { id, operator, began_at, used_at, .. } = session;
            ConsoleSession {
                session: id.clone(),
                by: operator.name.clone(),
                role: operator.role,
                began_at: *began_at,
                used_at: *used_at,
                ends_at: session.ends_at(),
            }
        };
        inside.sessions.iter().map(line).collect()
    }

    pub(crate) fn is_unused(&self) -> bool {
        let (inside, _) = self.inside();
        inside.codes.is_empty() && inside.sessions.is_empty()
    }
}

#[cfg(test)]
mod tests;
