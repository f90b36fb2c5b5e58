//! `platform check`: tests step by step that an account works, and proves what readings on it
//! follow.
//!
//! The checks call the platform directly: there is no task, and no application is charged. An
//! operator must ask for a check that changes a phone. Only this module records that a reading
//! follows a command in both directions. Until then, a missing effect on this account is no
//! evidence. Start at [`check`] and [`prove`].

use crate::phones::contract::{
    ClearProxyArgs, Command, DeviceCapability, DeviceId, DeviceState, PowerAction, SessionMode, SetPowerArgs,
    SetProxyArgs,
};
use crate::phones::port::{
    DeviceReading, DeviceSnapshot, Direction, Exits, Finding, NoAddress, Pace, Platform, StillSize, Through,
    Unreachable,
};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use toolwarrant::tasks::{Leave, Sent, TaskId};
use toolwarrant::{Clock, Random, Timestamp};

const SOUGHT: u16 = 1_000;

/// Between two looks, and for a change whose pace the phone does not give.
const LOOK_EVERY: Duration = Duration::from_secs(3);
const PATIENCE: Duration = Duration::from_secs(60);

/// Does not change a phone. Reads `chosen`, or else the first phone that runs. Issues one session,
/// which expires by itself.
pub async fn check(platform: &dyn Platform, chosen: Option<&DeviceId>) -> Vec<Finding> {
    let mut findings = platform.account().await;
    if findings.iter().any(|finding| !finding.sound) {
        return findings;
    }
    findings.extend(platform.find_unserved());
    let phones = match platform.list_page(None, SOUGHT) {
        Err(error) => {
            findings.push(Finding::faulty("listing", error.to_string(), "see the log about this platform"));
            return findings;
        }
        Ok(phones) if phones.is_empty() => {
            findings.push(Finding::faulty(
                "listing",
                "there is no phone",
                "connect one, or use the account that has it",
            ));
            return findings;
        }
        Ok(phones) => phones,
    };
    let mut running: Vec<_> = phones.iter().filter(|phone| phone.state() == DeviceState::Running).collect();
    running.sort_by_key(|phone| Some(&phone.id) != chosen);
    let more = if phones.len() == usize::from(SOUGHT) { " or more" } else { "" };
    let runs = running.len();
    findings.push(Finding::sound("listing", format!("{}{more} phones, of which {runs} run", phones.len())));
    let Some((phone, others)) = running.split_first() else {
        findings.push(Finding::faulty("reading", "no phone is running", "start one, and check again"));
        return findings;
    };
    if chosen.is_some_and(|chosen| phone.id != *chosen) {
        // The write says why.
        return findings;
    }
    let start = read_start(platform, phone).await;
    let runs_commands = start.sound;
    findings.push(start);
    match read_address(platform, phone, runs_commands).await {
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
    match platform.boot_id(&phone.id).await {
        Ok(start) => Finding::sound(STEP, format!("{} shows {start}", phone.id)),
        Err(error) => Finding::faulty(STEP, format!("{}: {error}", phone.id), REMEDY),
    }
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
        return match screen.still(&phone.id).await {
            Ok(still) => {
                let StillSize { width, height } = still.size();
                Finding::sound(STEP, format!("a picture of {} was taken, of {width} by {height} pixels", phone.id))
            }
            Err(error) => Finding::faulty(STEP, error.to_string(), "see that the phone is awake, and try again"),
        };
    }
    match platform.session(&phone.id, SessionMode::Control).await {
        Ok(_) => Finding::sound(STEP, format!("one was issued for {}; its token is not shown", phone.id)),
        Err(error) => Finding::faulty(STEP, error.to_string(), "check that this account may issue tokens"),
    }
}

