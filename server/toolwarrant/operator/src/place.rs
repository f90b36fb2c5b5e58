//! The place of the stored data: an SQLite database in the data folder, or a PostgreSQL that
//! replicas share. A folder of a replica has its name, the master key, the lock and the audit
//! trail. Start at [`StoreOptions::claim`].

use crate::answers::{RightsGranted, StoreChecked, StoreMade};
use crate::credential::CredentialSource;
use crate::data::{DataFolder, FolderError, REPLICA, RUN, SEEN, read_master_key, read_numbers, read_replica};
use crate::error::OperatorError;
use crate::flags;
use crate::names::Names;
use crate::open_error::OpenError;
use clap::error::ErrorKind;
use clap::{ArgMatches, Args, FromArgMatches};
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use toolwarrant_base::keyring::{Digest, KeyRing};
use toolwarrant_base::random::Random;
use toolwarrant_core::store::StoreError;
use toolwarrant_postgres::{Address, Candidate, Claim, Leader, NewRun, Postgres, SeenBeat, Waiting, find_leader};

/// The flags that say where the data is.
#[derive(Clone, Debug, Args)]
pub struct StoreOptions {
    /// PostgreSQL that several replicas share, of which one leads and the others wait, such as
    /// postgres://user@host1,host2/db; by default, the data is in the data folder
    #[arg(long = flags::STORE, global = true, value_name = "URL")]
    pub store: Option<String>,

    /// File with the password for the store, which only its owner can read
    #[arg(long = flags::STORE_PASSWORD, global = true, value_name = "FILE", value_parser = file)]
    pub store_password: Option<PathBuf>,

    /// Name of this replica among those that share the store; by default the name that the data
    /// folder has, or that of the machine
    #[arg(long = flags::REPLICA, global = true, value_name = "NAME")]
    pub replica: Option<String>,

    /// Name of this cell, 1 to 8 characters of a-z and 0-9. The ids of new keys have it, so that a
    /// balancer can lead their requests here
    #[arg(long = flags::CELL, global = true, value_name = "NAME", value_parser = cell)]
    pub cell: Option<String>,

    /// Seconds for which the replica that leads answers without its store; another one leads a
    /// second later at the earliest
    // A revocation waits for it, and an operator waits 30 s for the revocation.
    #[arg(long = flags::AUTHORITY_LEASE, global = true, value_name = "SECONDS", default_value = "5",
          value_parser = clap::value_parser!(u64).range(2..=20))]
    pub authority_lease: u64,
}

/// Parses a path. An empty one is filtered out later.
pub(crate) fn file(text: &str) -> Result<PathBuf, Infallible> {
    Ok(PathBuf::from(text))
}

const RECORD_EVERY: Duration = Duration::from_secs(1);

const COMMAND_PATIENCE: Duration = Duration::from_secs(25);

fn cell(text: &str) -> Result<String, &'static str> {
    let is_name = (1..=8).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    is_name.then(|| text.to_owned()).ok_or("the name of a cell has 1 to 8 characters of a-z and 0-9")
}

const NAME_MAX: usize = 63;

impl Default for StoreOptions {
    fn default() -> Self {
        Self { store: None, store_password: None, replica: None, cell: None, authority_lease: 5 }
    }
}

impl StoreOptions {
    /// Refuses the flags of a shared store without a store.
    pub(crate) fn of(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut options = Self::from_arg_matches(matches)?;
        let Self { store, replica, store_password, .. } = &mut options;
        *store = store.take().filter(|url| !url.is_empty());
        *replica = replica.take().filter(|name| !name.is_empty());
        *store_password = store_password.take().filter(|file| !file.as_os_str().is_empty());
        let unused = replica.is_some().then_some(flags::REPLICA);
        match unused.or(store_password.is_some().then_some(flags::STORE_PASSWORD)) {
            Some(flag) if store.is_none() => {
                let why =
                    format!("--{flag} is for a store that replicas share, and --{} does not name one", flags::STORE);
                Err(clap::Error::raw(ErrorKind::MissingRequiredArgument, why))
            }
            _ => Ok(options),
        }
    }

    #[must_use]
    pub fn is_folder(&self) -> bool {
        self.store.is_none()
    }

    #[must_use]
    pub fn lease(&self) -> Duration {
        Duration::from_secs(self.authority_lease)
    }

