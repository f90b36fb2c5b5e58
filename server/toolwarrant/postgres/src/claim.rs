//! The claim to lead. One process at a time has it, and the others wait.
//!
//! The claim is a session lock of the server. A free lock proves nothing about the process that
//! held it, because a cut or a restart of the server frees it, too. So the process that gets the
//! lock waits until the former leader cannot act any more. That is so if it has left, if it was a
//! run of the same data folder, or if no beat of it was seen for longer than its lease.
//!
//! The session that has the lock beats, too. When it ends, so does the claim. Start at
//! [`Candidate::wait`].

use crate::column::{get, rows};
use crate::connection::{Address, Server, describe, limit_locks, unavailable};
use crate::obstacle::{describe_loss, find_obstacle};
use crate::opening::open;
use crate::runs::{self, Begun, Leader, NOW, NewRun, SeenBeat};
use std::fmt;
use std::mem::replace;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_core::lease::Lease;
use toolwarrant_core::store::StoreError;

pub const LEASE: Duration = Duration::from_secs(5);

const ASK_EVERY: Duration = Duration::from_millis(200);

const BEAT_EVERY: Duration = Duration::from_secs(1);

const PATIENCE: Duration = Duration::from_secs(5);

/// Silence beyond the lease. Clocks that run at different speeds differ by less.
const MARGIN: Duration = Duration::from_secs(1);

/// Then a session is ended that has the lock without leading.
const BECOMES_LEADER: Duration = Duration::from_mins(1);

/// From the clock of the server.
const CLOCK_OFF: Duration = Duration::from_secs(1);

/// One for each schema.
const LOCK: &str = "hashtextextended('toolwarrant leader ' || current_schema(), 0)";

/// Each replica has that of its name.
const NAME: &str = "hashtextextended('toolwarrant replica ' || current_schema() || ' ' || $1::text, 0)";

/// Then two processes have one name. The server keeps a session whose client is gone for 15 s, and
/// the longest lease is 20 s.
const NAMESAKE: Duration = Duration::from_secs(23);

/// The leader has it, too, once it answers clients.
const SERVES: &str = "hashtextextended('toolwarrant serves ' || current_schema(), 0)";

/// Returns the rows of `pg_locks` of a session lock.
fn select_lock(columns: &str, lock: &str) -> String {
    format!(
        "SELECT {columns} FROM pg_locks
             WHERE locktype = 'advisory' AND granted AND objsubid = 1
               AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
               AND (classid::bigint << 32) | objid::bigint = {lock}"
    )
}

/// Returns true if a process leads and answers clients.
pub(crate) async fn is_served(client: &Client) -> Result<bool, StoreError> {
    let lock = select_lock("", SERVES);
    let sql = format!("SELECT EXISTS ({lock}) AND EXISTS (SELECT FROM replica WHERE state = 'serving')");
    Ok(client.query_one(&sql, &[]).await.map_err(unavailable)?.get(0))
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Waiting {
    #[default]
    Starting,
    /// This process leads, or has led and may still act.
    Leader(Leader),
    /// An operator has to remove it.
    Obstacle(String),
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starting => f.write_str("the program is starting"),
            Self::Leader(Leader { name, machine }) => {
                write!(f, "the replica `{name}` on the machine `{machine}` leads, and this one waits")
            }
            Self::Obstacle(why) => f.write_str(why),
        }
    }
}

/// The claim of this process, with its run. It ends when this is dropped.
pub struct Claim {
    client: Client,
    pub(crate) server: Server,
    pub epoch: u64,
    pub(crate) length: Duration,
    /// The time of the server at the beginning of the run.
    pub time: Timestamp,
}

struct LeadingRun {
    leader: Leader,
    beat: SeenBeat,
    lease: Duration,
}

/// The view of a waiting process, each part with the time since which it is known.
#[derive(Default)]
struct Watched {
    beat: Option<(SeenBeat, Instant)>,
    holder: Option<(i32, Instant)>,
    /// Another session with the name of this replica.
    namesake: Option<(i32, Instant)>,
}

pub struct Candidate {
    server: Server,
    new: NewRun,
}

impl Candidate {
    pub fn new(address: &Address, new: NewRun) -> Result<Self, StoreError> {
        Ok(Self { server: Server::parse(address)?, new })
    }

