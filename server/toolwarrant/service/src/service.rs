//! The parts of a service, and the input from which its author makes them.

use anyhow::{Result, bail};
use std::marker::PhantomData;
use std::sync::Arc;
use toolwarrant_base::BoxFuture;
use toolwarrant_base::clock::Clock;
use toolwarrant_base::random::Random;
use toolwarrant_core::catalogue::Catalogue;
use toolwarrant_core::files::ServiceFiles;
use toolwarrant_core::pipeline::Handlers;
use toolwarrant_operator::data::DataFolder;
use toolwarrant_operator::{CommandRunner, Commands, Config, Inventory, NoCommands, OwnCommand, Upstreams, runner};
use toolwarrant_tasks::executor::{Executor, Write};
use toolwarrant_tasks::leave::Leave;
use toolwarrant_tasks::machine::Sent;
use toolwarrant_tasks::task::{Reading, Verdict};

/// The input for making a service. The data folder is already open.
#[derive(Debug)]
pub struct Setup<'a, F> {
    /// The values of the flags that the service adds.
    pub flags: F,
    /// The configuration, with the tables that [`Program::table`](crate::Program::table) declares.
    pub config: Config,
    /// The data folder. The service may keep files there, under names that do not begin with the
    /// name of a file of the framework.
    pub folder: &'a DataFolder,
    /// The small files of the service in its store.
    pub files: ServiceFiles,
    /// The clock.
    pub clock: Clock,
    /// Randomness for values that must not be guessed.
    pub random: Random,
}

/// The parts of a service. `C` is the type of the commands that it adds to those of every service.
pub struct Service<H, C = NoCommands> {
    pub(crate) handlers: H,
    pub(crate) executor: Option<Arc<dyn Executor>>,
    pub(crate) inventory: Option<Arc<dyn Inventory>>,
    pub(crate) own: Option<CommandRunner>,
    pub(crate) upstreams: Option<Arc<dyn Upstreams>>,
    pub(crate) background: Vec<BoxFuture<'static, ()>>,
    pub(crate) serves: Option<String>,
    pub(crate) hint: &'static str,
    commands: PhantomData<fn() -> C>,
}

impl<H: Handlers> Service<H> {
    /// A service without tasks. `handlers` is the generated `Contract` around the type that
    /// implements it.
    pub fn new(handlers: H) -> Self {
        let commands = PhantomData;
        Self {
            handlers,
            executor: None,
            inventory: None,
            own: None,
            upstreams: None,
            background: Vec::new(),
            serves: None,
            hint: "",
            commands,
        }
    }
}

impl<H, C> Service<H, C> {
    /// Adds the executor, which carries out writes.
    #[must_use]
    pub fn executor(self, executor: Arc<dyn Executor>) -> Self {
        Self { executor: Some(executor), ..self }
    }

    /// Adds the inventory, which lists what tools act on for the operator. Without it the operator
    /// cannot list them, and can assign ids that do not exist.
    #[must_use]
    pub fn inventory(self, inventory: Arc<dyn Inventory>) -> Self {
        Self { inventory: Some(inventory), ..self }
    }

    /// Adds the executor of the commands that [`Program::commands`](crate::Program::commands)
    /// declares.
    #[must_use]
    pub fn commands<D: OwnCommand>(self, commands: Arc<dyn Commands<D>>) -> Service<H, D> {
        let Self { handlers, executor, inventory, own: _, upstreams, background, serves, hint, commands: _ } = self;
        let (own, commands) = (Some(runner(commands)), PhantomData);
        Service { handlers, executor, inventory, own, upstreams, background, serves, hint, commands }
    }

    /// Adds the state of upstreams, for monitoring.
    #[must_use]
    pub fn upstreams(self, upstreams: Arc<dyn Upstreams>) -> Self {
        Self { upstreams: Some(upstreams), ..self }
    }

    /// Adds work that runs in the background: from before the first request until the last answer
    /// and the end of running effects. It also runs during an operator's command if no server runs.
    /// At the end it is dropped at whatever point it has reached. A panic in it is logged and ends
    /// nothing else.
    #[must_use]
    pub fn background(mut self, work: impl Future<Output = ()> + Send + 'static) -> Self {
        self.background.push(Box::pin(work));
        self
    }

    /// Returns the parts that a server in a test needs, for `toolwarrant-testing`.
    #[doc(hidden)]
    #[must_use]
    pub fn into_parts(self) -> (H, Option<Arc<dyn Executor>>, Vec<BoxFuture<'static, ()>>) {
        let Self { handlers, executor, background, .. } = self;
        (handlers, executor, background)
    }

    /// Sets what the start of the program reports as served, such as `3 printers`.
    #[must_use]
    pub fn serves(self, what: impl Into<String>) -> Self {
        Self { serves: Some(what.into()), ..self }
    }

    /// Sets the text at the end of what the first start prints, such as what to try next.
    #[must_use]
    pub fn hint(self, hint: &'static str) -> Self {
        Self { hint, ..self }
    }
}

/// The executor of a service. Only a contract without tasks can do without one.
pub(crate) fn require_executor(
    executor: Option<Arc<dyn Executor>>,
    catalogue: &Catalogue,
) -> Result<Arc<dyn Executor>> {
    if let (None, Some(tool)) = (&executor, catalogue.tools.iter().find(|tool| tool.task.is_some())) {
        bail!("the tool `{}` makes tasks, and the service has no executor: `Service::executor` sets it", tool.name);
    }
    Ok(executor.unwrap_or_else(|| Arc::new(NoTasks)))
}

/// Checks that the operator can read the states that the contract declares.
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

/// The executor of a service without tasks, for tasks that an earlier version left. It sends
/// nothing: each ends as `failed` or as `timeout`.
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
