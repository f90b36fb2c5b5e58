//! `platform check`: tests step by step that an account works, and proves what readings on it
//! follow.
//!
//! An operator must ask for a check that changes a phone. Its writes are tasks like those of
//! clients, so no other write runs on the phone meanwhile. Only this module records that a reading
//! follows a command in both directions. Until then, a missing effect on this account is no
//! evidence. Start at [`check`] and [`prove`].

use crate::phones::contract::{
    ClearProxyArgs, Command, DeviceCapability, DeviceId, DeviceState, PowerAction, SessionMode, SetPowerArgs,
    SetProxyArgs,
};
use crate::phones::devices::policy_of;
use crate::phones::port::{
    DeviceReading, DeviceSnapshot, Direction, Exits, Finding, NoAddress, Platform, StillSize, Through, Unreachable,
};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use toolwarrant::Clock;
use toolwarrant::tasks::{OwnTasks, OwnWrite, TaskStatus, TaskView, UpstreamReport};

const SOUGHT: u16 = 1_000;

/// Between two looks at the address of a phone whose proxy was cleared.
const LOOK_EVERY: Duration = Duration::from_secs(3);

/// Operators see it as the application of the tasks.
const APPLICATION: &str = "platform check";

/// Does not change a phone. Reads `chosen`, or else the first phone that runs. Issues one session,
/// which expires by itself. Returns also true if the account and this phone are sound, whatever
/// other phones lack.
pub async fn check(platform: &dyn Platform, chosen: Option<&DeviceId>) -> (Vec<Finding>, bool) {
    let is_sound = |findings: &[Finding]| findings.iter().all(|finding| finding.sound);
    let mut findings = platform.account().await;
    if !is_sound(&findings) {
        return (findings, false);
    }
    findings.extend(platform.find_unserved());
    let of_phone = read_phones(platform, chosen).await;
    let is_sound = is_sound(&of_phone);
    findings.extend(of_phone);
    (findings, is_sound)
}

async fn read_phones(platform: &dyn Platform, chosen: Option<&DeviceId>) -> Vec<Finding> {
    const NO_PHONE: &str = "connect one, or use the account that has it";
    let phones = match platform.list_page(None, SOUGHT) {
        Err(error) => {
            return vec![Finding::faulty("listing", error.to_string(), "see the log about this platform")];
        }
        Ok(phones) if phones.is_empty() => return vec![Finding::faulty("listing", "there is no phone", NO_PHONE)],
        Ok(phones) => phones,
    };
    let mut running: Vec<_> = phones.iter().filter(|phone| phone.state() == DeviceState::Running).collect();
    running.sort_by_key(|phone| Some(&phone.id) != chosen);
    let more = if phones.len() == usize::from(SOUGHT) { " or more" } else { "" };
    let listing = format!("{}{more} phones, of which {} run", phones.len(), running.len());
    let listing = Finding::sound("listing", listing);
    let Some((phone, others)) = running.split_first() else {
        return vec![listing, Finding::faulty("reading", "no phone is running", "start one, and check again")];
    };
    if chosen.is_some_and(|chosen| phone.id != *chosen) {
        // The write says why.
        return vec![listing];
    }
    let start = read_start(platform, phone).await;
    let address = read_address(platform, phone, start.sound).await;
    let mut findings = vec![listing, start];
    match address {
        Ok(Exits { ordinary: address, other, .. }) => {
            let other = other.map(|other| format!(", and in the other family from {}", other.ordinary));
            let found = format!("a request of {} came from {address}{}", phone.id, other.unwrap_or_default());
            findings.push(Finding::sound(ADDRESS, found));
            findings.push(compare(platform, (phone, address), others).await);
        }
        Err(finding) => findings.push(finding),
    }
    findings.push(session(platform, phone).await);
    findings
}

