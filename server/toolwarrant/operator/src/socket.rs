//! Carries operator commands to a running server, over Unix sockets. Start at
//! [`OperatorSocket::open_all`].
//!
//! The socket in the data folder is the owner's. Two more are for groups of users: the system
//! decides who is in a group, and names the user of each connection. A connection carries one
//! [`SocketRequest`] as a line of JSON, and the answer as another line.

mod places;

use super::{CommandAnswer, OperatorCommand, OperatorContext, OperatorError, execute};
use crate::answers::Answered;
use crate::background::until;
use crate::data::{SOCKET, STDIO_SOCKET};
use crate::error::{FailureCode, describe_mismatch};
use crate::flags::{DATA, OPERATE_GROUP, OPERATOR_SOCKETS, VIEW_GROUP};
use crate::user::{find_group, group_name, groups_of, operator};
use clap::Args;
use places::{SocketUsers, refuse};
use rustix::fs::{Access, access};
use rustix::io::Errno;
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use std::fs::{self, Permissions};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixSocket, UnixStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use toolwarrant_base::{BoxFuture, json};
use toolwarrant_core::act::{Channel, Claims, Operator, Role};
use toolwarrant_http::edge::Listen;

const PATH_MAX: usize = 107;

const COMMAND_MAX: u64 = 1 << 20;

/// Least time that the server gives a command. The doctor reads all data.
const COMMAND_TIMEOUT: Duration = Duration::from_mins(10);

const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(10);

const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

const CONNECT_INTERVAL: Duration = Duration::from_millis(50);

pub trait CommandReceiver: Send + Sync + 'static {
    fn program(&self) -> &'static str;

    fn carry_out<'a>(&'a self, operator: &'a Operator, command: OperatorCommand) -> BoxFuture<'a, CommandAnswer>;
}

