//! The start of a server: opens everything, and makes the service from it.
//!
//! Code that depends on the type of the handlers is compiled for each service again, async
//! functions included. So the steps of a start are functions without that type. Start at
//! [`Start::begin`].

use crate::core::Core;
use crate::listening::{ConsoleSocket, Listening, base_path, listen};
use crate::manager;
use crate::server::{Answering, Server};
use crate::service::Setup;
use crate::signals::StopSignals;
use crate::standby::wait_to_lead;
use crate::stdio;
use crate::welcome::Demo;
use anyhow::{Context, Result};
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::{Arc, Weak};
use tokio::net::TcpSocket;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use toolwarrant_base::random::Random;
use toolwarrant_console::Console;
use toolwarrant_core::catalogue::{Catalogue, ToolDef};
use toolwarrant_core::page::WebPage;
use toolwarrant_core::passes::Passes;
use toolwarrant_core::pipeline::{Handlers, Pipeline, ToolCaller};
use toolwarrant_core::registry::{Registry, unknown_permissions};
use toolwarrant_core::toolsets::Offer;
use toolwarrant_http::{Endpoint, OfferedPage, ServerProcess};
use toolwarrant_operator::cli::ServeOptions;
use toolwarrant_operator::data::DataFolder;
use toolwarrant_operator::flags::{CONSOLE_LISTEN, LISTEN};
use toolwarrant_operator::metrics::StatusSources;
use toolwarrant_operator::offline::ServiceParts;
use toolwarrant_operator::replica_status::ReplicaStatus;
use toolwarrant_operator::socket::OperatorSocket;
use toolwarrant_operator::standby::Standby;
use toolwarrant_operator::{
    ActLines, Config, OpenError, OpenedData, OperatorContext, OperatorError, ProgramIdentity, StoreOptions, Waiting,
};
use toolwarrant_store::Store;
use toolwarrant_tasks::engine::OwnTasks;
use toolwarrant_tasks::executor::Executor;

const TASKS_MAX: usize = 100_000;

/// A start that listens and has opened the data folder.
pub(crate) struct Start {
    program: ProgramIdentity,
    demo: Demo,
    serve: ServeOptions,
    /// Has the address, and refuses connections until it listens.
    socket: TcpSocket,
    listening: Listening,
    /// Ends before the lock of the folder, or it could remove the socket of the next process.
    bridges: Option<OperatorSocket>,
    folder: DataFolder,
    opened: OpenedData,
    passes: Passes,
    tasks: OwnTasks,
}

impl Start {
    /// Returns `None` if it is stopped before it may lead.
    pub(crate) fn begin(
        runtime: &Runtime,
        (program, demo): (ProgramIdentity, Demo),
        serve: ServeOptions,
        (data, store): (&Path, StoreOptions),
        stop: &mut StopSignals,
    ) -> Result<Option<Self>> {
        runtime.block_on(async {
            let names = &program.names;
            let locked = match serve.stdio.is_some() {
                true => match stdio::wait_for_folder(data, names, stop).await {
                    Ok(None) => return Ok(None),
                    locked => locked.transpose(),
                },
                false => None,
            };
            let (socket, listening) = Listening::open(&serve, names).await?;
            let folder = locked.unwrap_or_else(|| DataFolder::open(data, names));
            let folder = folder.map_err(OpenError::from).map_err(OperatorError::from)?;
            let claim = match store.is_folder() {
                true => None,
                false => {
                    let (shown, why) = watch::channel(Waiting::default());
                    listening.status.set_waiting(why.clone());
                    let (program, store, folder) = (program.clone(), store.clone(), folder.clone());
                    let standby = Standby { program, store, folder, why };
                    let claim = wait_to_lead(standby, &shown, &serve.groups, stop).await?;
                    let Some(claim) = claim else { return Ok(None) };
                    Some(claim)
                }
            };
            let extending = manager::extend_timeout("opens the data");
            let (catalogue, toolsets) = (program.catalogue, serve.toolsets);
            let offer = Offer { catalogue, toolsets, answers_bridges: serve.stdio.is_some() };
            let opened = OpenedData::open(&folder, names, offer, &Random::System, (&store, claim)).await?;
            drop(extending);
            warn_of_keys_off(&*opened.database).await?;
            let cell = store.cell.as_deref();
            let passes = Passes::new(opened.clock.clone(), Random::System, &listening.url, cell);
            let tasks = OwnTasks::default();
            let bridges = offer.answers_bridges.then(|| OperatorSocket::open_for_bridges(folder.path())).transpose()?;
            Ok(Some(Self { program, demo, serve, socket, listening, folder, opened, passes, tasks, bridges }))
        })
    }

    /// Lets another process lead, if this start fails.
    pub(crate) fn leave(&self) -> impl Future<Output = ()> + use<> {
        let shared = self.opened.shared.as_ref().map(|shared| Arc::clone(&shared.store));
        async move {
            if let Some(store) = shared {
                let _ = store.leave().await;
            }
        }
    }

