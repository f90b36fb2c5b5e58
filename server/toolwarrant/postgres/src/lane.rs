//! A lane: one connection that writes. Requests that arrive while a statement runs share the next.
//!
//! Each statement is a numbered batch: it counts the lane's row in `writer` up, from the number
//! before. So it lands once, in order, and never after another process leads. If the connection
//! breaks before the answer, the lane sends the batch again under its number. Then it lands, or the
//! row shows that it had landed.
//!
//! If the server refuses a batch, each of its requests is repeated alone. Start at [`start`].

use crate::connection::{Server, describe, is_refusal, limit_locks, wait_for_standby};
use crate::prepared::PreparedClient;
use crate::queue::{Queue, QueuedRequest, TOGETHER};
use crate::runs::LANDS;
use std::collections::{HashSet, VecDeque};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row};
use toolwarrant_base::ignore_poison;
use toolwarrant_core::counts::Count;
use toolwarrant_core::store::StoreError;

/// The beginning of every batch. Its three parameters come first. The statement must end with rows
/// that begin with `turn.one`, at least one of them if there is a turn.
static TURN: LazyLock<String> = LazyLock::new(|| {
    format!(
        "WITH turn AS (UPDATE writer SET batches = $1::bigint
             WHERE epoch = $2::bigint AND number = $3::integer AND batches = $1::bigint - 1
               AND {LANDS} RETURNING 1 AS one)"
    )
});

pub(crate) fn describe_eviction() -> StoreError {
    StoreError::Unavailable("another process leads".to_owned())
}

const UNSETTLED: &str = "a copy has replaced the server, and this process does not lead there";

/// Then an unanswered batch is sent again on another connection.
const ANSWER_PATIENCE: Duration = Duration::from_secs(10);

/// Then the server refuses a statement that waits for a lock, so its fate is known.
const LOCK_PATIENCE: &str = "4s";

const RECONNECT: Duration = Duration::from_millis(200);

/// Then a refused write is no evidence of a fault any more. Small writes may land meanwhile.
const REFUSAL_SHOWN: Duration = Duration::from_mins(1);

/// For a request that met another one at the same moment.
const ATTEMPTS: u32 = 5;

pub(crate) type Parameter = Box<dyn ToSql + Sync + Send>;

/// Returns true if the batch was refused for its values, or for a conflict with other rows.
fn had_turn(error: &Error) -> bool {
    has_class(error, &["22", "23", "40"])
}

/// Returns true if each of the requests would be refused alone, too: for want of room or of a lock.
fn concerns_all(error: &Error) -> bool {
    has_class(error, &["53", "55"])
}

fn has_class(error: &Error, classes: &[&str]) -> bool {
    error.code().and_then(|code| code.code().get(..2)).is_some_and(|class| classes.contains(&class))
}

pub(crate) fn column<R, T: ToSql + Sync + Send + 'static>(
    rows: impl IntoIterator<Item = R>,
    of: impl Fn(R) -> T,
) -> Parameter {
    Box::new(rows.into_iter().map(of).collect::<Vec<T>>())
}

/// A kind of requests that one statement carries out together.
pub(crate) trait Work: Send + 'static {
    type Request: Send + Sync;
    type Answer: Send;

    /// Returns the statement after [`TURN`].
    fn sql(batch: &[&Self::Request]) -> String;

    /// Returns the parameters, from the fourth on.
    fn parameters(batch: &[&Self::Request]) -> Vec<Parameter>;

    /// Returns names that must differ between the requests of a batch.
    fn names(request: &Self::Request) -> Vec<String>;

    /// Returns true if the request must be a batch of its own.
    fn is_alone(request: &Self::Request) -> bool {
        let _ = request;
        false
    }

    /// Returns the answers, in the order of the batch. `None`: another request was faster, so
    /// repeat this one.
    fn answers(batch: &[&Self::Request], rows: &[Row]) -> Vec<Option<Result<Self::Answer, StoreError>>>;

    /// Takes out of a request what has landed without an answer, before it is repeated.
    fn note_landing(request: &mut Self::Request) {
        let _ = request;
    }

    /// Returns the answer of a request that has landed, and whose answer was lost.
    fn recall(
        client: &Client,
        request: &Self::Request,
    ) -> impl Future<Output = Result<Self::Answer, StoreError>> + Send;

    /// Converts a refusal of a request that was alone; `None` if it may be repeated.
    fn refusal(request: &Self::Request, error: &Error) -> Option<StoreError>;

    fn failure(request: &Self::Request) -> StoreError {
        let _ = request;
        StoreError::Unavailable("other requests were faster each time".to_owned())
    }
}

