//! Passes: each lets its holder, who has no key, use one target in one mode on a page of the
//! service.
//!
//! A pass ends with its time, and with the right of the call that issued it. Passes are in memory
//! alone, by the SHA-256 of their tokens, so a restart ends them. The audit has a line when a
//! holder opens the page and one when it is closed. The call that issued the pass pays for the
//! first time, and the budget of its application for each further one. Start at [`Passes`].

use crate::access::Caller;
use crate::catalogue::ToolDef;
use crate::handler::Call;
use serde_json::json;
use serde_json::value::to_raw_value;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use toolwarrant_audit::{AuditHandle, Line};
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::random::Random;
use toolwarrant_base::text::{Secret, WebUrl};
use toolwarrant_base::{hex, ignore_poison};

/// Beyond either, an application that has most gives up its oldest, first one that nobody uses.
const PASSES_MAX: usize = 10_000;
const PASSES_MAX_PER_APPLICATION: usize = 1_000;

/// A page that asks for nothing in this time was closed.
const CLOSED_AFTER: Duration = Duration::from_secs(15);

/// The passes that handlers issue, and the page that they open. Clones share them.
#[derive(Clone)]
pub struct Passes(Arc<PassStore>);

impl fmt::Debug for Passes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Passes").finish_non_exhaustive()
    }
}

struct PassStore {
    clock: Clock,
    random: Random,
    /// Of tokens: empty without a cell.
    prefix: String,
    /// `None` if browsers cannot reach the page safely.
    url: Option<WebUrl>,
    live: Mutex<HashMap<[u8; 32], Arc<Pass>>>,
    opened: Notify,
    closing: watch::Sender<bool>,
}

/// The content of a pass.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// The path of the page, such as `/door`.
    pub path: &'static str,
    /// The acts that the holder may do, as a name.
    pub mode: &'static str,
    /// The time until the pass ends, used or not.
    pub lasts: Duration,
}

/// An issued pass.
#[derive(Debug)]
pub struct Issued {
    /// 64 hexadecimal digits; in a cell, `pass_`, the name of the cell and `_` before them, as in
    /// the ids of keys.
    pub token: Secret<String>,
    /// The page, with the token in its fragment.
    pub url: Secret<WebUrl>,
    /// When the pass ends.
    pub expires_at: Timestamp,
}

/// The reason that no pass was issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPass {
    /// The public URL is neither https nor on this machine.
    #[error("the public URL is neither https nor on this machine, so there is no page")]
    NoPage,
    /// The tool has no target.
    #[error("the call has no target")]
    NoTarget,
    /// The system gives no randomness.
    #[error("the system gives no randomness")]
    NoRandomness,
}

impl Passes {
    /// Makes a store of passes. `url` is the public URL. Without https, only a page on this machine
    /// is offered. Tokens have the name of the cell, by which a balancer leads requests.
    #[must_use]
    pub fn new(clock: Clock, random: Random, url: &str, cell: Option<&str>) -> Self {
        let url = WebUrl::of_this_server(url);
        let prefix = cell.map(|name| format!("pass_{name}_")).unwrap_or_default();
        Self(Arc::new(PassStore {
            clock,
            random,
            prefix,
            url,
            live: Mutex::default(),
            opened: Notify::new(),
            closing: watch::Sender::new(false),
        }))
    }

    /// Returns true if passes can be issued.
    #[must_use]
    pub fn have_page(&self) -> bool {
        self.0.url.is_some()
    }

    /// Issues a pass for the target of this call.
    ///
    /// # Errors
    /// There is no page, no target, or no randomness.
    pub fn issue(&self, call: &Call<'_>, opening: Opening) -> Result<Issued, NoPass> {
        let PassStore { clock, random, prefix, url, .. } = &*self.0;
        let Opening { path, mode, lasts } = opening;
        let url = url.as_ref().ok_or(NoPass::NoPage)?;
        let target = call.notes().0.ok_or(NoPass::NoTarget)?.into();
        let bytes = Secret::new(random.bytes::<32>().map_err(|_| NoPass::NoRandomness)?);
        let digits = Secret::new(hex::encode(bytes.expose()));
        let token = Secret::new([prefix, &**digits.expose()].concat());
        let expires_at = clock.latest().plus(lasts);
        let expires_at = call.caller.expires_at().map_or(expires_at, |end| end.min(expires_at));
        let (mut caller, request_id) = (call.caller.clone(), call.request_id.into());
        caller.nonce = None;
        let pass = Pass { caller, tool: call.tool, target, mode, request_id, expires_at, uses: Mutex::default() };
        let mut live = self.live();
        live.retain(|_, pass| pass.is_open() || (pass.expires_at > clock.latest() && !pass.uses().ended));
        make_room(&live, &call.caller.application.id);
        live.insert(Sha256::digest(bytes.expose()).into(), Arc::new(pass));
        Ok(Issued { url: url.open(path, &token), token, expires_at })
    }

