//! The parts of a service, and the input from which they are made.

use anyhow::{Result, bail};
use std::marker::PhantomData;
use std::sync::Arc;
use toolwarrant_base::BoxFuture;
use toolwarrant_base::clock::Clock;
use toolwarrant_base::random::Random;
use toolwarrant_core::catalogue::Catalogue;
use toolwarrant_core::files::ServiceFiles;
use toolwarrant_core::page::WebPage;
use toolwarrant_core::passes::Passes;
use toolwarrant_core::pipeline::{Handlers, MakesNoTasks};
use toolwarrant_operator::data::DataFolder;
use toolwarrant_operator::offline::ServiceParts;
use toolwarrant_operator::{Commands, Config, Inventory, NoCommands, OwnCommand, Upstreams, runner};
use toolwarrant_tasks::engine::OwnTasks;
use toolwarrant_tasks::executor::{Executor, Write};
use toolwarrant_tasks::leave::Leave;
use toolwarrant_tasks::machine::Sent;
use toolwarrant_tasks::task::{Reading, Verdict};

/// The input for making a service.
#[derive(Debug)]
pub struct Setup<'a, F> {
    /// The values of the service's flags.
    pub flags: F,
    /// The switch of [`Program::fleet`](crate::Program::fleet) that the data folder belongs to.
    pub fleet: Option<&'static str>,
    /// The configuration, with the tables of [`Program::table`](crate::Program::table).
    pub config: Config,
    /// The data folder, open. Names of the service's files there must not begin with that of a
    /// framework file.
    pub folder: &'a DataFolder,
    /// The small files of the service.
    pub files: ServiceFiles,
    /// The clock.
    pub clock: Clock,
    /// Randomness for values that must not be guessed.
    pub random: Random,
    /// Issues passes for the page of [`Service::page`].
    pub passes: Passes,
    /// Carries out writes of the service itself, while it serves.
    pub tasks: OwnTasks,
}

/// The parts of a service, with the commands `C` that it adds.
pub struct Service<H, C = NoCommands> {
    pub(crate) handlers: H,
    pub(crate) executor: Arc<dyn Executor>,
    pub(crate) page: Option<Arc<dyn WebPage>>,
    pub(crate) parts: ServiceParts,
    commands: PhantomData<fn() -> C>,
}

#[doc(hidden)]
pub type TestParts<H> = (H, Arc<dyn Executor>, Vec<BoxFuture<'static, ()>>, Option<Arc<dyn WebPage>>);

impl<H: Handlers> Service<H> {
    /// Makes a service whose tools make no tasks. `handlers` is the generated `Contract` around the
    /// type that implements it.
    pub fn new(handlers: H) -> Self
    where
        H: MakesNoTasks,
    {
        Self::with_executor(handlers, Arc::new(NoTasks))
    }

    /// Makes a service with the executor of its writes.
    pub fn with_executor(handlers: H, executor: Arc<dyn Executor>) -> Self {
        Self { handlers, executor, page: None, parts: ServiceParts::default(), commands: PhantomData }
    }
}

impl<H, C> Service<H, C> {
    /// Adds the inventory. Without it the operator cannot list what tools act on, and can assign
    /// ids that do not exist.
    #[must_use]
    pub fn inventory(mut self, inventory: Arc<dyn Inventory>) -> Self {
        self.parts.inventory = Some(inventory);
        self
    }

    /// Adds the executor of the commands of [`Program::commands`](crate::Program::commands).
    #[must_use]
    pub fn commands<D: OwnCommand>(self, commands: Arc<dyn Commands<D>>) -> Service<H, D> {
        let Self { handlers, executor, page, parts, commands: _ } = self;
        let parts = ServiceParts { own: Some(runner(commands)), ..parts };
        Service { handlers, executor, page, parts, commands: PhantomData }
    }

    /// Adds the state of upstreams, for monitoring.
    #[must_use]
    pub fn upstreams(mut self, upstreams: Arc<dyn Upstreams>) -> Self {
        self.parts.upstreams = Some(upstreams);
        self
    }

    /// Adds background work, from before the first request until the last answer and effect. It
    /// also runs during an operator's command without a server. At the end it is dropped at any
    /// point. A panic in it is logged and ends nothing else.
    #[must_use]
    pub fn background(mut self, work: impl Future<Output = ()> + Send + 'static) -> Self {
        self.parts.background.push(Box::pin(work));
        self
    }

    /// Adds a page, for people in a browser who hold a pass. Handlers issue passes with
    /// [`Setup::passes`].
    #[must_use]
    pub fn page(self, page: Arc<dyn WebPage>) -> Self {
        Self { page: Some(page), ..self }
    }

    /// Returns the parts for `toolwarrant-testing`.
    #[doc(hidden)]
    #[must_use]
    pub fn into_parts(self) -> TestParts<H> {
        let Self { handlers, executor, page, parts, .. } = self;
        (handlers, executor, parts.background, page)
    }

    /// Sets what the start reports as served, such as `3 printers`.
    #[must_use]
    pub fn serves(mut self, what: impl Into<String>) -> Self {
        self.parts.serves = Some(what.into());
        self
    }

    /// Sets the end of the text of the first start.
    #[must_use]
    pub fn hint(mut self, hint: &'static str) -> Self {
        self.parts.hint = hint;
        self
    }
}

pub(crate) fn require_states(inventory: Option<&dyn Inventory>, catalogue: &Catalogue) -> Result<()> {
    let reader = inventory.and_then(Inventory::states);
    if let (None, Some(resource)) = (reader, catalogue.resources.iter().find(|resource| !resource.states.is_empty())) {
        bail!(
            "the resource `{}` has a state, and the service does not read it: `Inventory::states` does",
            resource.name
        );
    }
    Ok(())
}

/// The executor of tasks that an earlier version left: each ends as `failed` or as `timeout`.
struct NoTasks;

const NO_EXECUTOR: &str = "this service has no executor";

impl Executor for NoTasks {
    fn send<'a>(&'a self, _: &'a Write, _: Leave) -> BoxFuture<'a, Sent> {
        Box::pin(async { Sent::NotSent(NO_EXECUTOR.into()) })
    }

    fn probe<'a>(&'a self, _: &'a Write) -> BoxFuture<'a, Reading> {
        let (expected, observed) = ("a reading".into(), NO_EXECUTOR.into());
        Box::pin(async { Reading { verdict: Verdict::Unreadable, expected, observed } })
    }
}