type QueuedWork<W> = QueuedRequest<<W as Work>::Request, <W as Work>::Answer>;

#[derive(Debug, Default)]
pub(crate) struct LaneFacts {
    /// Set once another process leads.
    pub(crate) evicted: watch::Sender<bool>,
    /// Set once the store lacks a batch that it had acknowledged.
    pub(crate) has_forgotten: AtomicBool,
    /// Set once the fate of a change by an operator is unknown.
    pub(crate) unknown_fate: watch::Sender<Option<String>>,
    pub(crate) commits: Count,
    pub(crate) requests: Count,
    /// Refused, or with a broken connection.
    pub(crate) failures: Count,
    refusal: Mutex<Option<ServerRefusal>>,
}

/// Such as a full disk.
#[derive(Debug)]
struct ServerRefusal {
    at: Instant,
    why: String,
}

impl LaneFacts {
    fn count_commit(&self, requests: usize) {
        self.commits.add(1);
        self.requests.add(requests as u64);
    }

    fn count_refusal(&self, error: &Error) {
        self.failures.add(1);
        if had_turn(error) {
            return;
        }
        let new = ServerRefusal { at: Instant::now(), why: describe(error) };
        let mut known = ignore_poison(self.refusal.lock());
        if known.as_ref().is_none_or(|known| known.why != new.why || known.at.elapsed() > REFUSAL_SHOWN) {
            tracing::error!(why = new.why, "PostgreSQL refuses writes");
        }
        *known = Some(new);
    }

    pub(crate) fn describe_refusal(&self) -> Option<String> {
        let known = ignore_poison(self.refusal.lock());
        let ServerRefusal { at, why, .. } = known.as_ref().filter(|known| known.at.elapsed() < REFUSAL_SHOWN)?;
        Some(format!("PostgreSQL refused a write {} s ago: {why}", at.elapsed().as_secs()))
    }
}

/// The lane ends when this is dropped.
pub(crate) type Lane<W> = Queue<<W as Work>::Request, <W as Work>::Answer>;

pub(crate) fn start<W: Work>(server: &Server, epoch: u64, number: usize, facts: &Arc<LaneFacts>) -> Lane<W> {
    let (requests, mut received) = Queue::new();
    let (server, facts) = (server.clone(), Arc::clone(facts));
    let mut session = LaneSession { server, facts, epoch, number, batches: 0, open: None };
    tokio::spawn(async move {
        // Requests that did not fit into the batch before.
        let mut kept = VecDeque::<QueuedWork<W>>::new();
        loop {
            let first = match kept.pop_front() {
                Some(first) => first,
                None => match received.recv().await {
                    Some(first) => first,
                    None => return,
                },
            };
            let (mut batch, mut names) = (Vec::new(), HashSet::new());
            let mut apart = VecDeque::new();
            let more = std::iter::from_fn(|| kept.pop_front().or_else(|| received.try_recv().ok()));
            for (request, mut reply) in std::iter::once(first).chain(more) {
                let new = W::names(&request);
                let is_alone = batch.first().is_some_and(|(first, _)| W::is_alone(first) || W::is_alone(&request));
                match is_alone || new.iter().any(|name| names.contains(name)) {
                    true => apart.push_back((request, reply)),
                    false if reply.begin() => {
                        names.extend(new);
                        batch.push((request, reply));
                    }
                    false => {}
                }
                if batch.len() == TOGETHER || apart.len() == TOGETHER {
                    break;
                }
            }
            apart.append(&mut kept);
            kept = apart;
            if !batch.is_empty() {
                session.carry_out::<W>(batch).await;
            }
        }
    });
    requests
}

struct LaneSession {
    server: Server,
    facts: Arc<LaneFacts>,
    epoch: u64,
    number: usize,
    batches: u64,
    open: Option<PreparedClient>,
}