    pub(crate) fn find(&self, token: &str) -> Option<Arc<Pass>> {
        let bytes = Secret::new(hex::decode(token.strip_prefix(&*self.0.prefix)?)?);
        let digest: [u8; 32] = Sha256::digest(bytes.expose()).into();
        let found = self.live().get(&digest).cloned();
        found.filter(|pass| pass.expires_at > self.0.clock.latest() && !pass.uses().ended)
    }

    pub(crate) fn end(&self, pass: &Pass) {
        pass.uses().ended = true;
        self.0.opened.notify_one();
    }

    /// Ends those whose right has ended.
    pub(crate) fn end_all(&self, has_ended: impl Fn(&Pass) -> bool) {
        self.live().values().filter(|pass| has_ended(pass)).for_each(|pass| self.end(pass));
    }

    /// Answers all requests that are held, because the server stops.
    pub fn close(&self) {
        self.0.closing.send_replace(true);
    }

    pub(crate) async fn wait_for_close(&self) {
        // The sender is in `self`.
        let _ = self.0.closing.subscribe().wait_for(|closes| *closes).await;
    }

    pub(crate) fn note_opened(&self) {
        self.0.opened.notify_one();
    }

    pub(crate) async fn wait_for_opened(&self) {
        self.0.opened.notified().await;
    }

    /// Writes the lines of pages that were closed, and forgets passes that have ended. Returns true
    /// if a page is open.
    pub(crate) fn sweep(&self, audit: &AuditHandle, closes_all: bool) -> bool {
        let (now, latest) = self.0.clock.now_and_latest(self.0.clock.uptime());
        let mut live = self.live();
        live.retain(|_, pass| {
            let is_over = pass.expires_at <= latest;
            pass.close(audit, (now, latest), is_over || closes_all);
            !is_over && !pass.uses().ended
        });
        live.values().any(|pass| pass.is_open())
    }

    fn live(&self) -> MutexGuard<'_, HashMap<[u8; 32], Arc<Pass>>> {
        ignore_poison(self.0.live.lock())
    }
}

/// Ends a pass if there is no room for another one of `issuer`. Its line is still to be written.
fn make_room(live: &HashMap<[u8; 32], Arc<Pass>>, issuer: &str) {
    let passes = || live.values().filter(|pass| !pass.uses().ended);
    let mut held = HashMap::from([(issuer, 1)]);
    passes().for_each(|pass| *held.entry(pass.application()).or_default() += 1);
    let Some(most) = excess(held.values()) else { return };
    let given_up = passes().filter(|pass| held.get(pass.application()) == Some(&most));
    if let Some(oldest) = given_up.min_by_key(|pass| (pass.is_open(), pass.expires_at)) {
        oldest.uses().ended = true;
    }
}

/// Returns the most passes of an application if these, or those of all, are too many.
fn excess<'a>(held: impl Iterator<Item = &'a usize> + Clone) -> Option<usize> {
    let most = held.clone().copied().max()?;
    (most > PASSES_MAX_PER_APPLICATION || held.sum::<usize>() > PASSES_MAX).then_some(most)
}

/// A pass that was issued and has not ended.
pub struct Pass {
    pub(crate) caller: Caller,
    pub(crate) tool: &'static ToolDef,
    target: Box<str>,
    mode: &'static str,
    request_id: Box<str>,
    expires_at: Timestamp,
    uses: Mutex<Uses>,
}

#[derive(Default)]
struct Uses {
    opened: Option<Timestamp>,
    was_opened: bool,
    ended: bool,
    running: usize,
    last: Timestamp,
    from: Option<IpAddr>,
    reads: u64,
    inputs: u64,
    second: (u64, u32, u32),
}