/// Restarts a phone and, with a proxy, sets and clears that. Records the directions in which
/// readings follow.
pub async fn prove(
    platform: &dyn Platform,
    (clock, random): (&Clock, &Random),
    id: &DeviceId,
    proxy: Option<&SetProxyArgs>,
) -> Vec<Finding> {
    let prover = Prover { platform, clock, random, id };
    let phone = match platform.read_anew(prover.id).await {
        Ok(Some(phone)) if phone.state() == DeviceState::Running => phone,
        Ok(Some(phone)) => {
            let found = format!("{} is {}", prover.id, phone.state().as_str());
            return vec![Finding::faulty("phone", found, "choose one that is running")];
        }
        Ok(None) => {
            return vec![Finding::faulty("phone", format!("there is no {}", prover.id), "`device list` shows all")];
        }
        Err(error) => return vec![Finding::faulty("phone", error.to_string(), "try again later")],
    };
    let seconds = |pace: Option<Pace>| pace.map_or(PATIENCE, |pace| Duration::from_secs(pace.deadline_seconds.into()));
    let mut findings = vec![prover.restart(seconds(phone.paces.power)).await];
    if let Some(proxy) = proxy
        && phone.offers(DeviceCapability::Proxy)
    {
        findings.extend(prover.proxy(proxy, seconds(phone.paces.proxy)).await);
    }
    findings
}

struct Prover<'a> {
    platform: &'a dyn Platform,
    clock: &'a Clock,
    random: &'a Random,
    id: &'a DeviceId,
}

