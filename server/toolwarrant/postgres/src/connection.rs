//! Connections: where the server is, how a session begins, and what an error says about the
//! statement that met it.

use crate::tls::Encryption;
use std::error::Error as StdError;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tokio_postgres::error::Severity;
use tokio_postgres::types::WrongType;
use tokio_postgres::{Client, Config, Connection, Error, NoTls};
use toolwarrant_base::text::Secret;
use toolwarrant_core::store::StoreError;

/// Time in which a connection must be made.
const CONNECT_PATIENCE: Duration = Duration::from_secs(3);

/// The address of a store.
#[derive(Clone, Debug)]
pub struct Address {
    /// A URL without a password, such as `postgres://user@host1,host2/db`.
    pub url: String,
    /// The password of the user.
    pub password: Option<Secret<String>>,
}

/// The server of a cluster, with the account that connects.
#[derive(Clone)]
pub(crate) struct Server {
    config: Config,
    /// `None` if nothing between this process and the server can read along.
    encryption: Option<Encryption>,
}

/// Settings of every session. The writing statements join rows by their keys alone, whatever the
/// statistics of a young table say.
const SESSION: &str = "SET application_name = 'toolwarrant'; SET jit = off; SET plan_cache_mode = force_generic_plan;
    SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET statement_timeout = 0;
    SET lock_timeout = 0; SET idle_session_timeout = 0; SET client_min_messages = warning";

impl Server {
    /// Parses an address. Connections are encrypted, except to sockets and loopback addresses.
    ///
    /// # Errors
    /// It is not such a URL, it contains a password, or the system cannot verify certificates.
    pub(crate) fn parse(Address { url, password }: &Address) -> Result<Self, StoreError> {
        let wrong = |why: String| StoreError::Corrupt(format!("the URL of the store cannot be used: {why}"));
        if !["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
            return Err(wrong("it does not begin with postgres://, as in postgres://user@host/db".to_owned()));
        }
        let mut config = Config::from_str(url).map_err(|error| wrong(describe(&error)))?;
        if config.get_password().is_some() {
            return Err(wrong(
                "it contains a password, which other users of this machine can see; give it in a file".to_owned(),
            ));
        }
        if let Some(password) = password {
            config.password(password.expose());
        }
        config.connect_timeout(CONNECT_PATIENCE).target_session_attrs(TargetSessionAttrs::ReadWrite);
        config.keepalives_idle(Duration::from_secs(5)).tcp_user_timeout(Duration::from_secs(10));
        if config.get_hosts().is_empty() {
            return Err(wrong("it names no host, such as postgres://user@host/db".to_owned()));
        }
        let encryption = match config.get_hosts().iter().all(is_local) {
            true => None,
            false => Some(Encryption::new().map_err(|error| wrong(format!("cannot set up TLS: {error}")))?),
        };
        config.ssl_mode(if encryption.is_some() { SslMode::Require } else { SslMode::Disable });
        Ok(Self { config, encryption })
    }

    /// Opens a session on the server that accepts writes.
    ///
    /// # Errors
    /// No such server can be reached.
    pub(crate) async fn connect(&self) -> Result<Client, StoreError> {
        let connected = timeout(CONNECT_PATIENCE, async {
            let client = match &self.encryption {
                Some(encryption) => {
                    let (client, connection) = self.config.connect(encryption.clone()).await?;
                    drive(connection);
                    client
                }
                None => {
                    let (client, connection) = self.config.connect(NoTls).await?;
                    drive(connection);
                    client
                }
            };
            client.batch_execute(SESSION).await?;
            Ok::<_, Error>(client)
        });
        match connected.await {
            Ok(connected) => connected.map_err(|error| self.describe_failure(&error)),
            Err(_) => {
                let (place, seconds) = (self.place(), CONNECT_PATIENCE.as_secs());
                Err(StoreError::Unavailable(format!("PostgreSQL at {place} has not answered for {seconds} s")))
            }
        }
    }

    fn describe_failure(&self, error: &Error) -> StoreError {
        let (place, why) = (self.place(), describe(error));
        let is_account = error.code().is_some_and(|code| code.code().starts_with("28"));
        StoreError::Unavailable(match (is_account, error.as_db_error()) {
            (true, _) => format!("PostgreSQL at {place} refuses the account: {why}; check its name and its password"),
            (false, Some(_)) => format!("PostgreSQL at {place}: {why}"),
            (false, None) => format!("no PostgreSQL answers at {place}: {why}"),
        })
    }

    /// Returns the hosts or sockets of the server.
    fn place(&self) -> String {
        let hosts = self.config.get_hosts().iter().map(|host| match host {
            Host::Unix(path) => path.display().to_string(),
            Host::Tcp(name) => name.clone(),
        });
        let ports = self.config.get_ports();
        let port = |n: usize| ports.get(n).or(ports.first()).map(|port| format!(":{port}")).unwrap_or_default();
        hosts.enumerate().map(|(n, host)| host + &port(n)).collect::<Vec<_>>().join(", ")
    }
}

/// Waits until everything that is visible on this server is on its synchronous standby, too. A
/// server that has restarted after a crash also shows commits that were never acknowledged.
///
/// # Errors
/// The server or its standby does not answer.
pub(crate) async fn wait_for_standby(client: &Client) -> Result<(), Error> {
    // A commit waits for the standby if it has written something.
    client.batch_execute("SELECT pg_logical_emit_message(true, 'toolwarrant', '')").await
}

/// Drives a connection until its client is dropped or the server closes it.
fn drive<S, T>(connection: Connection<S, T>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    tokio::spawn(async move { drop(connection.await) });
}

/// Returns true if nothing between this process and the host can read along.
fn is_local(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback()),
    }
}

/// Returns an error of the server as text, with its code.
pub(crate) fn describe(error: &Error) -> String {
    match error.as_db_error() {
        Some(said) => format!("{} ({})", said.message(), said.code().code()),
        None => {
            let causes = std::iter::successors(Some(error as &dyn StdError), |error| (*error).source());
            causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
        }
    }
}

/// Converts the failure of a read, or of a statement that did not begin.
pub(crate) fn unavailable(error: Error) -> StoreError {
    StoreError::Unavailable(format!("PostgreSQL: {}", describe(&error)))
}

/// Returns true if the server has refused the statement and nothing else: its session goes on, and
/// the statement had no effect. Otherwise its fate is not known.
pub(crate) fn is_refusal(error: &Error) -> bool {
    match error.as_db_error() {
        // A server that shuts down, or has become a standby, is no longer the one to ask.
        Some(said) => {
            let class = said.code().code().get(..2).unwrap_or_default();
            said.parsed_severity() == Some(Severity::Error) && !matches!(class, "57" | "25" | "08")
        }
        // The client could not write a parameter, so it has sent nothing.
        None => error.source().is_some_and(|cause| cause.is::<WrongType>()),
    }
}
