//! A connection that reads, and connects again if it has broken. Statements of many callers are on
//! their way at the same time. Start at [`ReadingSession::read`].

use crate::connection::{Server, limit_locks, unavailable, wait_for_standby};
use crate::obstacle::describe_missing_standby;
use crate::prepared::PreparedClient;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::timeout;
use toolwarrant_core::store::StoreError;

pub(crate) struct ReadingSession {
    server: Server,
    /// True if a new connection shows only what a failover to the standby keeps.
    is_kept: bool,
    open: Mutex<Option<Arc<PreparedClient>>>,
}

/// After this time, the next read gets a new connection.
const PATIENCE: Duration = Duration::from_secs(5);

/// Of a statement that may take minutes.
const LOCK_PATIENCE: &str = "500ms";

/// For a new connection to have what a failover keeps. It leaves a read the time to say why it has
/// not.
const STANDBY_PATIENCE: Duration = Duration::from_secs(2);

impl ReadingSession {
    pub(crate) fn new(server: &Server) -> Self {
        Self { server: server.clone(), is_kept: false, open: Mutex::new(None) }
    }

    /// Shows only what a failover to the standby keeps: for answers to clients.
    pub(crate) fn of_kept_data(server: &Server) -> Self {
        Self { is_kept: true, ..Self::new(server) }
    }

    pub(crate) async fn read<T, F>(&self, work: impl Fn(Arc<PreparedClient>) -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        self.read_within(PATIENCE, work).await
    }

    pub(crate) async fn read_within<T, F>(
        &self,
        patience: Duration,
        work: impl Fn(Arc<PreparedClient>) -> F,
    ) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let read = async {
            let client = self.client().await?;
            match work(Arc::clone(&client)).await {
                Err(StoreError::Unavailable(_)) if client.is_closed() => work(self.client().await?).await,
                read => read,
            }
        };
        let late = || StoreError::Unavailable(format!("PostgreSQL has not answered for {patience:?}"));
        match timeout(patience, read).await {
            Ok(read) => read,
            Err(_) => {
                if let Some(client) = self.open.lock().await.take() {
                    self.server.cancel(&client);
                }
                Err(late())
            }
        }
    }

    async fn client(&self) -> Result<Arc<PreparedClient>, StoreError> {
        let mut open = self.open.lock().await;
        match &*open {
            Some(client) if !client.is_closed() => Ok(Arc::clone(client)),
            _ => {
                let client = Arc::new(PreparedClient::new(self.server.connect().await?));
                match self.is_kept {
                    true => self.wait_for_standby(&client).await?,
                    false => limit_locks(&client, LOCK_PATIENCE).await?,
                }
                *open = Some(Arc::clone(&client));
                Ok(client)
            }
        }
    }

    async fn wait_for_standby(&self, client: &PreparedClient) -> Result<(), StoreError> {
        let names = client.query_one("SELECT current_setting('synchronous_standby_names')", &[]);
        let names = names.await.map_err(unavailable)?;
        if let Ok(kept) = timeout(STANDBY_PATIENCE, wait_for_standby(client)).await {
            return kept.map_err(unavailable);
        }
        self.server.cancel(client);
        Err(StoreError::Unavailable(match names.get(0) {
            "" => format!("a commit has not ended for {STANDBY_PATIENCE:?}"),
            names => describe_missing_standby(STANDBY_PATIENCE.as_secs(), names),
        }))
    }
}
