//! The console: pages on which an operator sees a service and acts on it. A page shows the answer of
//! an operator's command, and a form is such a command, so the console can do nothing that the
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
mod routes;
mod visit;

use door::Door;
use serde_json::{Value, json};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
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
    pub(crate) catalogue: &'static Catalogue,
    pub(crate) clock: Clock,
    pub(crate) door: Door,
    /// The latest answers to the questions that take long.
    pub(crate) examined: pages::Examined,
    /// Ends held requests.
    pub(crate) closing: Notify,
    random: Random,
    place: Mutex<Option<Place>>,
    open: mpsc::UnboundedSender<TcpListener>,
    opened: tokio::sync::Mutex<mpsc::UnboundedReceiver<TcpListener>>,
}

/// The place of the open console.
struct Place {
    /// Names nobody else has keep the cookie from other programs on this machine: a browser sends
    /// cookies by host, and not by port.
    host: String,
    port: u16,
    /// True once a link to the plain address was made.
    is_plain: bool,
}

const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Console {
    #[must_use]
    pub fn new(catalogue: &'static Catalogue, clock: Clock, random: Random) -> Self {
        let (open, opened) = mpsc::unbounded_channel();
        Self {
            catalogue,
            door: Door::new(clock.clone(), random.clone()),
            clock,
            examined: pages::Examined::default(),
            closing: Notify::new(),
            random,
            place: Mutex::default(),
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
                    Arc::new(routes::ConsoleSite { console: Arc::clone(&self), receiver: Arc::clone(&receiver) });
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
            let mut place = ignore_poison(self.place.lock());
            if self.door.is_unused() {
                *place = None;
                return;
            }
        }
    }

    pub(crate) fn is_at(&self, host: &str) -> bool {
        let place = ignore_poison(self.place.lock());
        let is_here = |Place { host: name, port, is_plain }: &Place| {
            host == format!("{name}:{port}") || *is_plain && host == format!("{}:{port}", Ipv4Addr::LOCALHOST)
        };
        place.as_ref().is_some_and(is_here)
    }

    fn open(
        &self,
        operator: Operator,
        LinkRequest { operate: _, port, plain_host }: LinkRequest,
    ) -> Result<Value, OperatorError> {
        let failed = |why: String| OperatorError::unavailable(format!("the console cannot be opened: {why}"));
        let mut kept = ignore_poison(self.place.lock());
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
            (operator.role, self.door.make_code(operator).map_err(|error| failed(error.to_string()))?);
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
        self.door.list()
    }

    fn end_sessions(&self, session: Option<&str>) -> Vec<String> {
        let ended = self.door.end(session);
        self.closing.notify_waiters();
        ended
    }
}