    pub(crate) fn setup<F>(
        &self,
        runtime: &Runtime,
        flags: F,
        fleet: Option<&'static str>,
        config: Config,
    ) -> Result<Setup<'_, F>> {
        let files = runtime.block_on(self.opened.files()).context("cannot read the files of the service")?;
        let (clock, random, passes) = (self.opened.clock.clone(), Random::System, self.passes.clone());
        let tasks = self.tasks.clone();
        Ok(Setup { flags, fleet, config, folder: &self.folder, files, clock, random, passes, tasks })
    }

    pub(crate) fn answer<H: Handlers>(
        &self,
        runtime: &Runtime,
        (handlers, executor): (H, Arc<dyn Executor>),
        page: Option<Arc<dyn WebPage>>,
    ) -> Result<Answering> {
        let Self { folder, opened: data, serve, .. } = self;
        let (random, audit, max_in_flight) = (Random::System, serve.audit, TASKS_MAX);
        let core = Core { executor, folder, data, random, audit, max_in_flight };
        let (pipeline, engine, keeper) = runtime.block_on(core.compose(handlers))?;
        self.tasks.begin(&engine);
        let (requests, audit) = (pipeline.counts(), pipeline.audit_handle());
        let pipeline = Arc::new(pipeline);
        let caller: Weak<dyn ToolCaller> = Arc::<Pipeline<H>>::downgrade(&pipeline);
        let Listening { limits, policy, url, .. } = &self.listening;
        let (id, toolsets) = (u32::from_le_bytes(Random::System.bytes()?), self.serve.toolsets);
        let process = ServerProcess { version: self.program.names.version, base: base_path(url), id, toolsets };
        let endpoint = Endpoint::new(pipeline, policy.clone(), *limits, process);
        let page = page.filter(|_| self.passes.have_page());
        let endpoint = Arc::new(endpoint.with_page(page.map(|page| OfferedPage { page, passes: self.passes.clone() })));
        Ok(Answering { endpoint, caller, engine, keeper, requests, audit })
    }

    pub(crate) fn finish(self, runtime: &Runtime, answering: Answering, parts: ServiceParts) -> Result<Server> {
        runtime.block_on(async {
            let Self { program, demo, serve, socket, mut listening, folder, mut opened, passes, tasks: _, bridges } =
                self;
            let ServiceParts { inventory, own, upstreams, background, serves, hint } = parts;
            let (names, catalogue) = (Arc::clone(&program.names), program.catalogue);
            let listener = listen(socket, LISTEN)?;
            let replica = opened.shared.take();
            let shared = replica.as_ref().map(|shared| Arc::clone(&shared.store));
            let mut context = OperatorContext::new(program, &folder, (opened, shared), (inventory, own));
            let OperatorContext { registry, clock, store, .. } = &context;
            warn_of_permissions(registry, catalogue).await;
            log_toolsets(Offer { toolsets: serve.toolsets, ..catalogue.into() });
            let sockets = OperatorSocket::open_all(folder.path(), &serve.groups)?;
            // The keys come last, because their secrets are lost if the start fails after them.
            let keys = if prints_keys(&serve) { demo.keys(registry, catalogue).await? } else { Vec::new() };
            let steps = match registry.is_empty().await {
                true => demo.first_steps(names.program, catalogue, folder.path()),
                false => Demo { hint, ..demo }.text(names.program, listening.url(), &keys),
            };
            listening.status.set_serving(StatusSources {
                database: store.clone(),
                engine: answering.engine.clone(),
                requests: answering.requests.clone(),
                audit: answering.audit.clone(),
                limiter: listening.limiter.clone(),
                upstreams,
                replica: replica.as_ref().map(|own| ReplicaStatus::new(Arc::clone(&own.store), own.lease.clone())),
                access: registry.access(),
                clock: clock.clone(),
                folder: folder.path().to_owned(),
            });
            let seen = (catalogue, listening.url.clone());
            let console = Console::new(seen, clock.clone(), Random::System, serve.groups);
            let console = open_console(console, listening.console.take())?;
            context.audit = Some(answering.audit.clone());
            context.lines = ActLines::of(&answering.keeper);
            context.caller = Some(Weak::clone(&answering.caller));
            context.server = Some(listening.status.clone());
            context.console = Some(console.clone());
            let (context, serves) = (Arc::new(context), serves.unwrap_or_else(|| catalogue.service.name.to_owned()));
            Ok(Server {
                listener,
                listening,
                answering,
                serves,
                keys,
                steps,
                background,
                passes,
                context,
                console,
                sockets,
                bridges,
                replica,
                folder,
            })
        })
    }
}

/// Output in a file or a pipe may be stored, so it must not have secrets.
fn prints_keys(serve: &ServeOptions) -> bool {
    serve.demo || (serve.stdio.is_none() && io::stdout().is_terminal())
}

fn open_console(console: Console, place: Option<ConsoleSocket>) -> Result<Arc<Console>> {
    if let Some(ConsoleSocket { socket, public }) = place {
        console.open_for_good(listen(socket, CONSOLE_LISTEN)?, public)?;
    }
    Ok(Arc::new(console))
}

async fn warn_of_keys_off(database: &dyn Store) -> Result<()> {
    let off = database.keys_to_confirm().await.context("cannot read the keys")?.len();
    if off > 0 {
        tracing::warn!(
            keys = off,
            "keys are off since the data was restored; `key list` shows them, `key confirm` turns them on"
        );
    }
    Ok(())
}

async fn warn_of_permissions(registry: &Registry, catalogue: &Catalogue) {
    for unknown in unknown_permissions(&registry.applications().await, catalogue) {
        tracing::warn!("{unknown}; `app revoke` removes it");
    }
}

/// Logs the tools that keys which exist gain.
fn log_toolsets(Offer { catalogue, toolsets, .. }: Offer) {
    for permission in catalogue.permissions {
        let gained = |tool: &&ToolDef| {
            tool.toolset.is_some() && toolsets.offers(tool) && permission.grants.covers(tool.permission.bit)
        };
        let tools: Vec<_> = catalogue.tools.iter().filter(gained).map(|tool| tool.name).collect();
        if !tools.is_empty() {
            let (permission, tools) = (permission.name, tools.join(", "));
            tracing::info!(
                permission,
                tools,
                "with --toolsets, each key with this permission may also call these tools"
            );
        }
    }
}
