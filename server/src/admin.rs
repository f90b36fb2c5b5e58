//! What an operator asks of the product: one [`Command`], one [`execute`], whether a server runs or not.
//!
//! With a running server the command goes through [`socket`] in its data folder; without one, whoever asks opens the folder
//! itself. Either way the answer is JSON, which [`shown`] makes readable.

mod command;
mod doctor;
pub mod monitor;
mod offline;
pub mod shown;
pub mod socket;

pub use command::{AppCommand, AuditCommand, Command, DeviceCommand, KeyCommand, TaskCommand};
pub use offline::run;

use crate::clock::Clock;
use crate::data::DataFolder;
use crate::framework::access::Grants;
use crate::framework::audit;
use crate::framework::catalogue::ToolDef;
use crate::framework::registry::{NewApplication, NewKey, Refused, Registry};
use crate::phones::contract::{CATALOGUE, DeviceId};
use crate::phones::upstream::Upstream;
use crate::phones::upstream::sim::Sim;
use crate::random::Random;
use crate::store::sqlite::Sqlite;
use crate::store::{ApplicationRow, Broken, KeyRow, Record, Store, Which};
use crate::tasks::task::TaskId;
use crate::vault::Vault;
use anyhow::Context;
use serde_json::{Map, Value, json};
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What commands are carried out on.
pub struct Office {
    /// Applications and keys.
    pub registry: Registry,
    /// Tasks and the ledger.
    pub store: Arc<dyn Store>,
    /// The devices.
    pub upstream: Arc<dyn Upstream>,
    /// Where all of it lies.
    pub folder: PathBuf,
    /// The time.
    pub clock: Clock,
}

impl Office {
    /// Where the audit trail is.
    #[must_use]
    pub fn audit(&self) -> PathBuf {
        self.folder.join(AUDIT)
    }
}

/// The audit trail's name in the data folder.
const AUDIT: &str = "audit";

/// The journal of the simulated phones.
const JOURNAL: &str = "simulated.jsonl";

/// The simulated phones.
#[derive(Clone, Copy, Debug)]
pub struct Fleet {
    /// How many.
    pub devices: u32,
    /// Their seed: the same seed gives the same phones.
    pub seed: u64,
}

/// A data folder with all that is in it, open.
pub struct Opened {
    /// What an operator needs of it.
    pub office: Office,
    /// What its master key opens.
    pub vault: Vault,
    /// Its simulated phones.
    pub sim: Arc<Sim>,
    /// The office's store, by what it is.
    pub database: Arc<Sqlite>,
}

impl Opened {
    /// Opens a folder that belongs to this process. Blocks for as long as the disk takes.
    ///
    /// # Errors
    /// What in it cannot be opened.
    pub async fn open(folder: &DataFolder, fleet: Fleet, clock: Clock, random: &Random) -> anyhow::Result<Self> {
        let vault = Vault::new(&folder.master_key(random)?, random.clone());
        let database = Arc::new(Sqlite::open(folder)?);
        let store: Arc<dyn Store> = database.clone();
        let registry = Registry::open(store.clone(), &CATALOGUE, vault.clone(), clock.clone(), random.clone()).await?;
        let sim = Sim::new(fleet.seed, fleet.devices, clock.clone(), &random.bytes()?);
        let sim = Arc::new(sim.journaled(&folder.join(JOURNAL)).context("cannot simulate phones")?);
        let office = Office { registry, store, upstream: sim.clone(), folder: folder.path().to_owned(), clock };
        Ok(Self { office, vault, sim, database })
    }
}

/// Why a command was not carried out, for whoever gave it.
pub type Why = String;

/// Carries out `command`; answers with an object, or with a list of objects.
///
/// # Errors
/// What was wrong with it, and what there is instead.
pub async fn execute(office: &Office, command: Command) -> Result<Value, Why> {
    match command {
        Command::App(command) => apps(office, command).await,
        Command::Key(command) => keys(office, command).await,
        Command::Device(command) => devices(office, command).await,
        Command::Task(command) => tasks(office, command).await,
        Command::Refunds { limit } => refunds(office, limit).await,
        Command::Tools { name } => tools(name.as_deref()),
        Command::Audit(AuditCommand::Tail { lines }) => tail(office, lines),
        Command::Doctor => Ok(doctor::examine(&office.folder, Ok(&*office.store), office.clock.now()).await),
    }
}

