//! Runs a command: in the server of the data folder or, if no server runs, in this process, which
//! then locks the folder. Start at [`Offline::run`].

use crate::answers::Answered;
use crate::background::Background;
use crate::cli::WayToServer;
use crate::command::{CommandAnswer, CommandRow, OperatorCommand, StoreCommand, execute, tools};
use crate::context::{Inventory, OpenedData, OperatorContext, ProgramIdentity};
use crate::data::{AUDIT, DataFolder, FolderError, SOCKET, has_data, is_begun, refuse_foreign};
use crate::doctor;
use crate::error::OperatorError;
use crate::flags;
use crate::keeping::{AuditKeeper, AuditOptions};
use crate::lines::ActLines;
use crate::names::Names;
use crate::open_error::OpenError;
use crate::own::{CommandRunner, Explanation};
use crate::owner::refuse_other_user;
use crate::place::{StoreOptions, no_shared_store};
use crate::restore;
use crate::socket::{self, SocketRequest};
use crate::upstreams::Upstreams;
use crate::user::local_operator;
use std::path::{Path, absolute};
use std::sync::Arc;
use tokio::runtime::Runtime;
use tokio::task::{JoinHandle, spawn_blocking};
use toolwarrant_audit::Audit;
use toolwarrant_base::BoxFuture;
use toolwarrant_base::clock::Clock;
use toolwarrant_base::keyring::KeyRing;
use toolwarrant_base::random::Random;
use toolwarrant_core::act::{Channel, Operator, Role};
use toolwarrant_core::files::ServiceFiles;
use toolwarrant_core::registry::Durability;
use toolwarrant_postgres::Postgres;
use toolwarrant_store::Store;

async fn ask_server(
    names: &Names,
    store: &StoreOptions,
    folder: &Path,
    WayToServer { socket, groups, data_given, claims: _ }: &WayToServer,
    request: &SocketRequest,
) -> Option<Result<Answered, OperatorError>> {
    if let Some(socket) = socket {
        let nobody = || OperatorError::unavailable(format!("no server listens on {}", socket.display()));
        let denial = || socket::describe_denial(std::slice::from_ref(socket)).unwrap_or_else(nobody);
        return Some(socket::ask(socket, request).await.unwrap_or_else(|| Err(denial())));
    }
    // Members of a group may have no data folder, and cannot enter that of the server.
    if !data_given && (refuse_other_user(folder).is_err() || !has_data(folder, names)) {
        let sockets = socket::of_groups(groups);
        for socket in &sockets {
            if let Some(answer) = socket::ask(socket, request).await {
                return Some(answer);
            }
        }
        if let Some(denial) = socket::describe_denial(&sockets) {
            return Some(Err(denial));
        }
    }
    // The server of another service would carry out the command.
    if let Err(error) = refuse_foreign(folder, names).and_then(|()| store.find_replica(folder)) {
        return Some(Err(OpenError::from(error).into()));
    }
    socket::ask(&folder.join(SOCKET), request).await
}

/// The parts of a service that do not depend on the type of its handlers.
#[derive(Default)]
pub struct ServiceParts {
    pub inventory: Option<Arc<dyn Inventory>>,
    pub own: Option<CommandRunner>,
    pub upstreams: Option<Arc<dyn Upstreams>>,
    pub background: Vec<BoxFuture<'static, ()>>,
    /// The words of a start for the targets, such as `3 printers`.
    pub serves: Option<String>,
    /// The end of the text of the first start.
    pub hint: &'static str,
}

pub type MakeParts<'a> = Box<dyn FnOnce(&DataFolder, ServiceFiles) -> Result<ServiceParts, Explanation> + 'a>;

pub struct Offline<P> {
    pub program: ProgramIdentity,
    pub store: StoreOptions,
    pub parts: P,
}