    /// Shows meanwhile why this process does not lead, and the latest beat of the leader. Fails if
    /// a server answers that this process cannot use.
    pub async fn wait(
        self,
        shown: &watch::Sender<Waiting>,
        seen: &watch::Sender<SeenBeat>,
    ) -> Result<Claim, StoreError> {
        let Self { server, mut new } = self;
        let (mut watched, mut session) = (Watched::default(), None);
        loop {
            let mut client = match session.take() {
                Some(client) => client,
                None => match open(&server, new.key).await {
                    Err(StoreError::Unavailable(why)) => {
                        show(shown, Waiting::Obstacle(why));
                        sleep(ASK_EVERY).await;
                        continue;
                    }
                    connected => connected?,
                },
            };
            let asked = timeout(PATIENCE, ask(&mut client, &mut new, &mut watched)).await;
            let silent = || StoreError::Unavailable("PostgreSQL does not answer".to_owned());
            let waiting = match asked.unwrap_or_else(|_| Err(silent())) {
                Ok(Ok(Begun { epoch, time })) => {
                    // A beat that waits for a lock shows who has it.
                    let _ = limit_locks(&client, "0").await;
                    return Ok(Claim { client, server, epoch, length: new.lease, time });
                }
                Ok(Err(waiting)) => {
                    session = Some(client);
                    waiting
                }
                Err(error @ StoreError::Conflict(_)) => return Err(error),
                Err(error) => {
                    // Another session sees for what this one waits.
                    let other = async { find_obstacle(&server.connect().await?).await };
                    let why = timeout(PATIENCE, other).await.ok().and_then(Result::ok).flatten();
                    server.cancel(&client);
                    Waiting::Obstacle(why.unwrap_or_else(|| error.to_string()))
                }
            };
            show(shown, waiting);
            if let Some(beat) = new.seen {
                seen.send_if_modified(|known| replace(known, beat) != beat);
            }
            sleep(ASK_EVERY).await;
        }
    }
}

impl Claim {
    /// Ends a run that has written nothing, so that another process leads at once.
    pub async fn give_back(mut self) {
        let _ = runs::note_death(&mut self.client, self.epoch).await;
    }

    /// Tells the process that has handed over that this one answers clients.
    pub async fn note_serving(&self) {
        if let Err(error) = self.client.query(&format!("SELECT pg_try_advisory_lock({SERVES})"), &[]).await {
            tracing::warn!(%error, "the former leader does not learn that this process answers clients");
        }
    }

    /// Extends the lease with each beat, until this process may not lead any more.
    pub async fn keep(&self, lease: &Lease, clock: &Clock, seen: &watch::Sender<SeenBeat>) -> StoreError {
        let mut fails = false;
        loop {
            let (next, start) = (Instant::now() + BEAT_EVERY, lease.begin());
            let (asked, clocks) = (Instant::now(), [clock.now(), clock.wall()]);
            match runs::beat(&self.client, self.epoch).await {
                Ok(Some((time, number))) => {
                    if let Some(why) = clocks.iter().find_map(|now| describe_clock(time, *now, asked.elapsed())) {
                        return StoreError::Unavailable(why);
                    }
                    lease.extend(start, self.length);
                    seen.send_replace(SeenBeat { epoch: self.epoch, number });
                }
                Ok(None) => {
                    return StoreError::Unavailable("another process leads, or a copy has replaced the server".into());
                }
                Err(error) if self.client.is_closed() => return unavailable(error),
                // Without a lease, this process says nothing.
                Err(error) => {
                    if !replace(&mut fails, true) {
                        tracing::warn!(%error, "PostgreSQL refuses a beat; without one, this process stops to answer");
                    }
                }
            }
            sleep_until(next).await;
        }
    }
}

/// Describes by how much a clock of this machine is wrong. The server has read its own within
/// `took` after `now`.
fn describe_clock(time: Timestamp, now: Timestamp, took: Duration) -> Option<String> {
    let (ahead, behind) = (now.since(time), time.since(now.plus(took)));
    let (off, side) = if ahead > behind { (ahead, "ahead of") } else { (behind, "behind") };
    (off > CLOCK_OFF).then(|| {
        let (off, most) = (off.as_millis(), CLOCK_OFF.as_millis());
        format!(
            "the clock of this machine is {off} ms {side} that of PostgreSQL, and a leader's differs by at most {most} ms; run a time \
             service on both machines"
        )
    })
}