async fn apps(office: &Office, command: AppCommand) -> Result<Value, Why> {
    let registry = &office.registry;
    match command {
        AppCommand::Create { name, permissions, requests_per_minute } => {
            let requests_per_minute = requests_per_minute.unwrap_or(CATALOGUE.service.requests_per_minute);
            let grants = Grants::Set(BTreeSet::new());
            let new = NewApplication { name: name.clone(), permissions, grants, requests_per_minute };
            registry.create(new).await?;
            app(office, &name).await
        }
        AppCommand::List => {
            let keys = registry.keys().await;
            let live =
                |row: &ApplicationRow| keys.iter().filter(|key| key.application == row.id && is_live(key)).count();
            let row = |row: ApplicationRow| {
                json!({"name": row.name, "id": row.id, "permissions": row.permissions, "devices": seen(&row),
                    "live_keys": live(&row), "requests_per_minute": row.requests_per_minute})
            };
            Ok(registry.applications().await.into_iter().map(row).collect())
        }
        AppCommand::Show { app: name } => app(office, &name).await,
        AppCommand::Grant { app: name, permissions } => {
            let id = registry.find(&name).await?.id;
            registry
                .change(&id, |row| {
                    row.permissions.extend(permissions);
                    row.permissions.sort_unstable();
                    row.permissions.dedup();
                })
                .await?;
            app(office, &name).await
        }
        AppCommand::Revoke { app: name, permissions } => {
            let row = registry.find(&name).await?;
            if let Some(absent) = permissions.iter().find(|permission| !row.permissions.contains(permission)) {
                return Err(format!("`{name}` was not granted `{absent}`; it has {}", row.permissions.join(", ")));
            }
            registry.change(&row.id, |row| row.permissions.retain(|held| !permissions.contains(held))).await?;
            app(office, &name).await
        }
    }
}

async fn app(office: &Office, name: &str) -> Result<Value, Why> {
    let row = office.registry.find(name).await?;
    let keys: Vec<_> = office.registry.keys().await;
    let keys = keys.iter().filter(|key| key.application == row.id).map(|key| key_shown(office, key, &row.name));
    let keys: Vec<Value> = keys.collect();
    let ApplicationRow { id, name, permissions, requests_per_minute, grants, created_at } = row;
    let devices = grants.map_or(json!("all"), |grants| json!(grants));
    Ok(json!({"name": name, "id": id, "permissions": permissions, "devices": devices,
        "requests_per_minute": requests_per_minute, "created_at": created_at, "keys": keys}))
}

async fn keys(office: &Office, command: KeyCommand) -> Result<Value, Why> {
    let registry = &office.registry;
    let new = |NewKey { key_id, secret }, note| json!({"key_id": key_id, "secret": secret.expose(), "note": note});
    match command {
        KeyCommand::Create { app, expires } => {
            let expires_at = expires.map(|days| office.clock.now().plus(Duration::from_hours(24 * u64::from(days))));
            let id = registry.find(&app).await?.id;
            Ok(new(registry.issue_key(&id, expires_at).await?, "the secret is shown this once"))
        }
        KeyCommand::List { app } => {
            let rows = registry.applications().await;
            let names: HashMap<_, _> = rows.iter().map(|row| (row.id.as_str(), row.name.as_str())).collect();
            let only = match &app {
                Some(app) => Some(registry.find(app).await?.id),
                None => None,
            };
            let keys = registry.keys().await;
            let keys = keys.iter().filter(|key| only.as_ref().is_none_or(|id| key.application == *id));
            Ok(keys.map(|key| key_shown(office, key, names.get(key.application.as_str()).unwrap_or(&""))).collect())
        }
        KeyCommand::Rotate { key } => Ok(new(
            registry.rotate_key(&key).await?,
            "the secret is shown this once; the one before it lives until the next rotation, any older one has ended",
        )),
        KeyCommand::Revoke { key } => {
            registry.revoke_key(&key).await?;
            Ok(json!({"key_id": key, "state": "revoked"}))
        }
    }
}

