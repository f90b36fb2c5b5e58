//! Connections: where the server is, how a session begins and is given up, and what an error says
//! about the statement that met it. Start at [`Server::connect`].

use crate::scram::ScramOnly;
use crate::tls::{Encryption, make_encryption};
use crate::url::{EncryptionMode, StoreUrl};
use std::error::Error as StdError;
use std::future::poll_fn;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::lookup_host;
use tokio::time::timeout;
use tokio_postgres::config::{ChannelBinding, Host, SslMode, SslNegotiation};
use tokio_postgres::error::Severity;
use tokio_postgres::types::WrongType;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Error, NoTls};
use toolwarrant_base::text::Secret;
use toolwarrant_core::store::StoreError;

/// For each place, unless the URL has `connect_timeout`.
const CONNECT_PATIENCE: Duration = Duration::from_secs(3);

const CANCEL_PATIENCE: Duration = Duration::from_secs(3);

#[derive(Clone, Debug)]
pub struct Address {
    /// Without a password, such as `postgres://user@host1,host2/db`.
    pub url: String,
    pub password: Option<Secret<String>>,
}

impl From<String> for Address {
    fn from(url: String) -> Self {
        Self { url, password: None }
    }
}

#[derive(Clone)]
pub(crate) struct Server {
    config: Config,
    /// Tried in this order until one accepts writes.
    places: Vec<(Host, u16)>,
    patience: Duration,
    /// `None`: no encryption. Connections to sockets never have any.
    encryption: Option<Encryption>,
    /// For connections to loopback addresses, too.
    encrypts_local: bool,
}

const PORT: u16 = 5432;

/// Whatever role and database have. The writing statements join rows by their keys alone, whatever
/// the statistics of a young table say. The server ends a session whose client is gone.
const SESSION: &str = "SELECT set_config('application_name', concat_ws(' ', 'toolwarrant', current_schema()), false); SET jit = off; SET plan_cache_mode = force_generic_plan;
    SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET client_min_messages = warning;
    SET default_transaction_isolation = 'read committed'; SET default_transaction_read_only = off;
    SET default_transaction_deferrable = off; SET standard_conforming_strings = on;
    SET idle_in_transaction_session_timeout = '10s'; SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 2; SET tcp_user_timeout = 10000;
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') <> 'remote_apply';
    SELECT set_config(name, '0', false) FROM pg_settings
        WHERE name IN ('statement_timeout', 'lock_timeout', 'idle_session_timeout', 'transaction_timeout')";

impl Server {
    /// Encrypts connections, except to sockets and loopback addresses, if the URL does not say
    /// otherwise.
    pub(crate) fn parse(Address { url, password }: &Address) -> Result<Self, StoreError> {
        let wrong = |why: String| StoreError::Corrupt(format!("the URL of the store cannot be used: {why}"));
        if !["postgres://", "postgresql://"].iter().any(|scheme| url.starts_with(scheme)) {
            return Err(wrong("it does not begin with postgres://, as in postgres://user@host/db".to_owned()));
        }
        let StoreUrl { url, mode, authorities } = StoreUrl::parse(url).map_err(wrong)?;
        let mut config = Config::from_str(&url).map_err(|error| wrong(describe(&error)))?;
        if config.get_password().is_some() {
            return Err(wrong(
                "it contains a password, which other users of this machine can see; give it in a file".to_owned(),
            ));
        }
        if let Some(password) = password {
            config.password(password.expose());
        }
        let (hosts, ports) = (config.get_hosts(), config.get_ports());
        if hosts.is_empty() {
            return Err(wrong("it names no host, such as postgres://user@host/db".to_owned()));
        }
        let port = |n: usize| ports.get(n).or(ports.first()).copied().unwrap_or(PORT);
        let places: Vec<_> = hosts.iter().cloned().enumerate().map(|(n, host)| (host, port(n))).collect();
        let is_socket = |host: &Host| matches!(host, Host::Unix(_));
        let encrypts = match mode {
            EncryptionMode::Never => false,
            EncryptionMode::OtherMachines => !hosts.iter().all(is_local),
            EncryptionMode::Always => !hosts.iter().all(is_socket),
        };
        if encrypts && hosts.iter().any(is_socket) {
            return Err(wrong(
                "connections to a socket cannot be encrypted; name the other hosts without it".to_owned(),
            ));
        }
        if !encrypts && config.get_channel_binding() == ChannelBinding::Require {
            return Err(wrong("`channel_binding=require` needs an encrypted connection over TCP".to_owned()));
        }
        let encryption = encrypts.then(|| make_encryption(authorities.as_deref())).transpose().map_err(wrong)?;
        let patience = config.get_connect_timeout().copied().unwrap_or(CONNECT_PATIENCE);
        Ok(Self { config, places, patience, encryption, encrypts_local: mode == EncryptionMode::Always })
    }