impl Offline<MakeParts<'_>> {
    /// Blocks, because the compiler would compile an async function for each service again.
    pub fn run(
        self,
        runtime: &Runtime,
        folder: &Path,
        way: WayToServer,
        command: OperatorCommand,
    ) -> Result<Answered, OperatorError> {
        runtime.block_on(async move {
            let Self { program, store, .. } = &self;
            let names = &*program.names;
            if let OperatorCommand::Tools { name } = &command {
                return Answered::of(tools(program.catalogue, name.as_deref())?);
            }
            let mut command = command;
            // The server has another working directory.
            if let OperatorCommand::Backup { file } = &mut command {
                *file = absolute(&*file).unwrap_or_default();
            }
            let operator = local_operator(Channel::Offline, way.claims.clone());
            if !store.is_folder() {
                command.row().refuse_on_files()?;
            }
            let is_missing = !way.data_given && !folder.is_dir();
            if is_missing
                && matches!(command, OperatorCommand::Restore { .. } | OperatorCommand::Store(StoreCommand::Init))
            {
                return Err(no_folder(folder, way.data_given, names));
            }
            if let OperatorCommand::Restore { file, master_key, owner } = command {
                refuse_foreign(folder, names).map_err(OpenError::from)?;
                return Answered::of(restore::run(folder, names, &file, (master_key, owner), operator)?.into());
            }
            if let OperatorCommand::Store(command) = &command
                && !matches!(command, StoreCommand::BeginAgain { .. })
            {
                return Answered::of(self.carry_out_on_store(folder, command.clone()).await?);
            }
            let claims = way.claims.clone();
            let request = SocketRequest { program: names.program.to_owned(), command, claims };
            if let Some(answer) = ask_server(names, store, folder, &way, &request).await {
                return answer;
            }
            let socket = folder.join(SOCKET);
            let SocketRequest { command, .. } = &request;
            if let OperatorCommand::Ready | OperatorCommand::Overview | OperatorCommand::Console(_) = command {
                return Err(OperatorError::unavailable(format!("no server uses the folder {}", folder.display())));
            }
            // Opening the folder would create a database, even in one that is not a data folder.
            let begins = way.data_given && (command.row().begins || !store.is_folder());
            let is_begun = if store.is_folder() { has_data(folder, names) } else { is_begun(folder, names) };
            if !begins && !is_begun {
                return Err(no_folder(folder, way.data_given, names));
            }
            if let (OperatorCommand::Doctor, true) = (command, store.is_folder()) {
                return Answered::of(doctor::examine_offline(folder, program).await?.into());
            }
            let folder = match DataFolder::open(folder, names) {
                Err(FolderError::InUse(path, program)) => match socket::ask(&socket, &request).await {
                    Some(answer) => return answer,
                    None => return Err(OpenError::from(FolderError::InUse(path, program)).into()),
                },
                opened => opened.map_err(OpenError::from)?,
            };
            Answered::of(carry_out(self, &folder, request.command, &operator).await?)
        })
    }

    async fn carry_out_on_store(&self, folder: &Path, command: StoreCommand) -> CommandAnswer {
        let Self { program: ProgramIdentity { names, .. }, store, .. } = self;
        if store.is_folder() {
            return Err(no_shared_store());
        }
        Ok(match command {
            StoreCommand::Init => {
                store.init(&DataFolder::open(folder, names).map_err(OpenError::from)?, names).await?.into()
            }
            StoreCommand::Check | StoreCommand::BeginAgain { .. } => store.check().await?.into(),
            StoreCommand::Grant { account } => store.grant(&account).await?.into(),
        })
    }
}

fn no_folder(folder: &Path, is_named: bool, names: &Names) -> OperatorError {
    let app = format!(" or create an application with `{} app create`", names.program);
    let (folder, app, flag) = (folder.display(), if is_named { &*app } else { "" }, flags::DATA);
    let how = format!("start a server once{app}, or choose another folder with --{flag}");
    OperatorError::not_found(format!("there is no database in {folder}; {how}"))
}