fn is_live(key: &KeyRow) -> bool {
    !key.secrets.is_empty()
}

fn key_shown(office: &Office, key: &KeyRow, application: &str) -> Value {
    let KeyRow { id, application: _, secrets, created_at, expires_at } = key;
    let state = match expires_at {
        _ if secrets.is_empty() => "revoked",
        Some(end) if *end <= office.clock.now() => "expired",
        _ => "live",
    };
    json!({"key_id": id, "application": application, "state": state, "live_secrets": secrets.len(),
        "created_at": created_at, "expires_at": expires_at})
}

/// How many devices an application sees.
fn seen(row: &ApplicationRow) -> Value {
    row.grants.as_ref().map_or(json!("all"), |grants| json!(grants.len()))
}

async fn devices(office: &Office, command: DeviceCommand) -> Result<Value, Why> {
    match command {
        DeviceCommand::List { after, limit } => {
            let after = after.as_deref().map(device).transpose()?;
            let page = office.upstream.page(after.as_ref(), limit).await.map_err(|error| error.to_string())?;
            let applications = office.registry.applications().await;
            let row = |phone: &Arc<crate::phones::upstream::Snapshot>| {
                let sees =
                    |row: &&ApplicationRow| row.grants.as_ref().is_none_or(|ids| ids.contains(phone.id.as_str()));
                let seen_by: Vec<_> = applications.iter().filter(sees).map(|row| row.name.as_str()).collect();
                json!({"device_id": phone.id, "name": phone.name, "state": phone.state(),
                    "capabilities": phone.capabilities(), "applications": seen_by})
            };
            Ok(page.iter().map(row).collect())
        }
        DeviceCommand::Assign { app: name, devices, all } => {
            let devices = known(office, &devices).await?;
            let id = office.registry.find(&name).await?.id;
            let assign = |row: &mut ApplicationRow| match &mut row.grants {
                grants if all => *grants = None,
                Some(grants) => grants.extend(devices),
                None => {}
            };
            office.registry.change(&id, assign).await?;
            app(office, &name).await
        }
        DeviceCommand::Unassign { app: name, devices, all } => {
            let row = office.registry.find(&name).await?;
            let Some(grants) = row.grants.filter(|_| !all) else {
                if !all {
                    return Err(format!(
                        "`{name}` sees all devices; unassign --all first, then assign those that it may see"
                    ));
                }
                office.registry.change(&row.id, |row| row.grants = Some(BTreeSet::new())).await?;
                return app(office, &name).await;
            };
            if let Some(absent) = devices.iter().find(|device| !grants.contains(*device)) {
                return Err(format!("`{absent}` is not assigned to `{name}`"));
            }
            let unassign = |row: &mut ApplicationRow| {
                row.grants.iter_mut().for_each(|grants| grants.retain(|id| !devices.contains(id)));
            };
            office.registry.change(&row.id, unassign).await?;
            app(office, &name).await
        }
    }
}

fn device(id: &str) -> Result<DeviceId, Why> {
    DeviceId::new(id).map_err(|_| format!("`{id}` is no device id"))
}

/// Those devices, each of which there is.
async fn known(office: &Office, ids: &[String]) -> Result<Vec<String>, Why> {
    let devices = ids.iter().map(|id| device(id)).collect::<Result<Vec<_>, _>>()?;
    let found = office.upstream.read(&devices).await.map_err(|error| error.to_string())?;
    match devices.iter().zip(&found).find(|(_, found)| found.is_none()) {
        Some((absent, _)) => {
            Err(format!("there is no device `{absent}`; `cloudphone device list` shows what there is"))
        }
        None => Ok(ids.to_vec()),
    }
}