impl CommandReceiver for OperatorContext {
    fn program(&self) -> &'static str {
        self.program.names.program
    }

    fn carry_out<'a>(&'a self, operator: &'a Operator, command: OperatorCommand) -> BoxFuture<'a, CommandAnswer> {
        Box::pin(execute(self, operator, command))
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SocketError(String);

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SocketRequest {
    pub(crate) program: String,
    pub(crate) command: OperatorCommand,
    pub(crate) claims: Claims,
}

/// The groups of users who may operate a server or look.
#[derive(Clone, Debug, Default, Args)]
pub struct OperatorGroups {
    /// The folder of their sockets.
    #[arg(skip)]
    pub folder: Option<PathBuf>,

    /// Group of users who may operate this server over the socket operate.sock, by name or number
    #[arg(id = OPERATE_GROUP, long, value_name = "GROUP")]
    pub operate: Option<String>,

    /// Group of users who may read what operators read, over the socket view.sock
    #[arg(id = VIEW_GROUP, long, value_name = "GROUP")]
    pub view: Option<String>,
}

impl OperatorGroups {
    /// Returns the role that the user has at present.
    pub async fn role_of(&self, uid: u32) -> Option<Role> {
        if uid == 0 || uid == geteuid().as_raw() {
            return Some(Role::Owner);
        }
        let own = groups_of(uid).await;
        let has = |group: &Option<String>| group.as_deref().and_then(find_group).is_some_and(|id| own.contains(&id));
        let roles = [(&self.operate, Role::Operate), (&self.view, Role::View)];
        roles.into_iter().find(|(group, _)| has(group)).map(|(_, role)| role)
    }
}

/// A listening socket. Dropping it removes its file, unless another process has replaced the file.
#[derive(Debug)]
pub struct OperatorSocket {
    listener: UnixListener,
    path: PathBuf,
    file: (u64, u64),
    channel: Channel,
}

impl OperatorSocket {
    pub fn open_all(folder: &Path, groups: &OperatorGroups) -> Result<Vec<Self>, SocketError> {
        let owner = Self::open(folder)?;
        Ok([owner].into_iter().chain(Self::open_for_groups(groups)?).collect())
    }

    fn open(folder: &Path) -> Result<Self, SocketError> {
        // A socket that an earlier process left may be replaced: this process holds the lock.
        Self::listen(folder.join(SOCKET), None, Channel::OwnerSocket)
            .map_err(|SocketError(why)| SocketError(format!("{why}; choose a shorter or different --{DATA}")))
    }

    /// Opens the socket for bridges of this user, which carry requests.
    pub fn open_for_bridges(folder: &Path) -> Result<Self, SocketError> {
        Self::listen(folder.join(STDIO_SOCKET), None, Channel::OwnerSocket)
    }

    fn open_for_groups(groups: &OperatorGroups) -> Result<Vec<Self>, SocketError> {
        let OperatorGroups { folder, operate, view } = groups;
        let named = [
            (operate, OPERATE_GROUP, OPERATE_SOCKET, Channel::OperateSocket),
            (view, VIEW_GROUP, VIEW_SOCKET, Channel::ViewSocket),
        ];
        let named = named.into_iter().filter_map(|(group, flag, file, way)| Some((group.as_ref()?, flag, file, way)));
        let open = |(group, flag, file, way): (&String, &str, &str, Channel)| {
            let no_folder = || SocketError(format!("--{flag} needs --{OPERATOR_SOCKETS}, the folder of the sockets"));
            let folder = folder.as_ref().ok_or_else(no_folder)?;
            if !folder.is_dir() {
                let folder = folder.display();
                return Err(SocketError(format!(
                    "there is no folder {folder}; create it, or choose another --{OPERATOR_SOCKETS}"
                )));
            }
            let path = folder.join(file);
            let unknown = || SocketError(format!("this machine has no group `{group}`, which --{flag} names"));
            let id = find_group(group).ok_or_else(unknown)?;
            if std::os::unix::net::UnixStream::connect(&path).is_ok() {
                let path = path.display();
                return Err(SocketError(format!(
                    "another server listens on {path}; choose another --{OPERATOR_SOCKETS}"
                )));
            }
            Self::listen(path, Some((id, group)), way)
                .map_err(|SocketError(why)| SocketError(format!("{why}; see --{OPERATOR_SOCKETS} and --{flag}")))
        };
        named.map(open).collect()
    }

    fn listen(path: PathBuf, group: Option<(u32, &str)>, channel: Channel) -> Result<Self, SocketError> {
        let (length, shown) = (path.as_os_str().len(), path.display());
        if length > PATH_MAX {
            return Err(SocketError(format!(
                "the path {shown} has {length} bytes, and a socket allows at most {PATH_MAX}"
            )));
        }
        let failed = |error| SocketError(format!("cannot listen on {shown}: {error}"));
        let bind = || -> io::Result<UnixSocket> {
            let _ = fs::remove_file(&path);
            let socket = UnixSocket::new_stream()?;
            socket.bind(&path)?;
            // The mode is set before listening, so that no other user can connect meanwhile.
            fs::set_permissions(&path, Permissions::from_mode(0o600))?;
            Ok(socket)
        };
        let socket = bind().map_err(failed)?;
        if let Some((id, name)) = group {
            let given = lchown(&path, None, Some(id));
            given.map_err(|error| {
                let _ = fs::remove_file(&path);
                SocketError(format!("cannot give {shown} to the group `{name}`: {error}"))
            })?;
            fs::set_permissions(&path, Permissions::from_mode(0o660)).map_err(failed)?;
        }
        let file = file(&path).map_err(failed)?;
        Ok(Self { listener: socket.listen(16).map_err(failed)?, file, channel, path: path.clone() })
    }

    /// Accepts no connection and reads no command after `stopped`, and ends when it has answered
    /// the commands that it has begun.
    pub fn serve(self, receiver: Arc<dyn CommandReceiver>, stopped: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let (mut arriving, mut begun, users) = (JoinSet::new(), JoinSet::new(), SocketUsers::default());
            let serving = async {
                loop {
                    tokio::select! {
                        Some(_) = begun.join_next() => {}
                        Some(read) = arriving.join_next() => if let Ok((Ok((stream, line)), place)) = read {
                            let (channel, receiver) = (self.channel, Arc::clone(&receiver));
                            begun.spawn(async move {
                                let answered = answer(stream, line, channel, receiver).await;
                                drop(place);
                                answered
                            });
                        },
                        accepted = self.listener.accept() => match accepted {
                            Ok((stream, _)) => if let Some(place) = users.admit(&stream, self.channel) {
                                arriving.spawn(async move { (read_line(stream).await, place) });
                            } else {
                                refuse(&stream);
                            },
                            Err(error) => {
                                tracing::error!(%error, "cannot accept a connection on an operator socket");
                                sleep(Duration::from_secs(1)).await;
                            }
                        },
                    }
                }
            };
            until(stopped, serving).await;
            drop((self, arriving));
            while begun.join_next().await.is_some() {}
        })
    }
}

const OPERATE_SOCKET: &str = "operate.sock";
const VIEW_SOCKET: &str = "view.sock";

/// Returns the one with more authority first.
pub(crate) fn of_groups(folder: &Path) -> [PathBuf; 2] {
    [OPERATE_SOCKET, VIEW_SOCKET].map(|name| folder.join(name))
}

fn role_of(channel: Channel) -> Role {
    match channel {
        Channel::OwnerSocket | Channel::Offline | Channel::Start => Role::Owner,
        Channel::OperateSocket => Role::Operate,
        Channel::ViewSocket | Channel::Console => Role::View,
    }
}