async fn read_start(platform: &dyn Platform, phone: &DeviceReading) -> Finding {
    const STEP: &str = "start of a phone";
    const REMEDY: &str = "restarts cannot be verified; check that commands are allowed on this account";
    let start = platform.boot_id(&phone.id).await.map(|start| format!("{} shows {start}", phone.id));
    Finding::of(STEP, start.map_err(|error| format!("{}: {error}", phone.id)), REMEDY)
}

const ADDRESS: &str = "address of a phone";

async fn read_address(platform: &dyn Platform, phone: &DeviceReading, runs_commands: bool) -> Result<Exits, Finding> {
    const NO_COMMAND: &str = "proxies cannot be verified; check that commands are allowed on this account";
    const NO_ECHO: &str =
        "proxies cannot be verified; see that phones reach this server at --echo-url, through every firewall";
    if let Err(NoAddress::NoListener) = platform.judge_addresses(&[]) {
        let found = "this server has no callback listener, so proxies end as success_unverified; restarts are verified";
        return Err(Finding::sound(ADDRESS, found));
    }
    if !phone.offers(DeviceCapability::Proxy) {
        return Err(Finding::sound(ADDRESS, format!("{} does not offer proxies", phone.id)));
    }
    let remedy = if runs_commands { NO_ECHO } else { NO_COMMAND };
    let read = platform.exits(&phone.id, None).await;
    read.map_err(|error| Finding::faulty(ADDRESS, format!("{}: {error}", phone.id), remedy))
}

/// Looks for a forwarder in front of the callback listener, with which each phone seems to use each
/// proxy.
async fn compare(
    platform: &dyn Platform,
    (phone, address): (&DeviceReading, IpAddr),
    others: &[&Arc<DeviceSnapshot>],
) -> Finding {
    const STEP: &str = "addresses of phones";
    const FORWARDED: &str = "let phones reach the callback listener itself: a port forwarder, an ingress, a load balancer \
                             or a tunnel in front of it shows its own address, and no proxy can be measured there";
    const SHARED: &str = "see that no port forwarder, ingress, load balancer or tunnel is in front of the callback \
                          listener; if your phones do share an address, say `shared-address = true` for this platform";
    let (mut found, mut seen) = (format!("{} from {address}", phone.id), vec![address]);
    if let Some(other) = others.iter().find(|other| other.offers(DeviceCapability::Proxy))
        && let Ok(Exits { ordinary, .. }) = platform.exits(&other.id, None).await
    {
        found += &format!(", {} from {ordinary}", other.id);
        seen.push(ordinary);
    }
    match platform.judge_addresses(&seen) {
        Ok(()) => Finding::sound(STEP, found),
        Err(why @ NoAddress::Shared) => Finding::faulty(STEP, format!("{found}: {why}"), SHARED),
        Err(why) => Finding::faulty(STEP, format!("{found}: {why}"), FORWARDED),
    }
}

async fn session(platform: &dyn Platform, phone: &DeviceReading) -> Finding {
    const STEP: &str = "screen session";
    let screen = platform.screen(&phone.id);
    let has_modes = screen.is_some() || phone.session_modes.contains(&SessionMode::Control);
    if !phone.offers(DeviceCapability::Session) || !has_modes {
        let why = phone.offers.session.refusal().map_or_else(String::new, |why| format!(": {why}"));
        return Finding::sound(STEP, format!("{} does not offer one{why}", phone.id));
    }
    if let Some(screen) = screen {
        let found = screen.still(&phone.id).await.map(|still| {
            let StillSize { width, height } = still.size();
            format!("a picture of {} was taken, of {width} by {height} pixels", phone.id)
        });
        return Finding::of(STEP, found, "see that the phone is awake, and try again");
    }
    let session = platform.session(&phone.id, SessionMode::Control).await;
    let found = session.map(|_| format!("one was issued for {}; its token is not shown", phone.id));
    Finding::of(STEP, found, "check that this account may issue tokens")
}

