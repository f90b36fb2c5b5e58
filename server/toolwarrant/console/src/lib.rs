//! The console: pages on which an operator sees a service and acts on it. A page shows the answer
//! of an operator's command, and a form is such a command, so the console can do nothing that the
//! command line cannot. It knows the contract from the catalogue alone. Start at
//! [`Console::serve`].

mod acts;
mod answer;
mod assets;
mod door;
mod lists;
mod markup;
mod pages;
pub mod pictures;
mod rendered;
mod routes;
mod state;
mod visit;

use serde_json::{Value, json};
use state::{ConsoleState, Place};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use toolwarrant_base::BoxFuture;
use toolwarrant_base::clock::Clock;
use toolwarrant_base::random::Random;
use toolwarrant_base::{hex, ignore_poison};
use toolwarrant_core::act::Operator;
use toolwarrant_core::catalogue::Catalogue;
use toolwarrant_http::people;
use toolwarrant_operator::socket::CommandReceiver;
use toolwarrant_operator::{ConsoleDoor, LinkRequest, OperatorError};

/// The console of a server. Nothing listens before the first link, and after the last session.
pub struct Console {
    state: Arc<ConsoleState>,
    random: Random,
    open: mpsc::UnboundedSender<TcpListener>,
    opened: tokio::sync::Mutex<mpsc::UnboundedReceiver<TcpListener>>,
}

const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Console {
    #[must_use]
    pub fn new(catalogue: &'static Catalogue, clock: Clock, random: Random) -> Self {
        let (open, opened) = mpsc::unbounded_channel();
        Self {
            state: Arc::new(ConsoleState::new(catalogue, clock, random.clone())),
            random,
            open,
            opened: tokio::sync::Mutex::new(opened),
        }
    }

    /// Serves the console whenever it is open, until `stopped`.
    pub fn serve(
        self: Arc<Self>,
        receiver: Arc<dyn CommandReceiver>,
        mut stopped: BoxFuture<'static, ()>,
    ) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let mut opened = self.opened.lock().await;
            let mut is_stopped = false;
            while !is_stopped {
                let listener = tokio::select! {
                    () = &mut stopped => break,
                    Some(listener) = opened.recv() => listener,
                };
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { continue };
                let site =
                    Arc::new(routes::ConsoleSite { console: Arc::clone(&self.state), receiver: Arc::clone(&receiver) });
                let stop = async {
                    tokio::select! {
                        () = &mut stopped => is_stopped = true,
                        () = self.wait_until_unused() => {}
                    }
                    self.end_sessions(None);
                };
                people::serve(listener, site, stop).await;
            }
        })
    }

    async fn wait_until_unused(&self) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let mut place = ignore_poison(self.state.place.lock());
            if self.state.door.is_unused() {
                *place = None;
                return;
            }
        }
    }

    fn open(
        &self,
        operator: Operator,
        LinkRequest { operate: _, port, plain_host }: LinkRequest,
    ) -> Result<Value, OperatorError> {
        let failed = |why: String| OperatorError::unavailable(format!("the console cannot be opened: {why}"));
        let mut kept = ignore_poison(self.state.place.lock());
        let place = match &mut *kept {
            Some(place) if port == 0 || port == place.port => place,
            Some(Place { port, .. }) => {
                return Err(OperatorError::refusal(format!(
                    "the console is open at port {port}; leave --port out, or close it with `console end --all`"
                )));
            }
            none => {
                let listener =
                    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| failed(error.to_string()))?;
                listener.set_nonblocking(true).map_err(|error| failed(error.to_string()))?;
                let port = listener.local_addr().map_err(|error| failed(error.to_string()))?.port();
                let label = self.random.bytes::<5>().map_err(|error| failed(error.to_string()))?;
                self.open.send(listener).map_err(|_| failed("the server is stopping".to_owned()))?;
                none.insert(Place { host: format!("console-{}.localhost", hex::encode(&label)), port, is_plain: false })
            }
        };
        place.is_plain |= plain_host;
        let Place { host, port, .. } = place;
        let host = if plain_host { Ipv4Addr::LOCALHOST.to_string() } else { host.clone() };
        let (role, (code, until)) =
            (operator.role, self.state.door.make_code(operator).map_err(|error| failed(error.to_string()))?);
        Ok(json!({
            "link": format!("http://{host}:{port}/in#{code}"),
            "role": role,
            "works_once_until": until,
            "from_another_machine": format!("ssh -L {port}:127.0.0.1:{port} THIS_MACHINE, then open the link there"),
        }))
    }
}

impl ConsoleDoor for Console {
    fn make_link(&self, operator: Operator, link: LinkRequest) -> BoxFuture<'_, Result<Value, OperatorError>> {
        Box::pin(async move { self.open(operator, link) })
    }

    fn list_sessions(&self) -> Value {
        self.state.door.list()
    }

    fn end_sessions(&self, session: Option<&str>) -> Vec<String> {
        let ended = self.state.door.end(session);
        self.state.closing.notify_waiters();
        ended
    }
}
