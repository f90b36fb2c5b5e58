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

use state::{ConsoleState, Place};
use std::fmt::Display;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use toolwarrant_base::BoxFuture;
use toolwarrant_base::clock::Clock;
use toolwarrant_base::random::Random;
use toolwarrant_base::{hex, ignore_poison};
use toolwarrant_core::act::Operator;
use toolwarrant_core::catalogue::Catalogue;
use toolwarrant_http::edge::Tls;
use toolwarrant_http::people;
use toolwarrant_operator::answers::{ConsoleLink, ConsoleSession};
use toolwarrant_operator::socket::{CommandReceiver, OperatorGroups};
use toolwarrant_operator::{ConsoleDoor, LinkRequest, OperatorError};

/// The console of a server. Unless it stays open, nothing listens before the first link, and after
/// the last session.
pub struct Console {
    state: Arc<ConsoleState>,
    random: Random,
    open: mpsc::UnboundedSender<Opened>,
    opened: tokio::sync::Mutex<mpsc::UnboundedReceiver<Opened>>,
}

type Opened = (TcpListener, Option<Arc<Tls>>);

const LOOK_EVERY: Duration = Duration::from_secs(1);

fn describe_failure(why: impl Display) -> OperatorError {
    OperatorError::unavailable(format!("the console cannot be opened: {why}"))
}

impl Console {
    /// Makes the console of the service at this URL.
    #[must_use]
    pub fn new(
        (catalogue, url): (&'static Catalogue, String),
        clock: Clock,
        random: Random,
        groups: OperatorGroups,
    ) -> Self {
        let (open, opened) = mpsc::unbounded_channel();
        Self {
            state: Arc::new(ConsoleState::new((catalogue, url), clock, random.clone(), groups)),
            random,
            open,
            opened: tokio::sync::Mutex::new(opened),
        }
    }

    /// Opens it at `listener`, where it stays. Beyond this machine, `public` is the host of its
    /// links, and the certificate.
    ///
    /// # Errors
    /// The listener has no address, or the system gives no randomness.
    pub fn open_for_good(
        &self,
        listener: TcpListener,
        public: Option<(String, Arc<Tls>)>,
    ) -> Result<(), OperatorError> {
        let place = self.take(listener, public, true)?;
        *ignore_poison(self.state.place.lock()) = Some(place);
        Ok(())
    }

    fn take(
        &self,
        listener: TcpListener,
        public: Option<(String, Arc<Tls>)>,
        stays: bool,
    ) -> Result<Place, OperatorError> {
        let (address, is_public) = (listener.local_addr().map_err(describe_failure)?, public.is_some());
        let label = self.random.bytes::<5>().map_err(describe_failure)?;
        let (host, tls) = public.unzip();
        self.open.send((listener, tls)).map_err(|_| describe_failure("the server is stopping"))?;
        let host = host.unwrap_or_else(|| format!("console-{}.localhost", hex::encode(&label)));
        Ok(Place { host, address, is_plain: false, is_public, stays })
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
                let (listener, tls) = tokio::select! {
                    () = &mut stopped => break,
                    Some(opened) = opened.recv() => opened,
                };
                let site =
                    Arc::new(routes::ConsoleSite { console: Arc::clone(&self.state), receiver: Arc::clone(&receiver) });
                let stop = async {
                    tokio::select! {
                        () = &mut stopped => is_stopped = true,
                        () = self.wait_until_unused() => {}
                    }
                };
                people::serve(listener, tls, site, stop).await;
            }
        })
    }

    async fn wait_until_unused(&self) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = self.state.ended.notified() => {}
            }
            let mut place = ignore_poison(self.state.place.lock());
            if self.state.door.is_unused() && place.as_ref().is_none_or(|place| !place.stays) {
                *place = None;
                return;
            }
        }
    }

    fn open(&self, operator: Operator, link: LinkRequest) -> Result<ConsoleLink, OperatorError> {
        let LinkRequest { operate: _, plain_host } = link;
        let mut kept = ignore_poison(self.state.place.lock());
        let place = match &mut *kept {
            Some(place) => place,
            none => {
                let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(describe_failure)?;
                listener.set_nonblocking(true).map_err(describe_failure)?;
                let listener = TcpListener::from_std(listener).map_err(describe_failure)?;
                none.insert(self.take(listener, None, false)?)
            }
        };
        let plain_host = plain_host && !place.is_public;
        place.is_plain |= plain_host;
        let (address, scheme) = (place.address, if place.is_public { "https" } else { "http" });
        let host = if plain_host { place.plain_host() } else { place.host_and_port() };
        let (role, (code, until)) = (operator.role, self.state.door.make_code(operator).map_err(describe_failure)?);
        let elsewhere = format!("ssh -L {}:{address} THIS_MACHINE, then open the link there", address.port());
        Ok(ConsoleLink {
            made: None,
            link: format!("{scheme}://{host}/in#{code}"),
            role,
            works_once_until: until,
            from_another_machine: (!place.is_public).then_some(elsewhere),
        })
    }
}

impl ConsoleDoor for Console {
    fn make_link(&self, operator: Operator, link: LinkRequest) -> BoxFuture<'_, Result<ConsoleLink, OperatorError>> {
        Box::pin(async move { self.open(operator, link) })
    }

    fn list_sessions(&self) -> Vec<ConsoleSession> {
        self.state.door.list()
    }

    fn end_sessions(&self, session: Option<&str>) -> Vec<String> {
        let ended = self.state.door.end(session);
        self.state.ended.notify_one();
        ended
    }
}
