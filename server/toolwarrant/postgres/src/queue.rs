//! Requests that wait for a connection. Those that arrive while a statement runs share the next.

use crate::connection::{is_refusal, unavailable};
use crate::prepared::PreparedClient;
use crate::reader::ReadingSession;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use tokio_postgres::Error;
use toolwarrant_core::store::StoreError;

/// Further callers wait for a place.
const PLACES: usize = 1024;

pub(crate) const TOGETHER: usize = 128;

/// For an answer, or for a request to be sent.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) type QueuedRequest<Q, A> = (Q, AnswerSender<A>);

pub(crate) struct AnswerSender<A> {
    answer: oneshot::Sender<Result<A, StoreError>>,
    /// Closed once the request is withdrawn.
    begin: Option<oneshot::Sender<()>>,
}

impl<A> AnswerSender<A> {
    /// Returns false if the request is withdrawn. Otherwise it is carried out from then on.
    pub(crate) fn begin(&mut self) -> bool {
        self.begin.take().is_none_or(|begin| begin.send(()).is_ok())
    }

    pub(crate) fn send(self, answer: Result<A, StoreError>) {
        let _ = self.answer.send(answer);
    }
}

pub(crate) struct Queue<Q, A>(mpsc::Sender<QueuedRequest<Q, A>>);

impl<Q, A> Queue<Q, A> {
    pub(crate) fn new() -> (Self, mpsc::Receiver<QueuedRequest<Q, A>>) {
        let (sender, receiver) = mpsc::channel(PLACES);
        (Self(sender), receiver)
    }

    /// Loses only the answer if the future is dropped. After an error, the request may still be
    /// carried out.
    pub(crate) async fn ask(&self, request: Q) -> Result<A, StoreError> {
        timeout(PATIENCE, self.learn_fate(request)).await.unwrap_or_else(|_| Err(no_answer()))
    }

    /// Tells with the error if the request may still be carried out.
    pub(crate) async fn ask_to_write(&self, request: Q) -> Result<A, StoreError> {
        let late = || StoreError::Unanswered(format!("no answer for {} s", PATIENCE.as_secs()));
        timeout(PATIENCE, self.learn_fate(request)).await.unwrap_or_else(|_| Err(late()))
    }

    /// Waits however long that takes. After an error, the request has been carried out already, or
    /// never will be. A request that was not sent in time is withdrawn.
    pub(crate) async fn learn_fate(&self, request: Q) -> Result<A, StoreError> {
        let ((answer, answered), (begin, mut begun)) = (oneshot::channel(), oneshot::channel());
        let gone = || StoreError::Unavailable("a connection of the store has ended; the log says why".to_owned());
        let beginning = async {
            self.0.send((request, AnswerSender { answer, begin: Some(begin) })).await.map_err(|_| gone())?;
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

    pub(crate) fn length(&self) -> usize {
        self.0.max_capacity() - self.0.capacity()
    }
}

impl<Q: Clone + Send + Sync + 'static, A: Send + 'static> Queue<Q, A> {
    /// Takes `read`, which answers many questions with one statement, in their order.
    pub(crate) fn of_reads<F>(reader: &Arc<ReadingSession>, read: fn(Arc<PreparedClient>, Vec<Q>) -> F) -> Self
    where
        F: Future<Output = BatchAnswers<A>> + Send + 'static,
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

/// In the order of the questions.
pub(crate) type BatchAnswers<A> = Result<Vec<Result<A, StoreError>>, Error>;

/// Returns an inner error if the statement is refused.
async fn read_together<Q: Clone, A, F: Future<Output = BatchAnswers<A>>>(
    reader: &ReadingSession,
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
