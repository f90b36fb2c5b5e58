//! The start of a server: opens everything, and makes the service from it.
//!
//! Code that depends on the type of the handlers is compiled for each service again, async
//! functions included. So the steps of a start are functions without that type. Start at
//! [`Start::begin`].

use crate::core::{Core, CoreParts};
use crate::hangup::Renewal;
use crate::listening::{ConsoleSocket, Listening, base_path, listen};
use crate::manager;
use crate::replica::ReplicaLife;
use crate::server::{ProgramIdentity, Server};
use crate::service::Setup;
use crate::signals::StopSignals;
use crate::standby::WaitingStart;
use crate::stdio;
use crate::welcome::Demo;
use anyhow::{Context, Result};
use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::{Arc, Weak};
use tokio::runtime::Runtime;
use toolwarrant_audit::AuditHandle;
use toolwarrant_base::random::Random;
use toolwarrant_console::Console;
use toolwarrant_core::catalogue::{Catalogue, ToolDef};
use toolwarrant_core::counts::Requests;
use toolwarrant_core::page::WebPage;
use toolwarrant_core::passes::Passes;
use toolwarrant_core::pipeline::{Handlers, Pipeline, ToolCaller};
use toolwarrant_core::registry::{Registry, unknown_permissions};
use toolwarrant_core::toolsets::{Offer, Toolsets};
use toolwarrant_http::edge::{Responder, Tls};
use toolwarrant_http::{Endpoint, OfferedPage, ServerProcess};
use toolwarrant_operator::cli::ServeOptions;
use toolwarrant_operator::data::DataFolder;
use toolwarrant_operator::flags::{CONSOLE_LISTEN, LISTEN};
use toolwarrant_operator::keeping::{AuditKeeper, AuditOptions};
use toolwarrant_operator::metrics::StatusSources;
use toolwarrant_operator::offline::ServiceParts;
use toolwarrant_operator::replica_status::ReplicaStatus;
use toolwarrant_operator::socket::{OperatorGroups, OperatorSocket};
use toolwarrant_operator::{
    ActLines, Check, Config, Names, OpenError, OpenedData, OperatorContext, OperatorError, StoreOptions,
};
use toolwarrant_store::Store;
use toolwarrant_tasks::engine::{Engine, OwnTasks};
use toolwarrant_tasks::executor::Executor;

const TASKS_MAX: usize = 100_000;

/// A start that listens and has opened the data folder.
pub(crate) struct Start {
    names: Arc<Names>,
    demo: Demo,
    checks: Vec<Check>,
    catalogue: &'static Catalogue,
    random: Random,
    /// Even if standard output is not a terminal.
    prints_keys: bool,
    bridges: Option<OperatorSocket>,
    keeping: AuditOptions,
    groups: OperatorGroups,
    listening: Listening,
    folder: DataFolder,
    opened: OpenedData,
    passes: Passes,
    tasks: OwnTasks,
    toolsets: Toolsets,
}

