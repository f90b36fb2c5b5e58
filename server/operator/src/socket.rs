//! The door for the operator of a running server: a Unix socket in its data folder, for the owner alone.
//!
//! One connection carries one command: a line of JSON, and a line of JSON back.

use super::{Command, OperatorContext, OperatorError, execute};
use crate::data::SOCKET;
use serde_json::Value;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixSocket, UnixStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Longest path that a socket can have on Linux, in bytes.
const PATH_MAX: usize = 107;

/// Largest command, and longest time for one: a doctor reads all that there is.
const COMMAND_MAX: u64 = 1 << 20;
const PATIENCE: Duration = Duration::from_mins(10);

/// A socket that listens. Dropped, its name is gone.
#[derive(Debug)]
pub struct OperatorSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl OperatorSocket {
    /// Listens in the data folder, which belongs to this process.
    ///
    /// # Errors
    /// The path is too long, or the folder takes no socket.
    pub fn open(folder: &Path) -> Result<Self, String> {
        let path = folder.join(SOCKET);
        let length = path.as_os_str().len();
        if length > PATH_MAX {
            return Err(format!("{} has {length} bytes, and a socket's path at most {PATH_MAX}", path.display()));
        }
        let open = || -> io::Result<UnixListener> {
            // What an earlier process left; the folder is this one's.
            let _ = fs::remove_file(&path);
            let socket = UnixSocket::new_stream()?;
            socket.bind(&path)?;
            // Before it listens, so that nobody else comes in meanwhile.
            fs::set_permissions(&path, Permissions::from_mode(0o600))?;
            socket.listen(16)
        };
        let listener = open().map_err(|error| format!("cannot listen on {}: {error}", path.display()))?;
        Ok(Self { listener, path })
    }

    /// Carries out what operators ask, until it is dropped.
    pub async fn serve(self, context: Arc<OperatorContext>) {
        let mut asked = JoinSet::new();
        loop {
            tokio::select! {
                Some(_) = asked.join_next() => {}
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => drop(asked.spawn(timeout(PATIENCE, answer(stream, Arc::clone(&context))))),
                    Err(error) => {
                        tracing::error!(%error, "cannot accept an operator's connection");
                        tokio::time::sleep(Duration::from_secs(1)).await;
                    }
                },
            }
        }
    }
}

impl Drop for OperatorSocket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

async fn answer(mut stream: UnixStream, context: Arc<OperatorContext>) -> io::Result<()> {
    let (read, mut write) = stream.split();
    let mut line = Vec::new();
    BufReader::new(read.take(COMMAND_MAX)).read_until(b'\n', &mut line).await?;
    let outcome: Result<Value, String> = match serde_json::from_slice::<Command>(&line) {
        Ok(command) => execute(&context, command).await.map_err(|error| error.to_string()),
        Err(error) => Err(format!("the server does not know this command; is it as recent as this program? ({error})")),
    };
    let mut line = serde_json::to_vec(&outcome)?;
    line.push(b'\n');
    write.write_all(&line).await
}

/// Has the server of that folder carry out `command`; `None` if none runs there.
///
/// # Errors
/// What the server answers, or that it answers nothing.
pub async fn ask(folder: &Path, command: &Command) -> Option<Result<Value, OperatorError>> {
    let mut stream = UnixStream::connect(folder.join(SOCKET)).await.ok()?;
    let exchange = async {
        let mut line = serde_json::to_vec(command)?;
        line.push(b'\n');
        stream.write_all(&line).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        Ok::<_, io::Error>(serde_json::from_slice::<Result<Value, String>>(&answer)?)
    };
    let answer = exchange.await.unwrap_or_else(|error| Err(format!("the running server did not answer: {error}")));
    Some(answer.map_err(OperatorError::Refused))
}