/// Restarts a phone and, with a proxy, sets and clears that. Records the directions in which
/// readings follow.
pub async fn prove(
    platform: &dyn Platform,
    (tasks, clock): (&OwnTasks, &Clock),
    id: &DeviceId,
    proxy: Option<&SetProxyArgs>,
) -> Vec<Finding> {
    let phone = match platform.read_anew(id).await {
        Ok(Some(phone)) if phone.state() == DeviceState::Running => phone,
        Ok(Some(phone)) => {
            let found = format!("not done: {id} is {}", phone.state().as_str());
            return vec![Finding::faulty("phone", found, "choose one that is running")];
        }
        Ok(None) => {
            return vec![Finding::faulty("phone", format!("not done: there is no {id}"), "`device list` shows all")];
        }
        Err(error) => return vec![Finding::faulty("phone", format!("not done: {error}"), "try again later")],
    };
    let prover = Prover { platform, tasks, clock, id, phone: &phone };
    let mut findings = vec![prover.restart().await];
    if let Some(proxy) = proxy
        && phone.offers(DeviceCapability::Proxy)
    {
        findings.extend(prover.proxy(proxy).await);
    }
    findings
}

struct Prover<'a> {
    platform: &'a dyn Platform,
    tasks: &'a OwnTasks,
    clock: &'a Clock,
    id: &'a DeviceId,
    phone: &'a Arc<DeviceSnapshot>,
}