pub(crate) async fn carry_out<P>(
    offline: Offline<P>,
    folder: &DataFolder,
    command: OperatorCommand,
    operator: &Operator,
) -> CommandAnswer
where
    P: FnOnce(&DataFolder, ServiceFiles) -> Result<ServiceParts, Explanation>,
{
    let Offline { program: ProgramIdentity { names, catalogue, .. }, store, .. } = &offline;
    let CommandRow { role, mends, .. } = command.row();
    let reads = role == Role::View;
    let claim = match store.is_folder() || reads {
        true => None,
        false => Some(store.claim_for_command(folder, names, mends).await?),
    };
    let mut opened = OpenedData::open(folder, names, *catalogue, &Random::System, (store, claim)).await?;
    let shared = opened.shared.take();
    let cluster = shared.as_ref().map(|shared| Arc::clone(&shared.store));
    let working = carry_out_over((opened, cluster), offline, folder, command, operator);
    let answer = match &shared {
        None => working.await,
        Some(shared) => tokio::select! {
            answer = working => answer,
            why = shared.store.wait_for_unknown_fate() => {
                Err(OperatorError::unavailable(format!("{why}; `acts` shows it then")))
            }
        },
    };
    if let Some(shared) = shared {
        shared.leave().await;
    }
    answer
}

async fn carry_out_over<P>(
    (opened, shared): (OpenedData, Option<Arc<Postgres>>),
    Offline { program, store: _, parts }: Offline<P>,
    folder: &DataFolder,
    command: OperatorCommand,
    operator: &Operator,
) -> CommandAnswer
where
    P: FnOnce(&DataFolder, ServiceFiles) -> Result<ServiceParts, Explanation>,
{
    let files = opened.files().await.map_err(OpenError::from)?;
    let ServiceParts { inventory, own, mut background, .. } = parts(folder, files).map_err(OpenError::Service)?;
    let reads = command.row().role == Role::View;
    let mut trail = match reads {
        true => None,
        false => Trail::open(folder, &opened.keyring, &opened.clock, opened.database.clone()).await,
    };
    if shared.is_some() && reads {
        background.clear();
    }
    let mut context = OperatorContext::new(program, folder, (opened, shared), (inventory, own));
    if let Some(trail) = &mut trail {
        context.audit = Some(trail.audit.handle());
        context.lines = std::mem::take(&mut trail.lines);
    }
    let background = Background::of_service(background);
    let answer = execute(&context, operator, command).await;
    background.stop().await;
    // This process ends, so it cannot retry to store the change as a server would.
    let settled = context.registry.settle().await;
    context.write_lines().await;
    if let Some(trail) = trail {
        trail.close().await;
    }
    match (answer, settled) {
        (Ok(_), Durability::Owed(why)) => Err(OperatorError::unavailable(why)),
        (answer, _) => answer,
    }
}

struct Trail {
    audit: Audit,
    lines: ActLines,
    keeper: JoinHandle<()>,
}

impl Trail {
    /// Returns `None` if the trail cannot be written: the next start of a server writes the lines.
    async fn open(folder: &DataFolder, keyring: &KeyRing, clock: &Clock, store: Arc<dyn Store>) -> Option<Self> {
        // A server may be told to keep more than the default.
        let options = AuditOptions { keep_bytes: u64::MAX, ..AuditOptions::default() };
        match AuditKeeper::start(&folder.join(AUDIT), keyring, clock.clone(), store, options).await {
            Ok((audit, keeper)) => {
                Some(Self { audit, lines: ActLines::of(&keeper), keeper: tokio::spawn(keeper.run()) })
            }
            Err(error) => {
                tracing::warn!(%error, "the audit trail cannot be written now; the next start writes what is missing");
                None
            }
        }
    }

    async fn close(self) {
        let Self { audit, lines: _, keeper } = self;
        let stopped = spawn_blocking(|| audit.stop()).await;
        if let Err(error) = stopped.and(keeper.await) {
            tracing::error!(%error, "the audit trail was not closed in order");
        }
    }
}