impl Prover<'_> {
    async fn restart(&self, within: Duration) -> Finding {
        const STEP: &str = "restart";
        const REMEDY: &str =
            "without a proof, restarts end as timeout if no other start is seen, and are never refunded";
        let faulty = |found: String| Finding::faulty(STEP, found, REMEDY);
        let before = match self.platform.boot_id(self.id).await {
            Ok(before) => before.to_string(),
            Err(error) => return faulty(error.to_string()),
        };
        let args = SetPowerArgs { device_id: self.id.clone(), action: PowerAction::Restart, idempotency_key: None };
        let until = self.clock.now().plus(within);
        if let Err(why) = self.carry_out(&Command::SetPower(args), until).await {
            return faulty(why);
        }
        let other_start = || async {
            let now = self.platform.boot_id(self.id).await.ok()?.to_string();
            (now != before).then_some(now)
        };
        match self.wait(until, other_start).await {
            Some(now) => {
                let recorded = self.platform.record(Direction::Start, self.id).await;
                Self::describe_record(STEP, format!("before: {before}; after: {now}"), recorded)
            }
            None => {
                let found = format!("before: {before}; nothing else was seen within {} s", within.as_secs());
                self.withdraw(Direction::Start, faulty(found)).await
            }
        }
    }

    async fn proxy(&self, proxy: &SetProxyArgs, within: Duration) -> Vec<Finding> {
        const THERE: &str = "proxy, there";
        const BACK: &str = "proxy, back";
        const REMEDY: &str =
            "without a proof, proxy changes end as timeout if the proxy's address is not seen, and are never refunded";
        let faulty = |step, found: String| vec![Finding::faulty(step, found, REMEDY)];
        // This reading settles the phone's own address, without which no absence is evidence there.
        if let Err(error) = self.platform.exits(self.id, None).await {
            return faulty(THERE, error.to_string());
        }
        let (before, through) = match self.platform.exits(self.id, Some(proxy)).await {
            Ok(Exits { ordinary, through: Some(through), .. }) => (ordinary, through.address()),
            Ok(_) => {
                let found = "two requests through the proxy did not arrive from one address";
                return vec![Finding::faulty(
                    THERE,
                    found,
                    "see that it runs and has one exit, and that the phone has curl or nc",
                )];
            }
            Err(error) => return faulty(THERE, error.to_string()),
        };
        if before == through {
            return faulty(THERE, format!("requests come from {before} with the proxy and without it: choose another"));
        }
        let until = self.clock.now().plus(within);
        if let Err(why) = self.carry_out(&Command::SetProxy(proxy.clone()), until).await {
            return faulty(THERE, why);
        }
        let through_proxy = || async {
            let Exits { ordinary, through, .. } = self.platform.exits(self.id, Some(proxy)).await.ok()?;
            (through.map(Through::address) == Some(ordinary)).then(|| ordinary.to_string())
        };
        let followed = self.wait(until, through_proxy).await;
        // In every case, the phone is left without the proxy.
        let clear = ClearProxyArgs { device_id: self.id.clone(), idempotency_key: None };
        let until = self.clock.now().plus(within);
        let cleared = self.carry_out(&Command::ClearProxy(clear), until).await;
        let Some(there) = followed else {
            let found = format!("before: {before}; the proxy's: {through}; no request came from there");
            let found = Finding::faulty(THERE, found, REMEDY);
            return vec![self.withdraw(Direction::Exit, found).await];
        };
        let there = Finding::sound(THERE, format!("before: {before}; after: {there}, the proxy's"));
        if let Err(why) = cleared {
            return vec![there, Finding::faulty(BACK, why, "the phone may still have the proxy: clear it")];
        }
        let as_before = || async {
            let Exits { ordinary, .. } = self.platform.exits(self.id, None).await.ok()?;
            (ordinary == before).then(|| ordinary.to_string())
        };
        let back = match self.wait(until, as_before).await {
            Some(back) => {
                // No client has a proxy there meanwhile, whatever a former user left behind.
                let recorded = match self.platform.renew_address(self.id).await {
                    Ok(()) => self.platform.record(Direction::Exit, self.id).await,
                    Err(error) => Err(error),
                };
                Self::describe_record(BACK, format!("after clear_proxy: {back}, as before"), recorded)
            }
            None => Finding::faulty(BACK, format!("no request came from {before} again"), REMEDY),
        };
        vec![there, back]
    }

    /// Pauses first, because platforms refuse calls on a phone that come right after each other.
    async fn carry_out(&self, command: &Command, until: Timestamp) -> Result<(), String> {
        self.clock.sleep_until(self.clock.now().plus(LOOK_EVERY)).await;
        let random = self.random.bytes().map_err(|error| error.to_string())?;
        let request = TaskId::new(self.clock.now(), random);
        let leave = Leave::until(self.clock.now().plus(LOOK_EVERY), self.clock);
        let mut sent = self.platform.send(request, command, leave).await;
        loop {
            let operation = match sent {
                Sent::Ok => return Ok(()),
                Sent::Pending(operation) if self.clock.now() < until => operation,
                other => return Err(other.to_string()),
            };
            self.clock.sleep_until(self.clock.now().plus(LOOK_EVERY)).await;
            let known = self.platform.look_up(self.id, request, Some(&operation)).await;
            sent = known.ok().flatten().unwrap_or(Sent::Pending(operation));
        }
    }

    async fn wait<F>(&self, until: Timestamp, look: impl Fn() -> F) -> Option<String>
    where
        F: Future<Output = Option<String>>,
    {
        loop {
            match look().await {
                None if self.clock.now() < until => self.clock.sleep_until(self.clock.now().plus(LOOK_EVERY)).await,
                seen => return seen,
            }
        }
    }

    async fn withdraw(&self, direction: Direction, finding: Finding) -> Finding {
        match self.platform.withdraw(direction, self.id).await {
            Ok(()) => finding,
            Err(Unreachable(why)) => {
                let found = format!("{}; an earlier proof could not be withdrawn: {}", finding.found, why.as_str());
                Finding::faulty(finding.step, found, "check that the data folder can be written, and try again")
            }
        }
    }

    fn describe_record(step: &'static str, found: String, recorded: Result<(), Unreachable>) -> Finding {
        match recorded {
            Ok(()) => Finding::sound(step, found),
            Err(Unreachable(why)) => {
                let found = format!("{found}; it could not be recorded: {}", why.as_str());
                Finding::faulty(step, found, "check that the data folder can be written, and try again")
            }
        }
    }
}
