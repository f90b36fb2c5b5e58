//! Carries operator commands to a running server, over a Unix socket in its data folder that only
//! the owner can use.
//!
//! A connection carries one command as a line of JSON, and the answer as another line.

use super::{OperatorCommand, OperatorContext, OperatorError, execute};
use crate::data::SOCKET;
use crate::flags::DATA;
use serde_json::Value;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixSocket, UnixStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Maximum length of the path of a socket on Linux, in bytes.
const PATH_MAX: usize = 107;

/// Maximum size of a command, in bytes.
const COMMAND_MAX: u64 = 1 << 20;

/// Time for a command that does not define its own. It is long because the doctor reads all data.
const COMMAND_TIMEOUT: Duration = Duration::from_mins(10);

/// Wait before the next attempt while the queue of connections is full.
const CONNECT_INTERVAL: Duration = Duration::from_millis(50);

/// The reason why the socket cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("{0}; choose a shorter or different --{DATA}")]
pub struct SocketError(String);

/// A listening socket. Dropping it removes its file, unless another process has replaced the file.
#[derive(Debug)]
pub struct OperatorSocket {
    listener: UnixListener,
    path: PathBuf,
    /// The identity of its file: file system and inode.
    file: (u64, u64),
}

impl OperatorSocket {
    /// Listens in a data folder that this process has locked.
    ///
    /// # Errors
    /// See [`SocketError`].
    pub fn open(folder: &Path) -> Result<Self, SocketError> {
        let path = folder.join(SOCKET);
        let (length, shown) = (path.as_os_str().len(), path.display());
        if length > PATH_MAX {
            return Err(SocketError(format!(
                "the path {shown} has {length} bytes, and a socket allows at most {PATH_MAX}"
            )));
        }
        let open = || -> io::Result<(UnixListener, (u64, u64))> {
            // An earlier process may have left its socket. It no longer runs, because this process
            // holds the lock.
            let _ = fs::remove_file(&path);
            let socket = UnixSocket::new_stream()?;
            socket.bind(&path)?;
            // The mode is set before listening, so that no other user can connect meanwhile.
            fs::set_permissions(&path, Permissions::from_mode(0o600))?;
            let file = file(&path)?;
            Ok((socket.listen(16)?, file))
        };
        let (listener, file) = open().map_err(|error| SocketError(format!("cannot listen on {shown}: {error}")))?;
        Ok(Self { listener, path, file })
    }

    /// Carries out the commands of operators until it is dropped.
    pub async fn serve(self, context: Arc<OperatorContext>) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                Some(_) = connections.join_next() => {}
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => drop(connections.spawn(answer(stream, Arc::clone(&context)))),
                    Err(error) => {
                        tracing::error!(%error, "cannot accept a connection on the operator socket");
                        tokio::time::sleep(Duration::from_secs(1)).await;
                    }
                },
            }
        }
    }
}

impl Drop for OperatorSocket {
    fn drop(&mut self) {
        if file(&self.path).is_ok_and(|file| file == self.file) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn file(path: &Path) -> io::Result<(u64, u64)> {
    path.symlink_metadata().map(|about| (about.dev(), about.ino()))
}

async fn answer(mut stream: UnixStream, context: Arc<OperatorContext>) -> io::Result<()> {
    let (read, mut write) = stream.split();
    let mut line = Vec::new();
    timeout(COMMAND_TIMEOUT, BufReader::new(read.take(COMMAND_MAX)).read_until(b'\n', &mut line)).await??;
    let outcome: Result<Value, String> = match serde_json::from_slice::<OperatorCommand>(&line) {
        Ok(command) => {
            let patience = command.patience().max(COMMAND_TIMEOUT);
            timeout(patience, execute(&context, command)).await?.map_err(|error| error.to_string())
        }
        Err(error) => Err(format!("the server does not know this command; is it as recent as this program? ({error})")),
    };
    let mut line = serde_json::to_vec(&outcome)?;
    line.push(b'\n');
    timeout(COMMAND_TIMEOUT, write.write_all(&line)).await?
}

/// Sends `command` to the server of a data folder and returns its answer. Returns `None` if no
/// server runs there.
///
/// # Errors
/// The server refuses the command, or does not answer in time.
pub(crate) async fn ask(folder: &Path, command: &OperatorCommand) -> Option<Result<Value, OperatorError>> {
    let (socket, patience) = (folder.join(SOCKET), command.patience());
    let exchange = async { Some(exchange(connect(&socket).await?, command).await) };
    let answer = match timeout(patience, exchange).await {
        Ok(answer) => answer?
            .unwrap_or_else(|error| Err(format!("the running server did not answer: {error}; its log may say why"))),
        Err(_) => Err(format!(
            "the running server has not answered for {} s, and may still carry the command out; its log may give the reason. If it \
             does not recover, stop the server and run the command again",
            patience.as_secs()
        )),
    };
    Some(answer.map_err(OperatorError::Refused))
}

/// Connects to a socket. Returns `None` if no process listens there.
async fn connect(path: &Path) -> Option<UnixStream> {
    loop {
        match UnixStream::connect(path).await {
            // The queue of waiting operators is full.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(CONNECT_INTERVAL).await,
            connected => return connected.ok(),
        }
    }
}

async fn exchange(mut stream: UnixStream, command: &OperatorCommand) -> io::Result<Result<Value, String>> {
    let mut line = serde_json::to_vec(command)?;
    line.push(b'\n');
    stream.write_all(&line).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    Ok(serde_json::from_slice(&answer)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    /// A server that was stopped with SIGSTOP, or hangs, still has a socket. The socket accepts
    /// connections until its queue is full.
    #[tokio::test(start_paused = true)]
    async fn an_operator_waits_for_a_silent_server_as_long_as_the_command_may_take() {
        let folder = TempDir::new().unwrap();
        let socket = UnixSocket::new_stream().unwrap();
        socket.bind(folder.path().join(SOCKET)).unwrap();
        let _listener = socket.listen(0).unwrap();
        let begin = tokio::time::Instant::now();
        let patient = timeout(Duration::from_hours(1), ask(folder.path(), &OperatorCommand::Refunds { limit: 1 }));
        let said = patient.await.expect("it ends").expect("a server").unwrap_err().to_string();
        assert!(said.contains("has not answered for 30 s") && said.contains("stop the server"), "{said}");
        assert_eq!(begin.elapsed().as_secs(), 30);
        // The connection above was given up, but it still takes the only place in the queue.
        let patient = timeout(Duration::from_hours(1), ask(folder.path(), &OperatorCommand::Doctor));
        let said = patient.await.expect("it ends").expect("a server").unwrap_err().to_string();
        assert!(said.contains("has not answered for 600 s"), "{said}");
        let own = OperatorCommand::Own { command: Value::Null, patience: Duration::from_secs(90) };
        let patient = timeout(Duration::from_hours(1), ask(folder.path(), &own));
        let said = patient.await.expect("it ends").expect("a server").unwrap_err().to_string();
        assert!(said.contains("has not answered for 90 s"), "{said}");
    }

    #[tokio::test]
    async fn a_stop_does_not_remove_the_socket_of_another_process() {
        let folder = tempfile::tempdir().unwrap();
        let first = OperatorSocket::open(folder.path()).unwrap();
        let second = OperatorSocket::open(folder.path()).unwrap();
        drop(first);
        UnixStream::connect(folder.path().join(SOCKET)).await.unwrap();
        drop(second);
        assert!(!folder.path().join(SOCKET).exists());
    }
}