fn show(shown: &watch::Sender<Waiting>, waiting: Waiting) {
    shown.send_if_modified(|known| {
        let is_news = *known != waiting;
        let stem = |waiting: &Waiting| waiting.to_string().replace(|digit: char| digit.is_ascii_digit(), "");
        match (&*known, &waiting) {
            (_, Waiting::Obstacle(why)) if stem(known) != stem(&waiting) => {
                tracing::warn!(why, "this process does not lead; it goes on trying")
            }
            (Waiting::Obstacle(_), Waiting::Leader(_)) => tracing::info!("{waiting}"),
            _ => {}
        }
        *known = waiting;
        is_news
    });
}

/// Begins a run if this process may lead. The inner error says why not.
async fn ask(
    client: &mut Client,
    new: &mut NewRun,
    watched: &mut Watched,
) -> Result<Result<Begun, Waiting>, StoreError> {
    let (namesake, holder) = take_locks(client, new).await?;
    watched.namesake = since_when(namesake.as_ref(), watched.namesake);
    watched.holder = since_when(holder.as_ref(), watched.holder);
    let has_lock = holder.is_none() && namesake.is_none();
    let (asked, wall) = (Instant::now(), Clock::system().wall());
    let run = format!(
        "SELECT {NOW} AS now, epoch, name, machine, beat, lease FROM (SELECT) one LEFT JOIN replica ON state = 'serving'"
    );
    let run = match client.query_one(&run, &[]).await {
        // The beats of the leader may land before this process sees them again.
        Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
            watched.beat = None;
            let why = find_obstacle(client).await?;
            return Ok(Err(Waiting::Obstacle(why.unwrap_or_else(|| describe(&error)))));
        }
        run => run.map_err(unavailable)?,
    };
    let time = crate::column::moment(get(&run, "now")?);
    let run = match get::<Option<i64>>(&run, "epoch")? {
        None => None,
        Some(epoch) => Some(LeadingRun {
            beat: SeenBeat { epoch: epoch.cast_unsigned(), number: get::<i64>(&run, "beat")?.cast_unsigned() },
            leader: Leader { name: get(&run, "name")?, machine: get(&run, "machine")? },
            lease: Duration::from_millis(u64::try_from(get::<i32>(&run, "lease")?).unwrap_or(u64::MAX)),
        }),
    };
    let is_over = watched.is_over(run.as_ref());
    // The session of a process that is gone leads on without beats.
    let stands_still = is_over && watched.is_led_by_namesake();
    if let (Some((_, since)), false) = (watched.namesake, stands_still) {
        return if since.elapsed() < NAMESAKE { Ok(Err(Waiting::Starting)) } else { Err(refuse_namesake(&new.name)) };
    }
    if has_lock && is_over {
        if let Some(why) = describe_clock(time, wall, asked.elapsed()) {
            return give_back(client, why).await;
        }
        return match runs::begin(client, new).await? {
            Ok(begun) => Ok(Ok(begun)),
            Err(lost) => give_back(client, describe_loss(&lost)).await,
        };
    }
    let patience = run.as_ref().map_or(BECOMES_LEADER, |run| run.lease + MARGIN);
    // A session that got the lock since then is that of another process that waits.
    if let (false, true, Some((pid, since))) = (has_lock, is_over, watched.holder)
        && since.elapsed() >= patience
    {
        // Another leader would wait for the standby or the lock, too.
        let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                   WHERE pid = $1 AND wait_event IS DISTINCT FROM 'SyncRep' AND wait_event_type IS DISTINCT FROM 'Lock'";
        if !rows(client.query(sql, &[&pid]).await)?.is_empty() {
            tracing::warn!("the process that leads stands still; its session is ended");
        } else if let Some(why) = find_obstacle(client).await? {
            return Ok(Err(Waiting::Obstacle(why)));
        }
    }
    let (Some(LeadingRun { leader, beat: SeenBeat { epoch, number }, .. }), None) = (run, namesake) else {
        return Ok(Err(Waiting::Starting));
    };
    // A beat of an earlier run that the server lacks is evidence, and stays known.
    if new.seen.is_some_and(|seen| seen.epoch != epoch) && runs::lacks(client, new.seen).await.map_err(unavailable)? {
        return Ok(Err(Waiting::Obstacle(describe_loss(&runs::describe_lack(&new.name)))));
    }
    // After a crash of the server, its last commit may be there alone, unacknowledged.
    let told = number.checked_sub(1).map(|number| SeenBeat { epoch, number });
    new.seen = new.seen.max(told);
    Ok(Err(match holder.and_then(|holder| holder.remedy) {
        Some(remedy) => Waiting::Obstacle(remedy),
        None => Waiting::Leader(leader),
    }))
}