enum Fate {
    Landed(Vec<Row>),
    /// It has landed, and its answer was lost.
    AnswerLost,
    /// Nothing was written.
    Refused(Error),
    /// Not sent, or this process may not write any more.
    NotWritten(StoreError),
}

impl LaneSession {
    async fn carry_out<W: Work>(&mut self, mut batch: Vec<QueuedWork<W>>) {
        if batch.len() == 1 {
            for waiting in batch.drain(..) {
                self.carry_out_alone::<W>(waiting).await;
            }
            return;
        }
        let requests: Vec<_> = batch.iter().map(|(request, _)| request).collect();
        let mut has_landed = false;
        let mut answers = match self.send::<W>(&requests).await {
            Fate::Landed(rows) => {
                has_landed = true;
                self.facts.count_commit(batch.len());
                W::answers(&requests, &rows)
            }
            Fate::AnswerLost => {
                let mut recalled = Vec::new();
                for request in requests {
                    recalled.push(Some(self.recall::<W>(request).await));
                }
                recalled
            }
            Fate::Refused(error) => {
                self.facts.count_refusal(&error);
                let refused = requests.iter().filter(|_| concerns_all(&error));
                refused.map(|request| W::refusal(request, &error).map(Err)).collect()
            }
            Fate::NotWritten(why) => {
                self.facts.failures.add(1);
                requests.iter().map(|_| Some(Err(why.clone()))).collect()
            }
        };
        answers.resize_with(batch.len(), || None);
        for ((mut request, reply), answer) in batch.into_iter().zip(answers) {
            match answer {
                Some(answer) => reply.send(answer),
                None => {
                    if has_landed {
                        W::note_landing(&mut request);
                    }
                    self.carry_out_alone::<W>((request, reply)).await;
                }
            }
        }
    }

    /// Tries again a few times if others are faster.
    async fn carry_out_alone<W: Work>(&mut self, (mut request, reply): QueuedWork<W>) {
        let mut answer = None;
        for _ in 0..ATTEMPTS {
            answer = match self.send::<W>(&[&request]).await {
                Fate::Landed(rows) => {
                    self.facts.count_commit(1);
                    let answer = W::answers(&[&request], &rows).pop().flatten();
                    W::note_landing(&mut request);
                    answer
                }
                Fate::AnswerLost => Some(self.recall::<W>(&request).await),
                Fate::Refused(error) => {
                    self.facts.count_refusal(&error);
                    W::refusal(&request, &error).map(Err)
                }
                Fate::NotWritten(why) => {
                    self.facts.failures.add(1);
                    Some(Err(why))
                }
            };
            if answer.is_some() {
                break;
            }
        }
        reply.send(answer.unwrap_or_else(|| Err(W::failure(&request))));
    }

    async fn recall<W: Work>(&self, request: &W::Request) -> Result<W::Answer, StoreError> {
        match &self.open {
            Some(open) => W::recall(open, request).await,
            None => Err(StoreError::Unanswered("the answer of the store was lost".to_owned())),
        }
    }

    /// Sends a batch until its fate is known.
    async fn send<W: Work>(&mut self, batch: &[&W::Request]) -> Fate {
        let (sql, given) = (format!("{}{}", *TURN, W::sql(batch)), W::parameters(batch));
        let next = self.batches + 1;
        let head: [Parameter; 3] =
            [Box::new(next.cast_signed()), Box::new(self.epoch.cast_signed()), Box::new(self.place())];
        let parameters: Vec<&(dyn ToSql + Sync)> =
            head.iter().chain(&given).map(|parameter| &**parameter as &(dyn ToSql + Sync)).collect();
        let mut in_doubt = false;
        loop {
            match self.why_ended() {
                Some(why) if !in_doubt => return Fate::NotWritten(why),
                Some(why) => return Fate::NotWritten(StoreError::Unanswered(why.to_string())),
                None => {}
            }
            match self.query(&sql, &parameters).await {
                Ok(rows) if rows.is_empty() => {
                    if let Some(fate) = self.missing_turn(next, in_doubt).await {
                        return fate;
                    }
                }
                Ok(rows) => {
                    self.batches = next;
                    return Fate::Landed(rows);
                }
                // A statement that had its turn shows that the one before has not landed.
                Err(Broken::Refused(error)) if !in_doubt || had_turn(&error) => return Fate::Refused(error),
                Err(Broken::NotSent(why)) if !in_doubt => return Fate::NotWritten(why),
                Err(Broken::Refused(_) | Broken::NotSent(_)) => sleep(RECONNECT).await,
                Err(Broken::Unanswered) => in_doubt = true,
            }
        }
    }

