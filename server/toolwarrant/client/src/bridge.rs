//! The bridge: JSON-RPC messages, one a line, on standard input and output; Streamable HTTP with a
//! key on the other side. Start at [`bridge`].
//!
//! It passes messages and answers on unchanged and does not validate them. It adds the headers that
//! a client of stdio cannot set: the key, the revision, the method and the name. Standard output
//! gets only answers; messages for people go to standard error.
//!
//! A request without a usable answer gets an error in the same format as the server's own. The next
//! request finds out if the server is available again.

mod lines;
mod message;
mod reply;

use crate::connection::{Connection, Repeat};
use crate::error::{ClientError, TOO_LARGE, complain};
use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderValue, StatusCode, request};
use lines::{LONGEST_MESSAGE, Lines};
use message::{Head, Kind, Message, NO_ID};
use reply::Reply;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{OwnedRwLockWriteGuard, OwnedSemaphorePermit, RwLock, Semaphore, mpsc};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;

const IN_FLIGHT: usize = 64;

/// Bytes of requests that wait or are in flight. The bridge reads on when there is room.
const ROOM: usize = 16 << 20;

/// Least share of [`ROOM`] of a request, which also has state besides the body.
const LEAST: usize = 16 << 10;

/// Clients give up on a bridge two seconds after the input has ended.
const GRACE: Duration = Duration::from_secs(1);

/// Runs until the input ends or the output breaks. An output that its reader has closed is not an
/// error. A list of tools adds those that only read to `repeatable`.
pub async fn bridge(
    connection: Connection,
    program: &str,
    repeatable: BTreeMap<String, Repeat>,
    input: impl AsyncRead + Unpin,
    output: impl AsyncWrite + Unpin + Send + 'static,
) -> io::Result<()> {
    let (answers, to_write) = mpsc::channel(IN_FLIGHT);
    let shared = Shared {
        connection,
        program: program.to_owned(),
        revision: Arc::default(),
        repeatable: Mutex::new(repeatable),
        turns: Semaphore::new(IN_FLIGHT),
        in_trouble: AtomicBool::new(false),
        answers,
    };
    let mut bridge = Bridge {
        shared: Arc::new(shared),
        room: Arc::new(Semaphore::new(ROOM)),
        requests: JoinSet::new(),
        in_flight: HashMap::new(),
    };
    let mut writer = tokio::spawn(write(output, to_write));
    let mut lines = Lines::of(BufReader::new(input));
    let ended = loop {
        tokio::select! {
            // Finished requests come first, so that they do not pile up while lines come without a
            // pause.
            biased;
            Some(done) = bridge.requests.join_next_with_id() => {
                let id = done.map_or_else(|error| error.id(), |(id, ())| id);
                bridge.in_flight.retain(|_, request| request.id() != id);
            }
            written = &mut writer => return written?,
            line = lines.next() => match line {
                Ok(Some(line)) => tokio::select! {
                    () = bridge.take(Message::read(line)) => {}
                    written = &mut writer => return written?,
                },
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            },
        }
    };
    let finish = async { while bridge.requests.join_next().await.is_some() {} };
    if timeout(GRACE, finish).await.is_err() {
        let left = bridge.requests.len();
        complain(program, format!("the input has ended; {left} requests without an answer were cancelled"));
    }
    drop(bridge);
    let written = timeout(GRACE, writer).await;
    ended.and(written.unwrap_or(Ok(Ok(())))?)
}

struct Bridge {
    shared: Arc<Shared>,
    room: Arc<Semaphore>,
    requests: JoinSet<()>,
    in_flight: HashMap<String, AbortHandle>,
}

struct Shared {
    connection: Connection,
    program: String,
    /// The revision that `initialize` agreed on. A request that holds it for writing is about to
    /// agree on one, and later requests wait for that.
    revision: Arc<RwLock<Option<HeaderValue>>>,
    repeatable: Mutex<BTreeMap<String, Repeat>>,
    turns: Semaphore,
    in_trouble: AtomicBool,
    answers: mpsc::Sender<Bytes>,
}