    /// Returns a session on the first place that accepts writes. Each has its own timeout.
    pub(crate) async fn connect(&self) -> Result<Client, StoreError> {
        let mut failures = Vec::new();
        for (host, port) in &self.places {
            for address in addresses(host, *port).await {
                let place = describe_place(host, *port, address);
                match timeout(self.patience, self.open(host, *port, address)).await {
                    Ok(Ok(Some(client))) => return Ok(client),
                    Ok(Ok(None)) => failures.push(format!("PostgreSQL at {place} is read-only, as a standby is")),
                    Ok(Err(error)) => failures.push(describe_failure(&place, &error)),
                    Err(_) => {
                        let seconds = self.patience.as_secs();
                        failures.push(format!("PostgreSQL at {place} has not answered for {seconds} s"));
                    }
                }
            }
        }
        Err(StoreError::Unavailable(failures.join("; ")))
    }

    /// Returns `None` if the server is read-only.
    async fn open(&self, host: &Host, port: u16, address: Option<IpAddr>) -> Result<Option<Client>, Error> {
        let mut config = Config::new();
        config.port(port).keepalives_idle(Duration::from_secs(5)).tcp_user_timeout(Duration::from_secs(10));
        match host {
            Host::Unix(path) => config.host_path(path),
            Host::Tcp(name) => config.host(name),
        };
        address.map(|address| config.hostaddr(address));
        let given = &self.config;
        given.get_user().map(|user| config.user(user));
        given.get_password().map(|password| config.password(password));
        given.get_dbname().map(|name| config.dbname(name));
        given.get_options().map(|options| config.options(options));
        config.channel_binding(given.get_channel_binding());
        let encryption = self.encryption.as_ref().filter(|_| self.encrypts_local || !is_local(host));
        let client = match (host, encryption) {
            (Host::Unix(_), _) => drive(config.ssl_mode(SslMode::Disable).connect(NoTls).await?),
            (Host::Tcp(_), None) => {
                config.ssl_mode(SslMode::Require).ssl_negotiation(SslNegotiation::Direct);
                drive(config.connect(ScramOnly).await?)
            }
            (Host::Tcp(_), Some(encryption)) => {
                config.ssl_mode(SslMode::Require).ssl_negotiation(given.get_ssl_negotiation());
                drive(config.connect(encryption.clone()).await?)
            }
        };
        client.batch_execute(SESSION).await?;
        let row = client.query_one("SELECT current_setting('transaction_read_only')", &[]).await?;
        Ok((row.get::<_, &str>(0) == "off").then_some(client))
    }

    /// Cancels the statement of a connection that is given up. Otherwise its session could wait for
    /// a lock or a standby for ever.
    pub(crate) fn cancel(&self, client: &Client) {
        let (token, encryption) = (client.cancel_token(), self.encryption.clone());
        tokio::spawn(timeout(CANCEL_PATIENCE, async move {
            // With several hosts, some connections may not be encrypted.
            let encrypted = match encryption {
                Some(encryption) => token.cancel_query(encryption).await.is_ok(),
                None => false,
            };
            if !encrypted {
                drop(token.cancel_query(ScramOnly).await);
            }
        }));
    }
}

