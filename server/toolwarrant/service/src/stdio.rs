//! `stdio`: MCP on standard input and output. Each process is a bridge to the socket in the data
//! folder. The process that holds the lock of the folder is also the server; if it ends, another
//! one takes the lock. Start at [`bridge`].

use crate::signals::{INPUT_ENDED, Signals, StopSignals};
use anyhow::{Context, Result};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::io::{stdin, stdout};
use tokio::sync::{Mutex, oneshot};
use tokio::time::sleep;
use toolwarrant_base::BoxFuture;
use toolwarrant_client::{Connection, Repeat, complain};
use toolwarrant_core::access::Grants;
use toolwarrant_core::act::{Channel, Claims, Origin};
use toolwarrant_core::catalogue::{Catalogue, ToolDef};
use toolwarrant_core::registry::{NewApplication, NewKey, RegistryError};
use toolwarrant_core::toolsets::StdioApplication;
use toolwarrant_http::edge::{self, ApplicationKeys, ConnectionLimiter, Keyed, Responder};
use toolwarrant_operator::data::{DataFolder, FolderError, STDIO_SOCKET};
use toolwarrant_operator::socket::OperatorSocket;
use toolwarrant_operator::{Background, Names, OperatorContext, ProgramIdentity, local_operator};
use toolwarrant_tasks::engine::Engine;

/// Starts the bridge in a thread that does not keep the process from ending.
pub(crate) fn bridge(
    signals: &mut Signals,
    application: &StdioApplication,
    folder: &Path,
    (program, catalogue): (&'static str, &'static Catalogue),
) -> Result<()> {
    let connection = Connection::to_socket(&folder.join(STDIO_SOCKET), &application.to_string())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start the async runtime")?;
    let repeatable = repeatable(catalogue);
    let (end, ended) = oneshot::channel();
    let pass_on = move || {
        if let Err(error) =
            runtime.block_on(toolwarrant_client::bridge(connection, program, repeatable, stdin(), stdout()))
        {
            complain(program, format!("standard input or output: {error}"));
        }
        let _ = end.send(());
        // Does not wait for a thread that still reads standard input.
        runtime.shutdown_background();
    };
    thread::Builder::new().name("bridge".to_owned()).spawn(pass_on).context("cannot start the bridge")?;
    signals.stop.input = Some(ended);
    signals.stop.hangup = signals.hangup.take_signal();
    Ok(())
}

/// Returns the tools whose calls go to the next server of the folder too, if one dies.
fn repeatable(catalogue: &'static Catalogue) -> BTreeMap<String, Repeat> {
    let repeat = |tool: &ToolDef| match (tool.hints.read_only || tool.acts && tool.hints.idempotent, &tool.task) {
        (true, _) => Some(Repeat::Harmless),
        (false, task) => task.as_ref().map(|_| Repeat::UnderKey),
    };
    catalogue.tools.iter().filter_map(|tool| Some((tool.name.to_owned(), repeat(tool)?))).collect()
}

/// Returns `None` if this process is to stop before it may use the folder.
pub(crate) async fn wait_for_folder(
    folder: &Path,
    names: &Arc<Names>,
    stop: &mut StopSignals,
) -> Result<Option<DataFolder>, FolderError> {
    let (lock, locked) = oneshot::channel();
    let (path, names) = (folder.to_owned(), Arc::clone(names));
    thread::spawn(move || drop(lock.send(DataFolder::wait(&path, &names))));
    tokio::select! {
        Ok(folder) = locked => folder.map(Some),
        _ = stop.next() => Ok(None),
    }
}

/// Returns at once at a second signal. After the end of the input, hosts also send a first one.
pub(crate) async fn wait_for_tasks(engine: &Engine, why: &str, stop: &mut StopSignals) {
    let ended = async {
        while engine.in_flight() > 0 {
            sleep(LOOK_EVERY).await;
        }
    };
    let insisted = async {
        if why == INPUT_ENDED {
            stop.next().await;
        }
        stop.next().await;
    };
    tokio::select! {
        () = ended => {}
        () = insisted => {}
    }
}

const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Longer than requests in flight may take then.
const STOPS_WITHIN: Duration = Duration::from_secs(12);

/// Answers the bridges of this folder.
pub(crate) fn answer(
    socket: OperatorSocket,
    responder: &Arc<dyn Responder>,
    context: &Arc<OperatorContext>,
    limiter: &Arc<ConnectionLimiter>,
) -> Background {
    let keys = Arc::new(StdioKeys { context: Arc::clone(context), known: Mutex::default() });
    let (keyed, limiter) = (Keyed { responder: Arc::clone(responder), keys }, Arc::clone(limiter));
    Background::start("the socket for bridges", STOPS_WITHIN, |stopped| {
        edge::serve(socket, keyed, limiter, None, stopped)
    })
}

/// The keys of the applications of `stdio`. Their secrets are in memory alone, and end with the
/// next run.
struct StdioKeys {
    context: Arc<OperatorContext>,
    known: Mutex<HashMap<String, Arc<NewKey>>>,
}

impl ApplicationKeys for StdioKeys {
    fn key<'a>(&'a self, application: &'a str) -> BoxFuture<'a, Result<Option<Arc<NewKey>>, RegistryError>> {
        Box::pin(async {
            let mut known = self.known.lock().await;
            if !known.contains_key(application)
                && let Some(key) = self.make(application).await?
            {
                known.insert(application.to_owned(), Arc::new(key));
            }
            Ok(known.get(application).cloned())
        })
    }
}

impl StdioKeys {
    /// Creates an application at its first use. If an operator has revoked its key, it has none.
    async fn make(&self, name: &str) -> Result<Option<NewKey>, RegistryError> {
        let Some(application) = StdioApplication::of_name(name) else { return Ok(None) };
        let OperatorContext { registry, program: ProgramIdentity { catalogue, .. }, .. } = &*self.context;
        let operator = local_operator(Channel::Start, Claims::default());
        let origin = Origin { operator, command: "stdio".to_owned() };
        if let Ok(known) = registry.find(name).await {
            let keys = registry.keys(|key| key.application == known.id && !key.secrets.is_empty()).await;
            let Some(key) = keys.first() else { return Ok(None) };
            return registry.rotate_key(&key.id, Some(Duration::ZERO), &origin).await.map(Some);
        }
        let new = NewApplication {
            name: name.to_owned(),
            permissions: application.permissions(catalogue),
            grants: Grants::everything(),
            requests_per_minute: catalogue.service.requests_per_minute,
        };
        let id = registry.create(new, &origin).await?.object;
        registry.issue_key(&id, None, &origin).await.map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    mod notes {
        toolwarrant_macros::contract!("../../../tests/services/notes/spec", runtime = ::toolwarrant_core);
    }

    #[test]
    fn of_acts_only_an_idempotent_one_goes_to_the_next_server() {
        let repeatable = repeatable(&notes::CATALOGUE);
        let names: Vec<_> = repeatable.keys().map(String::as_str).collect();
        assert_eq!(names, ["draw_sketch", "read_note", "rename", "replace_note", "showHall"]);
        assert!(repeatable.values().all(|repeat| *repeat == Repeat::Harmless));
    }
}
