//! Notices tell other replicas at once what they would otherwise find out when they next look. A
//! lost notice costs time and nothing else.

use crate::connection::unavailable;
use crate::prepared::PreparedClient;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{broadcast, mpsc};
use tokio::time::sleep;
use tokio_postgres::AsyncMessage;
use toolwarrant_core::store::StoreError;
use toolwarrant_tasks::task::TaskId;

/// A fact that a replica tells the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// This task has ended.
    Ended(TaskId),
    /// Applications or keys have changed.
    Directory,
}

/// The word for [`Notice::Directory`]. Other words are ids of tasks.
const DIRECTORY: &str = "directory";

/// Pause after each NOTIFY, because its commit holds a lock of the whole server.
const PAUSE: Duration = Duration::from_millis(20);

/// Most notices in one NOTIFY. Its payload must be shorter than 8,000 bytes.
const TOGETHER: usize = 200;

/// Most notices that wait. Further ones are lost.
pub(crate) const WAITING_MAX: usize = 1_024;

/// Subscribes to the channel of this cluster. Other schemas have channels of their own.
pub(crate) const LISTEN: &str =
    "DO $$ BEGIN EXECUTE format('LISTEN %I', 'toolwarrant ' || 'cluster'::regclass::oid); END $$";

/// Sends notices. The commit waits for no standby, and so others do not wait for its lock.
const NOTIFY: &str = "SELECT set_config('synchronous_commit', 'off', true),
    pg_notify('toolwarrant ' || 'cluster'::regclass::oid, $1)";

/// Sends a payload to the channel.
pub(crate) async fn notify(client: Arc<PreparedClient>, payload: String) -> Result<(), StoreError> {
    client.query_again(NOTIFY, &[&payload]).await.map(drop).map_err(unavailable)
}

/// Starts to send the notices that come from the channel, many in one payload.
pub(crate) fn send<F>(mut notices: mpsc::Receiver<Notice>, send: impl Fn(String) -> F + Send + 'static)
where
    F: Future<Output = Result<(), StoreError>> + Send,
{
    tokio::spawn(async move {
        while let Some(first) = notices.recv().await {
            let more = std::iter::from_fn(|| notices.try_recv().ok());
            let words = std::iter::once(first).chain(more).take(TOGETHER).map(|notice| match notice {
                Notice::Ended(id) => id.to_string(),
                Notice::Directory => DIRECTORY.to_owned(),
            });
            if let Err(error) = send(words.collect::<Vec<_>>().join(" ")).await {
                tracing::debug!(%error, "a notice to other replicas was lost; they look for themselves");
            }
            sleep(PAUSE).await;
        }
    });
}

/// Passes on the notices in a message of the server.
pub(crate) fn hear(message: &AsyncMessage, to: &broadcast::Sender<Notice>) {
    let AsyncMessage::Notification(heard) = message else { return };
    for word in heard.payload().split(' ') {
        let notice = if word == DIRECTORY { Some(Notice::Directory) } else { TaskId::parse(word).map(Notice::Ended) };
        // A command does not listen.
        let _ = notice.map(|notice| to.send(notice));
    }
}