async fn tasks(office: &Office, command: TaskCommand) -> Result<Value, Why> {
    match command {
        TaskCommand::List { app, device, limit } => {
            let application = match app {
                Some(app) => Some(office.registry.find(&app).await?.id),
                None => None,
            };
            let names = names(office).await;
            let which = Which { application, target: device, before: None, limit };
            let records = office.store.tasks(which).await?;
            Ok(records.iter().map(|record| Value::Object(task_row(record, &names))).collect())
        }
        TaskCommand::Show { task } => {
            let id = TaskId::parse(&task).ok_or_else(|| format!("`{task}` is no task id"))?;
            let record = office.store.task(id).await?.ok_or_else(|| format!("there is no task `{task}`"))?;
            let mut shown = task_row(&record, &names(office).await);
            let Record { task, refunded_at, .. } = &record;
            let evidence = task.evidence().map(|evidence| {
                json!({"checked": evidence.checked, "expected": evidence.expected, "observed": evidence.observed,
                    "reported": evidence.reported.as_str(), "checked_at": evidence.at})
            });
            let why = task.outward_status().def(&CATALOGUE).map(|state| state.meaning);
            shown.insert("deadline_at".to_owned(), json!(task.deadline_at));
            shown.insert("refunded_at".to_owned(), json!(refunded_at));
            shown.insert("meaning".to_owned(), json!(why));
            shown.insert("evidence".to_owned(), json!(evidence));
            let timeline = office.store.timeline(id).await?;
            let timeline = timeline.iter().map(|line| json!({"at": line.at, "phase": line.phase, "what": line.what}));
            shown.insert("timeline".to_owned(), timeline.collect());
            Ok(Value::Object(shown))
        }
    }
}

async fn names(office: &Office) -> HashMap<String, String> {
    office.registry.applications().await.into_iter().map(|row| (row.id, row.name)).collect()
}

fn task_row(record: &Record, names: &HashMap<String, String>) -> Map<String, Value> {
    let Record { id, application, tool, resource: _, target, created_at, task, .. } = record;
    let phase = task.status().is_none().then(|| task.phase.as_str());
    let row = json!({
        "task_id": id.to_string(),
        "application": names.get(application).unwrap_or(application),
        "tool": tool,
        "device_id": target,
        "status": task.outward_status().as_str(),
        "phase": phase,
        "attempts": task.attempts,
        "created_at": created_at,
        "finished_at": task.finished_at,
    });
    match row {
        Value::Object(row) => row,
        _ => Map::new(),
    }
}

/// Lines of the ledger that are read at a time.
const PAGE: u32 = 1_000;

async fn refunds(office: &Office, limit: usize) -> Result<Value, Why> {
    let names = names(office).await;
    let (mut last, mut rows) = (0, Vec::new());
    loop {
        let page = office.store.ledger(last, PAGE).await?;
        let Some(line) = page.last() else { break };
        last = line.number;
        rows.extend(page.into_iter().filter(|line| line.kind == "refund"));
    }
    let row = |line: &crate::store::LedgerRow| {
        let application = names.get(&line.application).unwrap_or(&line.application);
        json!({"refunded_at": line.at, "application": application, "units": 1, "task_id": line.id.to_string()})
    };
    Ok(rows.iter().rev().take(limit).map(row).collect())
}

/// The contract, as an agent sees it.
fn tools(name: Option<&str>) -> Result<Value, Why> {
    let Some(name) = name else {
        let row = |tool: &ToolDef| json!({"tool": tool.name, "permission": tool.permission.name, "title": tool.title});
        return Ok(CATALOGUE.tools.iter().map(row).collect());
    };
    let schema = |json| serde_json::from_str::<Value>(json).ok();
    let tool = CATALOGUE.tool(name).ok_or_else(|| {
        let names: Vec<_> = CATALOGUE.tools.iter().map(|tool| tool.name).collect();
        format!("there is no tool `{name}`; there are {}", names.join(", "))
    })?;
    Ok(
        json!({"name": tool.name, "title": tool.title, "permission": tool.permission.name, "description": tool.description,
        "input_schema": schema(tool.input_schema), "output_schema": schema(tool.output_schema)}),
    )
}

fn tail(office: &Office, lines: usize) -> Result<Value, Why> {
    let folder = office.audit();
    let lines = audit::tail(&folder, lines).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok()).collect())
}

impl From<Refused> for Why {
    fn from(refused: Refused) -> Self {
        refused.to_string()
    }
}

impl From<Broken> for Why {
    fn from(Broken(why): Broken) -> Self {
        why
    }
}