impl Bridge {
    async fn take(&mut self, message: Message) {
        if let Kind::Cancel(id) = &message.kind {
            // Over HTTP, closing the connection cancels a request, so the server needs no message.
            if let Some(request) = self.in_flight.remove(id) {
                request.abort();
            }
            return;
        }
        let size = u32::try_from(message.body.len().clamp(LEAST, ROOM)).unwrap_or(u32::MAX);
        let Ok(room) = self.room.clone().acquire_many_owned(size).await else { return };
        let agreement = match message.kind {
            Kind::Initialize => Some(self.shared.revision.clone().write_owned().await),
            _ => None,
        };
        let id = message.ids.first().filter(|id| *id != NO_ID && message.kind != Kind::Batch).cloned();
        let request = self.requests.spawn(self.shared.clone().carry(message, agreement, room));
        if let Some(id) = id {
            self.in_flight.insert(id, request);
        }
    }
}

type Agreement = OwnedRwLockWriteGuard<Option<HeaderValue>>;

impl Shared {
    async fn carry(self: Arc<Self>, message: Message, agreement: Option<Agreement>, _room: OwnedSemaphorePermit) {
        let answer = match self.ask(&message, agreement).await {
            Ok(answer) => answer,
            Err(error) => {
                self.in_trouble.fetch_or(error.code != TOO_LARGE, Relaxed);
                complain(&self.program, &error);
                message.answer(&error.rpc())
            }
        };
        if let Some(answer) = answer {
            // A failure means that the output is broken, which ends the bridge.
            let _ = self.answers.send(answer).await;
        }
    }

    async fn ask(&self, message: &Message, agreement: Option<Agreement>) -> Result<Option<Bytes>, ClientError> {
        if message.body.len() > LONGEST_MESSAGE {
            let why = format!(
                "The message is larger than {} MiB, which servers do not take. Send less at a time.",
                LONGEST_MESSAGE >> 20
            );
            return Err(ClientError::final_one(TOO_LARGE, why));
        }
        let agreed = match &agreement {
            Some(_) => None,
            None => self.revision.read().await.clone(),
        };
        let _turn = self.turns.acquire().await;
        let repeat = self.repeat(&message.kind);
        let head = |request| with_head(request, &message.head, agreed.as_ref());
        let answer = self.connection.post(message.body.clone(), repeat, head).await?;
        if answer.status == StatusCode::UNAUTHORIZED {
            return Err(self.connection.refusal(&answer.key_id));
        }
        let reply = Reply::read(message, &answer.body).ok_or_else(|| self.connection.strange(&answer, repeat))?;
        if self.in_trouble.swap(false, Relaxed) {
            complain(&self.program, "the server answers again");
        }
        if let Some(why) = reply.complaint.as_ref().filter(|_| !answer.status.is_success()) {
            complain(&self.program, why);
        }
        match (&message.kind, agreement) {
            (Kind::Initialize, Some(mut agreement)) => *agreement = reply.revision().or(agreement.take()),
            (Kind::List, _) => {
                self.repeatable().extend(reply.readers().into_iter().map(|tool| (tool, Repeat::Harmless)));
            }
            _ => {}
        }
        Ok(reply.line)
    }

    fn repeat(&self, kind: &Kind) -> Repeat {
        match kind {
            Kind::Call(tool) => self.repeatable().get(tool).copied().unwrap_or(Repeat::Never),
            Kind::Batch => Repeat::Never,
            Kind::Cancel(_) | Kind::Initialize | Kind::List | Kind::Other => Repeat::Harmless,
        }
    }

    fn repeatable(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Repeat>> {
        self.repeatable.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn with_head(request: request::Builder, head: &Head, agreed: Option<&HeaderValue>) -> request::Builder {
    let Head { revision, method, name } = head;
    let headers = [
        ("mcp-protocol-version", revision.as_ref().or(agreed)),
        ("mcp-method", method.as_ref()),
        ("mcp-name", name.as_ref()),
    ];
    headers.into_iter().fold(request, |request, (header, value)| match value {
        Some(value) => request.header(header, value),
        None => request,
    })
}

async fn write(mut output: impl AsyncWrite + Unpin, mut answers: mpsc::Receiver<Bytes>) -> io::Result<()> {
    while let Some(answer) = answers.recv().await {
        let mut line = BytesMut::with_capacity(answer.len() + 1);
        // Line breaks in JSON occur only between its parts, where a space means the same.
        line.extend(answer.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }));
        line.put_u8(b'\n');
        let written = async {
            output.write_all(&line).await?;
            output.flush().await
        };
        match written.await {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            written => written?,
        }
    }
    Ok(())
}