impl Drop for OperatorSocket {
    fn drop(&mut self) {
        if file(&self.path).is_ok_and(|file| file == self.file) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Listen for OperatorSocket {
    type Stream = UnixStream;

    /// Drops connections of other users.
    async fn accept(&self) -> io::Result<(UnixStream, IpAddr)> {
        loop {
            let (stream, _) = self.listener.accept().await?;
            if stream.peer_cred().is_ok_and(|user| user.uid() == geteuid().as_raw()) {
                return Ok((stream, Ipv4Addr::LOCALHOST.into()));
            }
        }
    }
}

fn file(path: &Path) -> io::Result<(u64, u64)> {
    path.symlink_metadata().map(|about| (about.dev(), about.ino()))
}

async fn read_line(mut stream: UnixStream) -> io::Result<(UnixStream, Vec<u8>)> {
    let mut line = Vec::new();
    let read = (&mut stream).take(COMMAND_MAX + 1);
    timeout(ARRIVAL_TIMEOUT, BufReader::new(read).read_until(b'\n', &mut line)).await??;
    Ok((stream, line))
}

async fn answer(
    mut stream: UnixStream,
    line: Vec<u8>,
    channel: Channel,
    receiver: Arc<dyn CommandReceiver>,
) -> io::Result<()> {
    let uid = stream.peer_cred()?.uid();
    let request = read_request(&line, receiver.program());
    let outcome = match request {
        Ok(SocketRequest { command, claims, .. }) => {
            let patience = command.row().patience.max(COMMAND_TIMEOUT);
            let operator = operator(role_of(channel), uid, channel, claims);
            timeout(patience, receiver.carry_out(&operator, command)).await?
        }
        Err(error) => Err(error),
    };
    let outcome = outcome.and_then(Answered::of);
    let mut line = serde_json::to_vec(&outcome)?;
    line.push(b'\n');
    timeout(ANSWER_TIMEOUT, stream.write_all(&line)).await?
}

fn read_request(line: &[u8], program: &str) -> Result<SocketRequest, OperatorError> {
    refuse_long(line)?;
    let request: SocketRequest =
        json::read_bytes(line).map_err(|error| OperatorError::refusal(describe_mismatch(&error)))?;
    let sender = &request.program;
    match sender == program {
        true => Ok(request),
        false => Err(OperatorError::refusal(format!("this is a server of {program}, and the command is for {sender}"))),
    }
}

fn refuse_long(line: &[u8]) -> Result<(), OperatorError> {
    match line.len() as u64 > COMMAND_MAX {
        true => Err(OperatorError::refusal(format!("a command has at most {COMMAND_MAX} bytes"))),
        false => Ok(()),
    }
}

/// Returns `None` if the user may connect to one of these sockets, or if there are none.
pub(crate) fn describe_denial(sockets: &[PathBuf]) -> Option<OperatorError> {
    let denied = |socket: &&PathBuf| access(*socket, Access::WRITE_OK) == Err(Errno::ACCESS);
    let describe = |socket: &PathBuf| match socket.symlink_metadata() {
        Ok(about) => format!("{} (group {})", socket.display(), group_name(about.gid())),
        Err(_) => socket.display().to_string(),
    };
    let denied: Vec<_> = sockets.iter().filter(denied).map(describe).collect();
    let shown = denied.join(" and ");
    let why = "you may not connect to the server on";
    let how = format!("join a group and log in again, or choose a data folder of yours with --{DATA}");
    (!denied.is_empty()).then(|| OperatorError::new(FailureCode::NotAllowed, format!("{why} {shown}; {how}")))
}

pub(crate) async fn ask(socket: &Path, request: &SocketRequest) -> Option<Result<Answered, OperatorError>> {
    let patience = request.command.row().patience;
    let exchange = async { Some(exchange(connect(socket).await?, request).await) };
    let silent = |why: String| OperatorError::unavailable(why);
    Some(match timeout(patience, exchange).await {
        Ok(answer) => answer?.unwrap_or_else(|_| {
            Err(silent(format!(
                "the running server ended before it answered, and may have carried the command out; `{} acts` shows it then",
                request.program
            )))
        }),
        Err(_) => Err(silent(format!(
            "the running server has not answered for {} s, and may still carry the command out; its log may give the reason. If it \
             does not recover, stop the server and run the command again",
            patience.as_secs()
        ))),
    })
}

async fn connect(path: &Path) -> Option<UnixStream> {
    loop {
        match UnixStream::connect(path).await {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(CONNECT_INTERVAL).await,
            connected => return connected.ok(),
        }
    }
}

async fn exchange(mut stream: UnixStream, request: &SocketRequest) -> io::Result<Result<Answered, OperatorError>> {
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    if let Err(error) = refuse_long(&line) {
        return Ok(Err(error));
    }
    // A server that has no place for a command answers before it reads the command.
    let written = stream.write_all(&line).await;
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer).await;
    if answer.is_empty() {
        written.and(read)?;
    }
    match json::read_bytes(&answer) {
        Err(error) if !error.is_eof() => Ok(Err(OperatorError::refusal(format!(
            "the running server is of another version, so its answer cannot be read ({error}); the command may have been \
             carried out, and `{} acts` shows it then",
            request.program
        )))),
        read => Ok(read?),
    }
}

#[cfg(test)]
mod tests;
