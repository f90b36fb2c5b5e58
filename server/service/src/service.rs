//! What a service is made of, and what it is made from.

use std::sync::Arc;
use toolwarrant_core::BoxFuture;
use toolwarrant_core::clock::{Clock, Timestamp};
use toolwarrant_core::pipeline::Handlers;
use toolwarrant_core::random::Random;
use toolwarrant_operator::Inventory;
use toolwarrant_operator::data::DataFolder;
use toolwarrant_tasks::executor::{Executor, Write};
use toolwarrant_tasks::machine::Sent;
use toolwarrant_tasks::task::{Reading, Verdict};

/// What a service is made from, once its data folder is open.
#[derive(Debug)]
pub struct Setup<'a, F> {
    /// The flags that the service has added.
    pub flags: F,
    /// Where it may keep what is its own; no name in it begins with that of a file of the framework.
    pub folder: &'a DataFolder,
    /// The time.
    pub clock: Clock,
    /// Randomness for whatever must not be guessed.
    pub random: Random,
}

/// What a service is made of.
pub struct Service<H> {
    pub(crate) handlers: H,
    pub(crate) executor: Arc<dyn Executor>,
    pub(crate) inventory: Option<Arc<dyn Inventory>>,
    pub(crate) serves: Option<String>,
}

impl<H: Handlers> Service<H> {
    /// A service without tasks. `handlers` is the generated `Contract` around the type that fulfils it.
    pub fn new(handlers: H) -> Self {
        Self { handlers, executor: Arc::new(NoTasks), inventory: None, serves: None }
    }

    /// Adds who carries writes out.
    #[must_use]
    pub fn executor(self, executor: Arc<dyn Executor>) -> Self {
        Self { executor, ..self }
    }

    /// Adds what lists the things that tools act on, for the operator. Without it these cannot be listed, and any id can be assigned.
    #[must_use]
    pub fn inventory(self, inventory: Arc<dyn Inventory>) -> Self {
        Self { inventory: Some(inventory), ..self }
    }

    /// Says what is served, for whoever starts the program: `3 printers`.
    #[must_use]
    pub fn serves(self, what: impl Into<String>) -> Self {
        Self { serves: Some(what.into()), ..self }
    }
}

/// Carries nothing out: each write ends as `failed`, and nothing is charged.
struct NoTasks;

const NOTHING: &str = "this service has nothing that carries writes out";

impl Executor for NoTasks {
    fn send<'a>(&'a self, _: &'a Write, _: Timestamp) -> BoxFuture<'a, Sent> {
        Box::pin(async { Sent::NotSent(NOTHING.to_owned()) })
    }

    fn probe<'a>(&'a self, _: &'a Write) -> BoxFuture<'a, Reading> {
        let (expected, observed) = ("a reading".to_owned(), NOTHING.to_owned());
        Box::pin(async { Reading { verdict: Verdict::Unreadable, expected, observed } })
    }
}