    fn address(&self) -> Result<Address, OpenError> {
        let url = self.store.clone().unwrap_or_default();
        let password = self.store_password.clone().map(|file| CredentialSource::File(file).read()).transpose();
        let password = password.map_err(|error| StoreError::Corrupt(error.to_string()))?;
        Ok(Address { url, password })
    }

    /// Waits until this process leads, and shows why it does not.
    pub async fn claim(
        &self,
        folder: &DataFolder,
        names: &Names,
        shown: &watch::Sender<Waiting>,
    ) -> Result<Claim, OpenError> {
        let (name, is_new) = self.name_replica(folder, true)?;
        let candidate = self.candidate(folder, names, &name, false)?;
        let seen = keep_seen(folder);
        let mut waits = shown.subscribe();
        let mut waiting = pin!(candidate.wait(shown, &seen));
        // Then no other process has this name.
        let claimed = tokio::select! {
            claimed = &mut waiting => Some(claimed?),
            _ = waits.wait_for(|why| matches!(why, Waiting::Leader(_))) => None,
        };
        if is_new {
            self.record_name(folder, &name)?;
        }
        let claim = match claimed {
            Some(claim) => claim,
            None => waiting.await?,
        };
        record_run(folder, &claim);
        Ok(claim)
    }

    /// Leads for a command that changes something. Fails while another process leads, or may still
    /// act.
    pub(crate) async fn claim_for_command(
        &self,
        folder: &DataFolder,
        names: &Names,
        mends: bool,
    ) -> Result<Claim, OpenError> {
        let (name, is_new) = self.name_replica(folder, false)?;
        if let Some(leader) = find_leader(&self.address()?).await? {
            return Err(StoreError::Unavailable(describe_leader(&leader)).into());
        }
        let (shown, mut why) = watch::channel(Waiting::default());
        let seen = watch::Sender::default();
        let claiming = self.candidate(folder, names, &name, mends)?.wait(&shown, &seen);
        let obstacle = why.wait_for(|why| matches!(why, Waiting::Obstacle(_)));
        let claim = tokio::select! {
            claim = claiming => claim,
            Ok(why) = obstacle => Err(StoreError::Unavailable(why.to_string())),
            () = sleep(COMMAND_PATIENCE) => Err(StoreError::Unavailable(shown.borrow().to_string())),
        }?;
        record_run(folder, &claim);
        if is_new && let Err(error) = self.record_name(folder, &name) {
            claim.give_back().await;
            return Err(error.into());
        }
        Ok(claim)
    }

    fn candidate(&self, folder: &DataFolder, names: &Names, name: &str, mends: bool) -> Result<Candidate, OpenError> {
        let (key, program) = (read_fingerprint(folder, names)?, format!("{} {}", names.program, names.version));
        let [former, seen] = [RUN, SEEN].map(|file| read_numbers(folder.path(), file));
        let former = former?.first().copied();
        let seen = match seen?[..] {
            [epoch, number] => Some(SeenBeat { epoch, number }),
            _ => None,
        };
        let (name, machine, lease) = (name.to_owned(), machine(), self.lease());
        let new = NewRun { name, former, machine, program, lease, key, seen, mends };
        Ok(Candidate::new(&self.address()?, new)?)
    }

    pub(crate) async fn open(
        &self,
        folder: &DataFolder,
        names: &Names,
        claim: Option<&Claim>,
    ) -> Result<Postgres, OpenError> {
        let (trail, _) = self.name_replica(folder, true)?;
        match claim {
            Some(claim) => Ok(Postgres::lead(claim, trail).await?),
            None => Ok(Postgres::read(&self.address()?, read_fingerprint(folder, names)?, trail).await?),
        }
    }

    /// Makes the tables of a new cluster. If [`Postgres::check_new`] refuses, the folder stays as
    /// it is.
    pub(crate) async fn init(&self, folder: &DataFolder, names: &Names) -> Result<StoreMade, OpenError> {
        let address = self.address()?;
        Postgres::check_new(&address).await?;
        let (replica, _) = self.name_replica(folder, true)?;
        let key = folder.master_key(&Random::System)?;
        let key = fingerprint(&KeyRing::new(&names.salt, &key, Random::System));
        Postgres::init(&address, key).await?;
        self.record_name(folder, &replica)?;
        let copy = format!("copy {} to the data folder of each other replica", folder.join("master.key").display());
        Ok(StoreMade { store: "made", replica, next: copy })
    }