impl Prover<'_> {
    async fn restart(&self) -> Finding {
        const STEP: &str = "restart";
        const REMEDY: &str =
            "without a proof, restarts end as timeout if no other start is seen, and are never refunded";
        let command = SetPowerArgs { device_id: self.id.clone(), action: PowerAction::Restart, idempotency_key: None };
        let done = async {
            let before = self.platform.boot_id(self.id).await?;
            let task = self.carry_out(&Command::SetPower(command)).await?;
            if report(&task) == Some(UpstreamReport::NotSent) {
                return Err(Unreachable(describe(&task).into()));
            }
            let after = self.platform.boot_id(self.id).await;
            let follows = after.is_ok_and(|after| after.on == before.on && after.value != before.value);
            Ok((task, follows))
        };
        match done.await {
            Ok((task, follows)) if follows && task.status == TaskStatus::Success => {
                let recorded = self.platform.record(Direction::Start, self.id).await;
                add_failure(Finding::sound(STEP, describe(&task)), recorded)
            }
            Ok((task, _)) => {
                self.withdraw(Direction::Start, &task, Finding::faulty(STEP, describe(&task), REMEDY)).await
            }
            Err(Unreachable(why)) => Finding::faulty(STEP, format!("not done: {}", why.as_str()), REMEDY),
        }
    }

    async fn proxy(&self, proxy: &SetProxyArgs) -> Vec<Finding> {
        const THERE: &str = "proxy, there";
        const BACK: &str = "proxy, back";
        const REMEDY: &str =
            "without a proof, proxy changes end as timeout if the proxy's address is not seen, and are never refunded";
        const NO_EXIT: &str = "see that the proxy runs and has one exit, and that the phone has curl or nc";
        let not_done = |why: &str, remedy| vec![Finding::faulty(THERE, format!("not done: {why}"), remedy)];
        let begun = async {
            // This reading settles the phone's own address, without which no absence is evidence
            // there.
            self.platform.exits(self.id, None).await?;
            self.platform.exits(self.id, Some(proxy)).await
        };
        let before = match begun.await {
            Ok(Exits { ordinary, through: Some(through), .. }) if through.address() != ordinary => ordinary,
            Ok(Exits { ordinary, through: Some(_), .. }) => {
                let why = format!("requests come from {ordinary} with the proxy and without it: choose another");
                return not_done(&why, REMEDY);
            }
            Ok(_) => return not_done("two requests through the proxy did not arrive from one address", NO_EXIT),
            Err(Unreachable(why)) => return not_done(why.as_str(), REMEDY),
        };
        let set = match self.carry_out(&Command::SetProxy(proxy.clone())).await {
            Ok(task) if report(&task) != Some(UpstreamReport::NotSent) => task,
            Ok(task) => return not_done(&describe(&task), REMEDY),
            Err(Unreachable(why)) => return not_done(why.as_str(), REMEDY),
        };
        let there = self.platform.exits(self.id, Some(proxy)).await;
        let follows = there.is_ok_and(|there| there.through.map(Through::address) == Some(there.ordinary));
        // In every case, the phone is left without the proxy.
        let clear = ClearProxyArgs { device_id: self.id.clone(), idempotency_key: None };
        let cleared = self.carry_out(&Command::ClearProxy(clear)).await;
        if !follows || set.status != TaskStatus::Success {
            let found = Finding::faulty(THERE, describe(&set), REMEDY);
            return vec![self.withdraw(Direction::Exit, &set, found).await];
        }
        let there = Finding::sound(THERE, describe(&set));
        let cleared = match cleared {
            Ok(task) if matches!(task.status, TaskStatus::Success | TaskStatus::SuccessUnverified) => task,
            Ok(task) => return vec![there, Finding::faulty(BACK, describe(&task), STILL_THERE)],
            Err(Unreachable(why)) => return vec![there, Finding::faulty(BACK, why.as_str(), STILL_THERE)],
        };
        let found = format!("{} ended as {}", cleared.id, cleared.status.as_str());
        let back = if self.is_back(before).await {
            // No client has a proxy there meanwhile, whatever a former user left behind.
            let recorded = match self.platform.renew_address(self.id).await {
                Ok(()) => self.platform.record(Direction::Exit, self.id).await,
                Err(error) => Err(error),
            };
            add_failure(Finding::sound(BACK, format!("{found}; after clear_proxy: {before}, as before")), recorded)
        } else {
            Finding::faulty(BACK, format!("{found}; no request came from {before} again"), REMEDY)
        };
        vec![there, back]
    }

    async fn carry_out(&self, command: &Command) -> Result<TaskView, Unreachable> {
        let policy = policy_of(self.phone, command).ok_or_else(|| Unreachable("it is no write".into()))?;
        let write = OwnWrite { application: APPLICATION, command, target: self.id.as_str(), policy };
        self.tasks.carry_out(write).await.map_err(|why| Unreachable(why.into()))
    }

    async fn is_back(&self, before: IpAddr) -> bool {
        let settles = self.phone.paces.proxy.map_or(0, |pace| pace.deadline_seconds);
        let until = self.clock.now().plus(Duration::from_secs(settles.into()));
        loop {
            let exits = self.platform.exits(self.id, None).await;
            let is_back = exits.is_ok_and(|exits| exits.ordinary == before);
            if is_back || self.clock.now() >= until {
                return is_back;
            }
            self.clock.sleep_until(self.clock.now().plus(LOOK_EVERY)).await;
        }
    }

    /// Withdraws a proof if the platform reported a success that no reading has shown.
    async fn withdraw(&self, direction: Direction, task: &TaskView, found: Finding) -> Finding {
        match report(task) {
            Some(UpstreamReport::Success) => add_failure(found, self.platform.withdraw(direction, self.id).await),
            _ => found,
        }
    }
}

const STILL_THERE: &str = "the phone may still have the proxy: clear it";

fn report(task: &TaskView) -> Option<UpstreamReport> {
    task.evidence.as_ref().map(|evidence| evidence.reported)
}

fn describe(task: &TaskView) -> String {
    let observed = task.evidence.as_ref().map_or("", |evidence| evidence.observed.as_str());
    format!("{} ended as {}; {observed}", task.id, task.status.as_str())
}

/// Adds to a step that its proof could not be changed.
fn add_failure(finding: Finding, changed: Result<(), Unreachable>) -> Finding {
    let Err(Unreachable(why)) = changed else { return finding };
    let found = format!("{}; what this proves could not be stored: {}", finding.found, why.as_str());
    Finding::faulty(finding.step, found, "check that the data folder can be written, and try again")
}