    fn place(&self) -> i32 {
        i32::try_from(self.number).unwrap_or(i32::MAX)
    }

    fn why_ended(&self) -> Option<StoreError> {
        if *self.facts.evicted.borrow() {
            return Some(describe_eviction());
        }
        let forgotten = self.facts.has_forgotten.load(Relaxed);
        forgotten.then(|| StoreError::Unavailable("the store lacks writes that it had acknowledged".to_owned()))
    }

    /// Finds out why a batch had no turn; `None` if it must be sent again. Only a batch in doubt
    /// can have landed before.
    async fn missing_turn(&mut self, next: u64, in_doubt: bool) -> Option<Fate> {
        let open = self.open.as_ref()?;
        let sql = format!("SELECT batches, {LANDS} FROM writer WHERE epoch = $1 AND number = $2");
        let found = open.query_opt(&sql, &[&self.epoch.cast_signed(), &self.place()]).await;
        match found.map(|row| row.map(|row| (row.get::<_, i64>(0).cast_unsigned(), row.get(1)))) {
            Ok(Some((batches, _))) if batches == next && in_doubt => {
                let standby = timeout(ANSWER_PATIENCE, wait_for_standby(open));
                if !matches!(standby.await, Ok(Ok(()))) {
                    self.give_up();
                    return None;
                }
                self.batches = next;
                return Some(Fate::AnswerLost);
            }
            // Another statement under this number was rolled back meanwhile.
            Ok(Some((batches, true))) if batches + 1 == next => return None,
            Ok(Some((batches, _))) if batches + 1 == next && in_doubt => {
                sleep(RECONNECT).await;
                return None;
            }
            Ok(Some((batches, _))) if batches + 1 == next => {
                return Some(Fate::NotWritten(StoreError::Unavailable(UNSETTLED.to_owned())));
            }
            Ok(Some(_)) => self.facts.has_forgotten.store(true, Relaxed),
            Ok(None) => drop(self.facts.evicted.send_replace(true)),
            Err(_) => {
                self.open = None;
                return None;
            }
        }
        match self.why_ended() {
            Some(why) if in_doubt => Some(Fate::NotWritten(StoreError::Unanswered(why.to_string()))),
            why => why.map(Fate::NotWritten),
        }
    }

    async fn query(&mut self, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Broken> {
        let open = match &mut self.open {
            Some(open) if !open.is_closed() => open,
            _ => {
                let client = self.server.connect().await.map_err(Broken::NotSent)?;
                limit_locks(&client, LOCK_PATIENCE).await.map_err(Broken::NotSent)?;
                self.open.insert(PreparedClient::new(client))
            }
        };
        let statement = match timeout(ANSWER_PATIENCE, open.prepare_once(sql)).await {
            Ok(Ok(statement)) => statement,
            Ok(Err(error)) if is_refusal(&error) => return Err(Broken::Refused(error)),
            Ok(Err(error)) => {
                self.open = None;
                return Err(Broken::NotSent(crate::connection::unavailable(error)));
            }
            Err(_) => {
                self.give_up();
                return Err(Broken::NotSent(StoreError::Unavailable("PostgreSQL does not answer".to_owned())));
            }
        };
        match timeout(ANSWER_PATIENCE, open.query(&statement, parameters)).await {
            Ok(Ok(rows)) => Ok(rows),
            Ok(Err(error)) if is_refusal(&error) => Err(Broken::Refused(error)),
            Ok(Err(_)) | Err(_) => {
                self.give_up();
                Err(Broken::Unanswered)
            }
        }
    }

    fn give_up(&mut self) {
        if let Some(open) = self.open.take() {
            self.server.cancel(&open);
        }
    }
}

enum Broken {
    Refused(Error),
    NotSent(StoreError),
    /// It was sent, and no answer came.
    Unanswered,
}