    pub(crate) async fn grant(&self, account: &str) -> Result<RightsGranted, OpenError> {
        Postgres::grant(&self.address()?, account).await?;
        Ok(RightsGranted { account: account.to_owned(), rights: "granted" })
    }

    pub(crate) async fn check(&self) -> Result<StoreChecked, OpenError> {
        Ok(StoreChecked { store: Postgres::inspect(&self.address()?).await? })
    }

    /// Returns the name of the replica, and true if the folder does not have it yet. A command that
    /// changes something does not use the name of the machine.
    fn name_replica(&self, folder: &DataFolder, invents: bool) -> Result<(String, bool), OpenError> {
        folder.refuse_database()?;
        let name = match (self.find_replica(folder.path())?, &self.replica) {
            (Some(known), _) => return Ok((known, false)),
            (None, Some(given)) => given.clone(),
            (None, None) if invents => machine(),
            (None, None) => return Err(FolderError::Unnamed(folder.path().to_owned()).into()),
        };
        if name.is_empty()
            || name.len() > NAME_MAX
            || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        {
            return Err(StoreError::Corrupt(format!(
                "a replica cannot be named {name:?}: a name has 1 to {NAME_MAX} letters, digits, hyphens, dots and underscores; \
                 --{} sets another",
                flags::REPLICA
            ))
            .into());
        }
        Ok((name, true))
    }

    pub(crate) fn find_replica(&self, folder: &Path) -> Result<Option<String>, FolderError> {
        match (read_replica(folder)?, &self.replica) {
            (Some(known), Some(given)) if known != *given => Err(FolderError::OtherReplica(folder.to_owned(), known)),
            (known, _) => Ok(known),
        }
    }

    fn record_name(&self, folder: &DataFolder, name: &str) -> Result<(), FolderError> {
        folder.write(REPLICA, name).map_err(|error| FolderError::Io(folder.join(REPLICA), error))
    }
}

/// Records the run, whose process is dead once another one locks the folder. Without a record, the
/// next process leads later.
fn record_run(folder: &DataFolder, claim: &Claim) {
    if let Err(error) = folder.write(RUN, &claim.epoch.to_string()) {
        tracing::warn!(%error, "the run is not recorded, so the next one waits for the end of its lease");
    }
}

/// Records the latest beat, so that a later start notices if the store is an older copy.
pub(crate) fn keep_seen(folder: &DataFolder) -> watch::Sender<SeenBeat> {
    let (sender, mut seen) = watch::channel(SeenBeat::default());
    let folder = folder.clone();
    tokio::spawn(async move {
        let mut fails = false;
        while seen.changed().await.is_ok() {
            let (SeenBeat { epoch, number }, folder) = (*seen.borrow_and_update(), folder.clone());
            let written = spawn_blocking(move || folder.write(SEEN, &format!("{epoch} {number}"))).await;
            let has_failed = std::mem::replace(&mut fails, matches!(written, Ok(Err(_))));
            if let (Ok(Err(error)), false) = (written, has_failed) {
                tracing::warn!(%error, "the latest beat of the leader cannot be recorded; retrying");
            }
            sleep(RECORD_EVERY).await;
        }
    });
    sender
}

fn machine() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

pub(crate) fn describe_leader(Leader { name, machine }: &Leader) -> String {
    format!(
        "the replica `{name}` on the machine `{machine}` leads, and alone changes something; run the command in its data folder"
    )
}

pub(crate) fn no_shared_store() -> OperatorError {
    OperatorError::refusal(format!(
        "--{} names the store that replicas share, such as postgres://user@host/db; without it, the data is in the data folder",
        flags::STORE
    ))
}

fn read_fingerprint(folder: &DataFolder, names: &Names) -> Result<Digest, FolderError> {
    let key = read_master_key(folder.path()).map_err(|error| match error {
        FolderError::Io(path, _) => FolderError::KeyOfReplica(path),
        other => other,
    })?;
    Ok(fingerprint(&KeyRing::new(&names.salt, &key, Random::System)))
}

fn fingerprint(keyring: &KeyRing) -> Digest {
    keyring.mac(&["store", "master key"])
}