/// Returns `None` for a host that is not looked up.
async fn addresses(host: &Host, port: u16) -> Vec<Option<IpAddr>> {
    match host {
        Host::Tcp(name) if name.parse::<IpAddr>().is_err() => match lookup_host((&**name, port)).await {
            Ok(found) => {
                let mut addresses: Vec<_> = found.map(|found| Some(found.ip())).collect();
                addresses.dedup();
                addresses
            }
            Err(_) => vec![None],
        },
        _ => vec![None],
    }
}

fn describe_place(host: &Host, port: u16, address: Option<IpAddr>) -> String {
    let address = address.map(|address| format!(" ({address})")).unwrap_or_default();
    match host {
        Host::Unix(path) => format!("{}/.s.PGSQL.{port}", path.display()),
        Host::Tcp(name) => format!("{name}:{port}{address}"),
    }
}

fn describe_failure(place: &str, error: &Error) -> String {
    let why = describe(error);
    let is_account = error.code().is_some_and(|code| code.code().starts_with("28"));
    match (is_account, error.as_db_error()) {
        (true, _) => format!("PostgreSQL at {place} refuses the account: {why}; check its name and its password"),
        (false, Some(_)) => format!("PostgreSQL at {place}: {why}"),
        (false, None) if why.contains("password missing") => {
            format!("PostgreSQL at {place} asks for a password: give it with --store-password-file")
        }
        (false, None) if why.contains("does not support TLS") => {
            format!(
                "PostgreSQL at {place} does not encrypt: set `ssl = on` there, or `sslmode=disable` in the URL where nobody can read along"
            )
        }
        (false, None) if why.contains("invalid peer certificate") => {
            format!("PostgreSQL at {place} is not verified: {why}; name its authority with `sslrootcert` in the URL")
        }
        (false, None) => format!("no PostgreSQL answers at {place}: {why}"),
    }
}

/// Waits until everything that is visible on this server is on its synchronous standby. After a
/// crash, a server also shows commits that were never acknowledged.
pub(crate) async fn wait_for_standby(client: &Client) -> Result<(), Error> {
    // A commit waits for the standby only if it has written something.
    client.batch_execute("SELECT pg_logical_emit_message(true, 'toolwarrant', '')").await
}

/// Lets a statement fail that waits for a lock for longer than `most`; 0 is no limit.
pub(crate) async fn limit_locks(client: &Client, most: &str) -> Result<(), StoreError> {
    client.batch_execute(&format!("SET lock_timeout = '{most}'")).await.map_err(unavailable)
}

/// Gives the connection up if a commit does not wait for the standby any more, because somebody has
/// cancelled it. The server would answer as if the standby had it.
fn drive<S, T>((client, mut connection): (Client, Connection<S, T>)) -> Client
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            if matches!(&message, AsyncMessage::Notice(said) if said.routine() == Some("SyncRepWaitForLSN")) {
                return;
            }
        }
    });
    client
}

/// Returns true if nothing between this process and the host can read along.
fn is_local(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback()),
    }
}

/// Adds the code and the remedy.
pub(crate) fn describe(error: &Error) -> String {
    match error.as_db_error() {
        Some(said) => {
            let remedy = match said.code().code() {
                "55P03" => "; see in pg_locks who has a lock on the tables",
                "53100" => "; make room on the disk of PostgreSQL",
                "53300" => "; see in pg_stat_activity who has the connections, or raise max_connections",
                "25006" => "; the server is read-only, as a standby is: name the one that accepts writes in the URL",
                _ => "",
            };
            format!("{} ({}){remedy}", said.message(), said.code().code())
        }
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

/// Returns true if the statement had no effect and the session goes on. Otherwise its fate is not
/// known.
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