impl Start {
    /// Returns `None` if it is stopped before it may lead.
    pub(crate) fn begin(
        runtime: &Runtime,
        identity: ProgramIdentity,
        serve: ServeOptions,
        (data, store): (&Path, StoreOptions),
        catalogue: &'static Catalogue,
        stop: &mut StopSignals,
    ) -> Result<Option<Self>> {
        runtime.block_on(async {
            let ProgramIdentity { names, demo, checks } = identity;
            let (names, random, wanted, keeping) = (Arc::new(names), Random::System, serve.demo, serve.audit);
            let offer = Offer { catalogue, toolsets: serve.toolsets, answers_bridges: serve.stdio.is_some() };
            let (groups, over_stdio) = (groups_of(&serve), serve.stdio.is_some());
            let locked = match over_stdio {
                true => match stdio::wait_for_folder(data, &names, stop).await {
                    Ok(None) => return Ok(None),
                    locked => locked.transpose(),
                },
                false => None,
            };
            let listening = Listening::open(serve, &names).await?;
            let folder = locked.unwrap_or_else(|| DataFolder::open(data, &names));
            let folder = folder.map_err(OpenError::from).map_err(OperatorError::from)?;
            let claim = match store.is_folder() {
                true => None,
                false => {
                    let status = &listening.status;
                    let (names, checks, store, folder, groups) = (&names, &*checks, &store, &folder, &groups);
                    let waiting = WaitingStart { names, catalogue, checks, store, folder, groups, status };
                    let Some(claim) = waiting.wait(stop).await? else { return Ok(None) };
                    Some(claim)
                }
            };
            let extending = manager::extend_timeout("opens the data");
            let opened = OpenedData::open(&folder, &names, offer, &random, (&store, claim)).await?;
            drop(extending);
            warn_of_keys_off(&*opened.database).await?;
            // Output in a file or a pipe may be stored, so it must not have secrets.
            let prints_keys = wanted || (!over_stdio && io::stdout().is_terminal());
            let bridges = over_stdio.then(|| OperatorSocket::open_for_bridges(folder.path())).transpose()?;
            let passes = Passes::new(opened.clock.clone(), random.clone(), &listening.url, store.cell.as_deref());
            Ok(Some(Self {
                names,
                demo,
                checks,
                catalogue,
                random,
                prints_keys,
                bridges,
                keeping,
                groups,
                listening,
                folder,
                opened,
                passes,
                tasks: OwnTasks::default(),
                toolsets: offer.toolsets,
            }))
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
        let (clock, random, passes) = (self.opened.clock.clone(), self.random.clone(), self.passes.clone());
        let tasks = self.tasks.clone();
        Ok(Setup { flags, fleet, config, folder: &self.folder, files, clock, random, passes, tasks })
    }

    pub(crate) fn core(&self, runtime: &Runtime, executor: Arc<dyn Executor>) -> Result<Core> {
        let Self { catalogue, folder, opened: data, keeping: audit, .. } = self;
        let (random, max_in_flight) = (self.random.clone(), TASKS_MAX);
        let parts = CoreParts { catalogue, executor, folder, data, random, audit: *audit, max_in_flight };
        let core = runtime.block_on(Core::compose(parts))?;
        self.tasks.begin(&core.engine);
        Ok(core)
    }

    pub(crate) fn answer<H: Handlers>(
        &self,
        core: Core,
        handlers: H,
        page: Option<Arc<dyn WebPage>>,
    ) -> Result<Answering> {
        let (pipeline, engine, keeper) = core.pipeline(handlers, &self.opened);
        let (requests, audit) = (pipeline.counts(), pipeline.audit_handle());
        let pipeline = Arc::new(pipeline);
        let caller: Weak<dyn ToolCaller> = Arc::<Pipeline<H>>::downgrade(&pipeline);
        let Listening { limits, policy, url, .. } = &self.listening;
        let id = u32::from_le_bytes(self.random.bytes()?);
        let process = ServerProcess { version: self.names.version, base: base_path(url), id, toolsets: self.toolsets };
        let endpoint = Endpoint::new(pipeline, policy.clone(), *limits, process);
        let page = page.filter(|_| self.passes.have_page());
        let endpoint = Arc::new(endpoint.with_page(page.map(|page| OfferedPage { page, passes: self.passes.clone() })));
        Ok(Answering { endpoint, caller, engine, keeper, requests, audit })
    }

    pub(crate) fn finish(self, runtime: &Runtime, answering: Answering, parts: ServiceParts) -> Result<Server> {
        runtime.block_on(async {
            let bridges = self.bridges;
            let Self {
                names, demo, checks, catalogue, prints_keys, groups, listening, folder, mut opened, passes, ..
            } = self;
            let Answering { endpoint, caller, engine, keeper, requests, audit } = answering;
            let ServiceParts { inventory, own, upstreams, background, serves, hint } = parts;
            let Listening { socket, tls, limiter, url, status, watchdog, monitor, console: place, .. } = listening;
            let listener = listen(socket, LISTEN)?;
            let demo = Demo { hint, ..demo };
            let layout = opened.layout();
            let replica = opened.shared.take().map(|shared| ReplicaLife { shared });
            let shared = replica.as_ref().map(|life| life.shared.store.clone());
            let identity = (Arc::clone(&names), catalogue, checks.into());
            let mut context = OperatorContext::new(identity, &folder, (opened, shared), (inventory, own));
            let OperatorContext { registry, clock, .. } = &context;
            warn_of_permissions(registry, catalogue).await;
            log_toolsets(Offer { toolsets: self.toolsets, ..catalogue.into() });
            let sockets = OperatorSocket::open_all(folder.path(), &groups)?;
            // The keys come last, because their secrets are lost if the start fails after them.
            let keys = if prints_keys { demo.keys(registry, catalogue).await? } else { Vec::new() };
            let first_steps =
                registry.is_empty().await.then(|| demo.first_steps(names.program, catalogue, folder.path()));
            status.set_serving(StatusSources {
                database: context.store.clone(),
                engine: engine.clone(),
                requests,
                audit: audit.clone(),
                limiter: limiter.clone(),
                upstreams,
                replica: replica.as_ref().map(|life| ReplicaStatus::new(&life.shared)),
                access: registry.access(),
                clock: clock.clone(),
                folder: folder.path().to_owned(),
            });
            let console =
                open_console(Console::new((catalogue, url.clone()), clock.clone(), Random::System, groups), place)?;
            context.audit = Some(audit.clone());
            context.lines = ActLines::of(&keeper);
            context.caller = Some(caller);
            context.server = Some(status.clone());
            context.console = Some(console.clone());
            let context = Arc::new(context);
            Ok(Server {
                renewals: renewals(tls.clone(), audit.clone()),
                passes: (passes, audit),
                listener,
                endpoint,
                limiter,
                tls,
                url,
                names,
                serves,
                demo,
                keys,
                first_steps,
                engine,
                background,
                context,
                console,
                keeper,
                sockets,
                bridges,
                replica,
                status,
                monitor,
                folder,
                layout,
                watchdog,
            })
        })
    }
}

pub(crate) struct Answering {
    endpoint: Arc<dyn Responder>,
    /// Ends with the endpoint, on which the end of the audit waits.
    caller: Weak<dyn ToolCaller>,
    engine: Arc<Engine>,
    keeper: AuditKeeper,
    requests: Arc<Requests>,
    audit: AuditHandle,
}

fn open_console(console: Console, place: Option<ConsoleSocket>) -> Result<Arc<Console>> {
    if let Some(ConsoleSocket { socket, public }) = place {
        console.open_for_good(listen(socket, CONSOLE_LISTEN)?, public)?;
    }
    Ok(Arc::new(console))
}

fn groups_of(serve: &ServeOptions) -> OperatorGroups {
    OperatorGroups {
        folder: serve.operator_sockets.clone(),
        operate: serve.operate_group.clone(),
        view: serve.view_group.clone(),
    }
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

fn renewals(tls: Option<Arc<Tls>>, audit: AuditHandle) -> Vec<Renewal> {
    let certificates = tls.map(|tls| Renewal {
        what: "certificates",
        renew: Box::new(move || {
            tls.reload();
            Ok(())
        }),
    });
    let reopen = move || {
        audit.reopen();
        Ok(())
    };
    certificates.into_iter().chain([Renewal { what: "audit trail", renew: Box::new(reopen) }]).collect()
}