impl Pass {
    /// The id of the target.
    #[must_use]
    pub fn target(&self) -> &str {
        &self.target
    }

    /// The mode in which it was issued.
    #[must_use]
    pub fn mode(&self) -> &'static str {
        self.mode
    }

    /// The id of the application.
    #[must_use]
    pub fn application(&self) -> &str {
        &self.caller.application.id
    }

    /// When it ends.
    #[must_use]
    pub fn expires_at(&self) -> Timestamp {
        self.expires_at
    }

    /// Counts something that was shown, for the audit.
    pub fn note_read(&self) {
        self.uses().reads += 1;
    }

    /// Counts an input, for the audit.
    pub fn note_input(&self) {
        self.uses().inputs += 1;
    }

    /// Returns true if this request, an input or not, is one of at most `most` such in this second.
    pub(crate) fn take_turn(&self, now: Timestamp, is_input: bool, most: u32) -> bool {
        let (second, mut uses) = (now.0 / 1_000, self.uses());
        if uses.second.0 != second {
            uses.second = (second, 0, 0);
        }
        let count = if is_input { &mut uses.second.2 } else { &mut uses.second.1 };
        *count += 1;
        *count <= most
    }

    pub(crate) fn is_open(&self) -> bool {
        self.uses().opened.is_some()
    }

    /// Returns the number of requests at present, this one included.
    pub(crate) fn enter(&self) -> usize {
        let mut uses = self.uses();
        uses.running += 1;
        uses.running
    }

    /// Returns true if the page was closed before. Only the first time is free of `charge`.
    pub(crate) fn open<E>(
        &self,
        now: Timestamp,
        from: Option<IpAddr>,
        charge: impl FnOnce() -> Result<(), E>,
    ) -> Result<bool, E> {
        let mut uses = self.uses();
        let opens = uses.opened.is_none();
        if opens {
            if uses.was_opened {
                charge()?;
            }
            (uses.opened, uses.was_opened, uses.from, uses.reads, uses.inputs) = (Some(now), true, from, 0, 0);
        }
        Ok(opens)
    }

    pub(crate) fn leave(&self, now: Timestamp) {
        let mut uses = self.uses();
        uses.running -= 1;
        uses.last = now;
    }

    fn close(&self, audit: &AuditHandle, (now, latest): (Timestamp, Timestamp), at_once: bool) {
        let mut uses = self.uses();
        let Some(opened) = uses.opened else { return };
        let is_idle = uses.running == 0 && now.since(uses.last) >= CLOSED_AFTER;
        if at_once || uses.ended || is_idle {
            uses.opened = None;
            let (reads, inputs, seconds) = (uses.reads, uses.inputs, now.since(opened).as_secs());
            let event =
                json!({"event": "closed", "mode": self.mode, "reads": reads, "inputs": inputs, "seconds": seconds});
            self.line(&event, latest, uses.from, |line| audit.write(line));
        }
    }

    /// Passes on the line of an event.
    pub(crate) fn line<T>(
        &self,
        event: &serde_json::Value,
        time: Timestamp,
        from: Option<IpAddr>,
        write: impl FnOnce(&Line<'_>) -> T,
    ) -> T {
        let arguments = to_raw_value(event).ok();
        write(&Line {
            time,
            request_id: &self.request_id,
            application: &self.caller.application.id,
            key_id: &self.caller.key_id,
            tool: self.tool.name,
            target: Some(&self.target),
            arguments: arguments.as_deref(),
            outcome: "ok",
            task_id: None,
            from,
            calls: 1,
        })
    }

    fn uses(&self) -> MutexGuard<'_, Uses> {
        ignore_poison(self.uses.lock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_applications_that_have_most_give_up_a_pass() {
        let cases = [
            (vec![(1, 1_000)], None),
            (vec![(1, 1_001), (3, 1_000)], Some(1_001)),
            (vec![(10, 1_000)], None),
            (vec![(10, 1_000), (1, 1)], Some(1_000)),
            (vec![(19, 500), (1, 499), (1, 2)], Some(500)),
            (vec![(10_000, 1)], None),
        ];
        for (applications, expected) in cases {
            let held: Vec<_> = applications.iter().flat_map(|(count, passes)| vec![*passes; *count]).collect();
            assert_eq!(excess(held.iter()), expected, "{applications:?}");
        }
    }
}
