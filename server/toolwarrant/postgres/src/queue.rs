//! Requests that wait for a connection. Those that arrive while a statement runs share the next.

use crate::connection::{is_refusal, unavailable};
use crate::prepared::PreparedClient;
use crate::reader::Reader;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_postgres::Error;
use toolwarrant_core::store::StoreError;

/// Maximum number of waiting requests. Further callers wait for a place.
const PLACES: usize = 1024;

/// Most requests in a statement.
pub(crate) const TOGETHER: usize = 128;

/// Time for which a caller waits for its answer, or for its request to be sent.
const PATIENCE: Duration = Duration::from_secs(5);

/// A request with the channel for its answer.
pub(crate) type QueuedRequest<Q, A> = (Q, Reply<A>);

/// The channel for the answer to a request.
pub(crate) struct Reply<A> {
    answer: oneshot::Sender<Result<A, StoreError>>,
    /// Tells that the request is carried out. Closed once it is withdrawn.
    begin: Option<oneshot::Sender<()>>,
}

impl<A> Reply<A> {
    /// Returns true, unless the request is withdrawn. It is carried out from then on.
    pub(crate) fn begin(&mut self) -> bool {
        self.begin.take().is_none_or(|begin| begin.send(()).is_ok())
    }

    /// Answers the request, if somebody waits.
    pub(crate) fn send(self, answer: Result<A, StoreError>) {
        let _ = self.answer.send(answer);
    }
}

/// The sending end of a queue.
pub(crate) struct Queue<Q, A>(mpsc::Sender<QueuedRequest<Q, A>>);

impl<Q, A> Queue<Q, A> {
    /// Returns both ends of a queue.
    pub(crate) fn new() -> (Self, mpsc::Receiver<QueuedRequest<Q, A>>) {
        let (sender, receiver) = mpsc::channel(PLACES);
        (Self(sender), receiver)
    }

    /// Returns the answer to a request. If the future is dropped, only the answer is lost. After an
    /// error, the request may still be carried out.
    pub(crate) async fn ask(&self, request: Q) -> Result<A, StoreError> {
        timeout(PATIENCE, self.learn_fate(request)).await.unwrap_or_else(|_| Err(no_answer()))
    }

    /// The same, and tells with the error if the request may still be carried out.
    pub(crate) async fn ask_to_write(&self, request: Q) -> Result<A, StoreError> {
        let late = || StoreError::Unanswered(format!("no answer for {} s", PATIENCE.as_secs()));
        timeout(PATIENCE, self.learn_fate(request)).await.unwrap_or_else(|_| Err(late()))
    }

    /// Returns the answer to a request, however long that takes. After an error, the request has
    /// been carried out already, or never will be. One that was not sent in time is withdrawn.
    pub(crate) async fn learn_fate(&self, request: Q) -> Result<A, StoreError> {
        let ((answer, answered), (begin, mut begun)) = (oneshot::channel(), oneshot::channel());
        let gone = || StoreError::Unavailable("a connection of the store has ended; the log says why".to_owned());
        let beginning = async {
            self.0.send((request, Reply { answer, begin: Some(begin) })).await.map_err(|_| gone())?;
            (&mut begun).await.map_err(|_| gone())
        };
        match timeout(PATIENCE, beginning).await {
            Ok(begun) => begun?,
            Err(_) => {
                begun.close();
                begun.try_recv().map_err(|_| no_answer())?;
            }
        }
        answered.await.map_err(|_| gone())?
    }

    /// Returns the number of waiting requests.
    pub(crate) fn length(&self) -> usize {
        self.0.max_capacity() - self.0.capacity()
    }
}

impl<Q: Clone + Send + Sync + 'static, A: Send + 'static> Queue<Q, A> {
    /// Starts to answer questions. `read` answers many with one statement, in their order.
    pub(crate) fn of_reads<F>(reader: &Arc<Reader>, read: fn(Arc<PreparedClient>, Vec<Q>) -> F) -> Self
    where
        F: Future<Output = Answers<A>> + Send + 'static,
    {
        let (queue, mut received) = Self::new();
        let reader = Arc::clone(reader);
        tokio::spawn(async move {
            while let Some(first) = received.recv().await {
                let more = std::iter::from_fn(|| received.try_recv().ok());
                let waiting = std::iter::once(first).chain(more);
                let waiting = waiting.filter_map(|(question, mut reply)| reply.begin().then_some((question, reply)));
                let (questions, replies): (Vec<Q>, Vec<_>) = waiting.take(TOGETHER).unzip();
                let answers = match read_together(&reader, read, questions.clone()).await {
                    // It was refused for one of them.
                    Ok(Err(_)) if questions.len() > 1 => {
                        let mut answers = Vec::new();
                        for question in questions {
                            let alone = read_together(&reader, read, vec![question]).await.flatten();
                            answers.extend(alone.unwrap_or_else(|error| vec![Err(error)]));
                        }
                        answers
                    }
                    read => {
                        read.flatten().unwrap_or_else(|error| questions.iter().map(|_| Err(error.clone())).collect())
                    }
                };
                replies.into_iter().zip(answers).for_each(|(reply, answer)| reply.send(answer));
            }
        });
        queue
    }
}

fn no_answer() -> StoreError {
    StoreError::Unavailable(format!("no answer for {} s", PATIENCE.as_secs()))
}

/// The answers to questions, in their order, or the failure of their statement.
pub(crate) type Answers<A> = Result<Vec<Result<A, StoreError>>, Error>;

/// Reads the answers with one statement. The inner error is a refusal of the statement.
async fn read_together<Q: Clone, A, F: Future<Output = Answers<A>>>(
    reader: &Reader,
    read: fn(Arc<PreparedClient>, Vec<Q>) -> F,
    questions: Vec<Q>,
) -> Result<Result<Vec<Result<A, StoreError>>, StoreError>, StoreError> {
    let read = |client| {
        let reading = read(client, questions.clone());
        async move {
            match reading.await {
                Ok(answers) => Ok(Ok(answers)),
                Err(error) if is_refusal(&error) => Ok(Err(unavailable(error))),
                Err(error) => Err(unavailable(error)),
            }
        }
    };
    reader.read(read).await
}