fn refuse_namesake(name: &str) -> StoreError {
    StoreError::Conflict(format!(
        "another process is the replica `{name}`; give each data folder a name of its own with --replica"
    ))
}

/// The session that has a lock.
struct Holder {
    pid: i32,
    /// If this account may not end that session.
    remedy: Option<String>,
}

/// Takes the name, and with it the claim. Returns their holders, if those are other sessions. Notes
/// that the former run is dead: a copy of its data folder does not get the name while it lives.
async fn take_locks(client: &mut Client, new: &mut NewRun) -> Result<(Option<Holder>, Option<Holder>), StoreError> {
    if let Some(namesake) = take_lock(client, NAME, &[&new.name]).await? {
        let holder = find_holder(client, LOCK, &[]).await?;
        return Ok((Some(namesake), holder.map(|(holder, _)| holder)));
    }
    if let Some(former) = new.former {
        runs::note_death(client, former).await.map_err(unavailable)?;
        new.former = None;
    }
    Ok((None, take_lock(client, LOCK, &[]).await?))
}

/// Takes a lock if nobody has it. A session gets a lock as often as it asks, and has it until its
/// end. Returns the holder, if that is another session.
async fn take_lock(client: &Client, lock: &str, of: &[&(dyn ToSql + Sync)]) -> Result<Option<Holder>, StoreError> {
    if let Some((holder, is_own)) = find_holder(client, lock, of).await? {
        return Ok((!is_own).then_some(holder));
    }
    let sql = format!("SELECT pg_try_advisory_lock({lock}), pg_backend_pid()");
    let row = client.query_one(&sql, of).await.map_err(unavailable)?;
    // Another session was faster.
    Ok((!row.get::<_, bool>(0)).then_some(Holder { pid: 0, remedy: None }))
}

/// Returns true with the holder if that is this session.
async fn find_holder(
    client: &Client,
    lock: &str,
    of: &[&(dyn ToSql + Sync)],
) -> Result<Option<(Holder, bool)>, StoreError> {
    let columns = "pid, pid = pg_backend_pid() AS is_own, (
        SELECT format('the leader runs as `%s`, whose session `%s` cannot end if it stands still; a superuser can GRANT pg_signal_backend TO %2$s',
                      usename, current_user)
            FROM pg_stat_activity AS of WHERE of.pid = pg_locks.pid
             AND NOT pg_has_role(usesysid, 'MEMBER') AND NOT pg_has_role('pg_signal_backend', 'MEMBER')) AS remedy";
    let found = rows(client.query(&select_lock(columns, lock), of).await)?;
    let holder = |row| Ok((Holder { pid: get(row, "pid")?, remedy: get(row, "remedy")? }, get(row, "is_own")?));
    found.first().map(holder).transpose()
}

fn since_when(holder: Option<&Holder>, known: Option<(i32, Instant)>) -> Option<(i32, Instant)> {
    let Holder { pid, .. } = holder?;
    Some(known.filter(|(known, _)| known == pid).unwrap_or_else(|| (*pid, Instant::now())))
}

async fn give_back(client: &Client, why: String) -> Result<Result<Begun, Waiting>, StoreError> {
    client.query(&format!("SELECT pg_advisory_unlock({LOCK})"), &[]).await.map_err(unavailable)?;
    Ok(Err(Waiting::Obstacle(why)))
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim").field("epoch", &self.epoch).finish_non_exhaustive()
    }
}

impl Watched {
    fn is_led_by_namesake(&self) -> bool {
        matches!((self.holder, self.namesake), (Some((holder, _)), Some((namesake, _))) if holder == namesake)
    }

    /// Returns true if no run can act any more.
    fn is_over(&mut self, run: Option<&LeadingRun>) -> bool {
        let Some(run) = run else { return true };
        match self.beat {
            Some((known, since)) if known == run.beat => since.elapsed() >= run.lease + MARGIN,
            _ => {
                self.beat = Some((run.beat, Instant::now()));
                false
            }
        }
    }
}
