//! The parts of a service, and what its author gets to make them.

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

/// What a service is made from. The data folder is open by then.
#[derive(Debug)]
pub struct Setup<'a, F> {
    /// The values of the flags that the service adds.
    pub flags: F,
    /// The data folder. The service may keep files there, under names that do not begin with the name of a file of the framework.
    pub folder: &'a DataFolder,
    /// The clock.
    pub clock: Clock,
    /// Randomness for values that nobody may guess.
    pub random: Random,
}

/// The parts of a service.
pub struct Service<H> {
    pub(crate) handlers: H,
    pub(crate) executor: Arc<dyn Executor>,
    pub(crate) inventory: Option<Arc<dyn Inventory>>,
    pub(crate) serves: Option<String>,
}

impl<H: Handlers> Service<H> {
    /// A service without tasks. `handlers` is the generated `Contract` around the type that implements it.
    pub fn new(handlers: H) -> Self {
        Self { handlers, executor: Arc::new(NoTasks), inventory: None, serves: None }
    }

    /// Adds the executor, which carries out writes.
    #[must_use]
    pub fn executor(self, executor: Arc<dyn Executor>) -> Self {
        Self { executor, ..self }
    }

    /// Adds the inventory, which lists what tools act on for the operator. Without it the operator cannot list them, and can assign
    /// ids that do not exist.
    #[must_use]
    pub fn inventory(self, inventory: Arc<dyn Inventory>) -> Self {
        Self { inventory: Some(inventory), ..self }
    }

    /// Sets what the start of the program reports as served, such as `3 printers`.
    #[must_use]
    pub fn serves(self, what: impl Into<String>) -> Self {
        Self { serves: Some(what.into()), ..self }
    }
}

/// An executor that sends nothing. Each write ends as `failed`, and nothing is charged.
struct NoTasks;

const NO_EXECUTOR: &str = "this service has no executor";

impl Executor for NoTasks {
    fn send<'a>(&'a self, _: &'a Write, _: Timestamp) -> BoxFuture<'a, Sent> {
        Box::pin(async { Sent::NotSent(NO_EXECUTOR.to_owned()) })
    }

    fn probe<'a>(&'a self, _: &'a Write) -> BoxFuture<'a, Reading> {
        let (expected, observed) = ("a reading".to_owned(), NO_EXECUTOR.to_owned());
        Box::pin(async { Reading { verdict: Verdict::Unreadable, expected, observed } })
    }
}
