//! The spine: the order in which a request and its calls are checked, and the proof that each step
//! returns.
//!
//! ```text
//! once a request   authenticate  -> Caller    unauthenticated; a signed request: verify
//!                  charge_budget -> Admitted  rate_limited
//! once a call      renew   -> Caller          unauthenticated, if the key or secret has ended
//!                  find    -> ToolDef         unknown_tool
//!                  permit  -> Grant           forbidden, before the arguments are read
//!                  parse   -> typed arguments invalid_argument, with all mistakes at once
//!                  repeat  -> hit | fresh     a hit answers here: no target is touched
//!                  require -> Target          not_found if it is not granted or does not exist,
//!                                             upstream_unavailable, not_supported
//!                  invoke  -> the handler     the errors of the tool, after another check of the
//!                                             caller unless it makes a task; internal if its
//!                                             result has a target that is not granted
//!                  accept                     tasks only, after another check of the caller:
//!                                             overloaded, target_busy
//!                  still                      other tools: unauthenticated, forbidden, not_found
//!                                             if the right has ended; overloaded if this process
//!                                             cannot reach its store, as in each check of a caller
//!                  conclude                   tools that act or issue, instead: forbidden if the
//!                                             right has ended; outcome_unknown for internal of an
//!                                             act that is not idempotent
//!                  audit                      a line for every call, also for refused ones
//! ```
//!
//! Only the step before can make a proof, so no call reaches a handler past a check. Transports
//! call [`Pipeline`]; the generated dispatch calls [`run`].

mod checks;
mod records;
mod refusals;
mod rejections;
mod signed;
mod stand_in;
mod standing;
mod visits;

pub use refusals::no_route;
pub use signed::SignedRequest;
pub use stand_in::ToolCaller;
pub use visits::{Visit, keep_passes};

use super::access::{Access, AccessError, Caller, Credentials};
use super::args::Arguments;
use super::catalogue::{Catalogue, PermissionSet, ToolDef};
use super::counts::Requests;
use super::failure::Failure;
use super::handler::{Around, Call, Flag, Proof, Resource, Target, ToolCall, Unresolved};
use super::limit::{HeadCharge, RetryAfter};
use super::nonces::Nonces;
use super::reply::{Answer, AnsweredTask, Reply, TargetIds, ToolLists};
use super::revision::Revision;
use super::tasks::{self, CallFacts, Identity, Plan, Tasks, WriteAnswer, WriteRefusal, WriteRequest, WriteResult};
use bytes::Bytes;
use checks::{find, parse, permit};
use records::{AuditGuard, CallCounter, line, outcome};
use refusals::{internal_failure, not_accepted, not_found, not_supported, overload, rate_limited};
use serde::Serialize;
use serde_json::Value;
use std::collections::HashMap;
use std::future::Future;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use toolwarrant_audit::{Audit, AuditHandle};
use toolwarrant_base::clock::{Clock, Timestamp};
use toolwarrant_base::text::{Remark, Secret};
use toolwarrant_base::wording::Words;
use toolwarrant_base::{ignore_poison, survive};

/// The handlers of a contract, behind the generated dispatch.
pub trait Handlers: Send + Sync + 'static {
    /// The contract of these handlers.
    const CATALOGUE: &'static Catalogue;

    /// Finds the description of the called tool and passes it to [`run`].
    fn dispatch<'a>(
        &'a self,
        call: &'a Call<'a>,
        raw: &'a str,
    ) -> impl Future<Output = Result<Answer, Failure>> + Send + 'a;
}

/// The handlers of a contract whose tools make no tasks, so that it needs no executor.
#[diagnostic::on_unimplemented(
    message = "the tools of this contract make tasks, and nothing carries them out",
    label = "this contract has tools with `effect = \"task\"`",
    note = "write `impl Executor for` a type, and make the service with `Service::with_executor(handlers, executor)`"
)]
pub trait MakesNoTasks: Handlers {}

/// One tool of a contract, as [`run`] takes it.
pub trait ToolSteps<H>: Send + Sync + 'static {
    type Args: Arguments;
    /// `()` for a tool without a target.
    type Proof: Proof;

    fn target(_: &Self::Args) -> Option<&str> {
        None
    }

    fn task<'a>(_: &'static ToolDef, _: &'a Self::Args) -> Option<Plan<'a>> {
        None
    }

    fn require<'a>(
        handlers: &'a H,
        call: &'a Call<'a>,
        args: &'a Self::Args,
    ) -> impl Future<Output = Result<Self::Proof, Failure>> + Send + 'a;

    fn invoke<'a>(
        handlers: &'a H,
        call: &'a Call<'a>,
        proof: &'a Self::Proof,
        args: Self::Args,
    ) -> impl Future<Output = Result<Outcome, Failure>> + Send + 'a;
}

#[derive(Debug)]
pub enum Outcome {
    Answer(Answer),
    /// JSON, to be accepted as a task.
    Command(Secret<String>),
}

impl Outcome {
    /// Refuses an answer with a target that the caller may not see.
    pub fn answer<T: Serialize + TargetIds>(call: &Call<'_>, reply: Reply<T>) -> Result<Self, Failure> {
        let answer = reply.answer(call).map_err(|error| internal_failure(call, &error.to_string()))?;
        Ok(Self::Answer(answer))
    }

    /// Refuses a command of another tool.
    pub fn command(call: &Call<'_>, command: &impl tasks::WriteCommand) -> Result<Self, Failure> {
        match command.arguments() {
            Ok(arguments) if command.tool() == call.tool.name => Ok(Self::Command(arguments)),
            _ => Err(no_route(call)),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Charge(Result<(), RetryAfter>);

/// Proof that the calls of a request fit the budget of its application.
#[derive(Debug)]
pub struct Admitted<'a>(&'a Caller);

pub struct Pipeline<H> {
    handlers: H,
    access: Arc<Access>,
    audit: Audit,
    tasks: Arc<dyn Tasks>,
    nonces: Nonces,
    clock: Clock,
    counts: Arc<Requests>,
    lists: Mutex<HashMap<Vec<&'static str>, ToolLists>>,
    records_addresses: bool,
}

impl<H: Handlers> Pipeline<H> {
    pub fn new(
        handlers: H,
        access: Arc<Access>,
        audit: Audit,
        tasks: Arc<dyn Tasks>,
        nonces: Nonces,
        clock: Clock,
    ) -> Self {
        let counts = Arc::new(Requests::new(H::CATALOGUE));
        let (lists, records_addresses) = (Mutex::default(), true);
        Self { handlers, access, audit, tasks, nonces, clock, counts, lists, records_addresses }
    }

    #[must_use]
    pub fn without_addresses(self) -> Self {
        Self { records_addresses: false, ..self }
    }

    pub fn counts(&self) -> Arc<Requests> {
        Arc::clone(&self.counts)
    }

    pub fn audit_handle(&self) -> AuditHandle {
        self.audit.handle()
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub fn unsound(&self) {
        self.counts.unsound.add(1);
        tracing::debug!("refused a request: its body is not a message");
    }

    /// Authenticates a request. Every cause of `unauthenticated` has the same message.
    pub fn authenticate(&self, credentials: Option<Credentials<'_>>, from: Option<IpAddr>) -> Result<Caller, Failure> {
        let from = self.address(from);
        let shown = credentials.ok_or(AccessError::Unauthenticated);
        let caller = shown.and_then(|shown| self.access.authenticate(shown, from, &self.clock));
        caller.map_err(|error| self.refuse_caller(error))
    }

    fn address(&self, from: Option<IpAddr>) -> Option<IpAddr> {
        from.filter(|_| self.records_addresses)
    }

    pub fn charge_head(&self, caller: &Caller) -> Option<HeadCharge> {
        caller.application.window.admit(None, self.now(), 1).ok()
    }

    /// Charges `requests`, all or none. One of them may already be charged as `head`.
    pub fn charge_budget<'c>(
        &self,
        caller: &'c Caller,
        head: Option<HeadCharge>,
        requests: u32,
    ) -> Result<Admitted<'c>, Failure> {
        let charge = match head {
            Some(_) if requests == 1 => Ok(()),
            head => caller.application.window.admit(head, self.now(), requests).map(drop),
        };
        self.admit(caller, Charge(charge), requests)
    }

    pub fn admit<'c>(
        &self,
        caller: &'c Caller,
        Charge(charge): Charge,
        requests: u32,
    ) -> Result<Admitted<'c>, Failure> {
        charge.map(|()| Admitted(caller)).map_err(|RetryAfter { seconds }| {
            self.counts.rate_limited.add(requests.into());
            let application = &*caller.application.name;
            tracing::debug!(application, requests, "refused a request: the budget is spent");
            let failure = rate_limited(H::CATALOGUE, requests, caller.application.window.limit());
            failure.with("retry_after_seconds", seconds)
        })
    }

    pub fn list(&self, Admitted(caller): &Admitted<'_>, revision: Revision, follows: bool) -> Result<Bytes, Failure> {
        let application = &self.renew(caller)?.application;
        let lists = application.tools.get_or_init(|| self.lists_for(application.permissions));
        Ok(lists.of_revision(revision, follows).clone())
    }

    /// Returns a JSON string. A host that `follows` tasks gets one paragraph more.
    pub fn instructions(&self, Admitted(caller): &Admitted<'_>, follows: bool) -> Result<Bytes, Failure> {
        let application = &self.renew(caller)?.application;
        let told = || -> Bytes {
            let followed = follows.then_some(&H::CATALOGUE.phrases.followed);
            let paragraphs = H::CATALOGUE.service.instructions.iter().chain(followed);
            let told: Vec<_> = paragraphs.map(|paragraph| paragraph.for_reader(application.permissions)).collect();
            let told: Vec<_> = told.into_iter().filter(|paragraph| !paragraph.as_str().is_empty()).collect();
            Value::from(Words::list(&told, "\n").as_str()).to_string().into()
        };
        Ok(if follows { told() } else { application.instructions.get_or_init(told).clone() })
    }

    /// Lets applications that see the same tools share their lists.
    fn lists_for(&self, permissions: PermissionSet) -> ToolLists {
        let visible = |tool: &&ToolDef| permissions.covers(tool.right);
        let tools: Vec<_> = H::CATALOGUE.tools.iter().filter(visible).collect();
        let names = tools.iter().map(|tool| tool.name).collect();
        let mut lists = ignore_poison(self.lists.lock());
        lists.entry(names).or_insert_with(|| ToolLists::of(&tools)).clone()
    }

    /// Calls a tool. A panic becomes the failure `internal`. Only `unknown_tool` and
    /// `unauthenticated` are errors of the protocol.
    pub async fn call(&self, Admitted(caller): &Admitted<'_>, asked: ToolCall<'_>) -> Result<Answer, Failure> {
        let renewed = self.renew(caller);
        let (caller, ended) = match &renewed {
            Ok(renewed) => (renewed.as_ref(), None),
            Err(failure) => (*caller, Some(failure.clone())),
        };
        let (tool, since) = (find(H::CATALOGUE, caller, asked.tool)?, self.clock.uptime());
        let arrived = self.clock.now_and_latest(since);
        let mut counted = CallCounter { counts: &self.counts, clock: &self.clock, tool, since, outcome: "cancelled" };
        let permissions = caller.application.permissions;
        let result = self
            .call_and_audit(caller, ended, tool, asked, arrived)
            .await
            .map_err(|failure| failure.answered_at(arrived.0).for_reader(permissions));
        counted.outcome = outcome(result.as_ref().err());
        result
    }

    async fn call_and_audit(
        &self,
        caller: &Caller,
        ended: Option<Failure>,
        tool: &'static ToolDef,
        asked: ToolCall<'_>,
        arrived: (Timestamp, Timestamp),
    ) -> Result<Answer, Failure> {
        let ToolCall { tool: _, arguments: raw, request_id, hold: _, frame: _ } = asked;
        let Some(slot) = self.audit.reserve() else { return Err(overload(H::CATALOGUE, "the audit cannot keep up")) };
        let permitted = ended.map_or_else(|| permit(H::CATALOGUE, caller, tool), Err);
        let permitted = permitted.and_then(|grant| match self.audit.is_stale(arrived.0) {
            // A call that may change something must not stay unrecorded. Reads go on while there
            // are slots.
            true if !tool.hints.read_only => Err(overload(H::CATALOGUE, "the audit cannot be written")),
            _ => Ok(grant),
        });
        let grant = match permitted {
            Ok(grant) => grant,
            Err(failure) => {
                slot.refuse(&line(caller, tool, request_id, arrived.1, Some(&failure)));
                return Err(failure);
            }
        };
        let around =
            Around { catalogue: H::CATALOGUE, tasks: &*self.tasks, access: &self.access, clock: &self.clock, arrived };
        let call = Call::new(grant, caller, asked, around);
        let mut witness = AuditGuard { slot: Some(slot), call: &call, outcome: "cancelled" };
        let result = survive(self.handlers.dispatch(&call, raw.get())).await;
        let mut result = result.unwrap_or_else(|| Err(internal_failure(&call, "a handler panicked")));
        match result.as_ref().err().and_then(|failure| Some((failure.def(), failure.cause()?))) {
            Some((def, why)) if def.code == H::CATALOGUE.roles.upstream_unavailable.code => {
                self.counts.unavailable.note(tool.name, why, arrived.0);
            }
            Some((_, cause)) => result = Err(internal_failure(&call, cause)),
            None => {}
        }
        result = match &result {
            // In a box, so that other calls do not carry it along.
            _ if call.has_acted() => Box::pin(conclude(&call, result)).await,
            Ok(_) if tool.task.is_none() => call.still().and(result),
            // A caller that made a task gets its id, even without its rights. But without a lease,
            // the store may have lost the task. Then no answer is true.
            Ok(_) => {
                call.wait_for_lease().await;
                result
            }
            Err(_) => call.check_lease().and(result),
        };
        witness.outcome = outcome(result.as_ref().err());
        result
    }
}

/// Decides the answer to an act, or to a call that issues something, whose handler has begun. It
/// may have been done. So no answer asks for a repeat, except that of an idempotent act, and that
/// of a tool which issues something new at each call.
async fn conclude(call: &Call<'_>, result: Result<Answer, Failure>) -> Result<Answer, Failure> {
    call.wait_for_lease().await;
    match result {
        Ok(answer) => {
            while let Err(failure) = call.still() {
                if *failure.def() != *call.catalogue.roles.overloaded {
                    return Err(refusals::withheld(call));
                }
                call.wait_for_lease().await;
            }
            Ok(answer.of_once(call.tool.acts_once()))
        }
        Err(failure) if *failure.def() == *call.catalogue.roles.internal => {
            Err(refusals::unknown_outcome(call, failure))
        }
        Err(failure) => Err(failure),
    }
}

pub async fn run<H, T: ToolSteps<H>>(handlers: &H, call: &Call<'_>, raw: &str) -> Result<Answer, Failure> {
    let args = parse::<T::Args>(call, raw)?;
    if let Some(target) = T::target(&args) {
        call.note_target(target);
    }
    let Some(plan) = T::task(call.tool, &args) else {
        let proof = require_granted::<H, T>(handlers, call, &args).await?;
        call.still()?;
        call.begin();
        return match T::invoke(handlers, call, &proof, args).await? {
            Outcome::Answer(answer) => Ok(answer),
            Outcome::Command(_) => Err(no_route(call)),
        };
    };
    let Plan { key, policy, arguments } = plan;
    let nonce = call.caller.nonce.as_deref();
    let tasks = &call.around.tasks;
    let identity = Identity {
        application: call.caller.application.id.to_string(),
        key: key.map(str::to_owned),
        fingerprint: tasks.fingerprint(call.tool.name, &arguments),
        resource: call.tool.target.as_ref().map_or("", |target| target.resource).to_owned(),
        target: T::target(&args).unwrap_or_default().into(),
    };
    let (tool, policy, now) = (call.tool.name, *policy, call.now);
    let mut write = WriteRequest { identity, tool, policy, call: CallFacts::default(), nonce, now };
    if let Some(task) = tasks.repeat(&write).await.map_err(|error| not_accepted(call, error))? {
        call.check_lease()?;
        call.note_task(&task.task_id);
        return task_answer(call, task);
    }
    let proof = require_granted::<H, T>(handlers, call, &args).await?;
    write.policy = proof.policy(call.tool, write.policy);
    write.call = call.facts();
    let Outcome::Command(command) = T::invoke(handlers, call, &proof, args).await? else { return Err(no_route(call)) };
    call.still()?;
    let answer = tasks.accept(write, command).await;
    if let Ok(task) = &answer {
        call.note_task(&task.task_id);
    }
    if let (Some(nonce), Ok(_) | Err(WriteRefusal::Busy { .. })) = (nonce, &answer) {
        nonce.set_stored();
    }
    task_answer(call, answer.map_err(|error| not_accepted(call, error))?)
}

/// Checks the grant first, so that handlers never see the id of a target that is not granted.
async fn require_granted<H, T: ToolSteps<H>>(
    handlers: &H,
    call: &Call<'_>,
    args: &T::Args,
) -> Result<T::Proof, Failure> {
    if let (Some(def), Some(id)) = (&call.tool.target, T::target(args))
        && !call.caller.application.grants.covers(def.resource, id)
    {
        return Err(not_found(call.catalogue, call.tool, call.caller));
    }
    T::require(handlers, call, args).await
}

pub async fn require<H: Resource<Id>, Id: Sync>(
    handlers: &H,
    call: &Call<'_>,
    id: &Id,
    capability: Option<H::Capability>,
) -> Result<Target<H::View>, Failure> {
    let unavailable = |why: Remark| refusals::unavailable(call, why, handlers.retry_after_seconds(id));
    let view = handlers.resolve(call.caller, id).await.map_err(|unresolved| match unresolved {
        Unresolved::NotFound => not_found(call.catalogue, call.tool, call.caller),
        Unresolved::Left => refusals::has_left(call),
        Unresolved::Unavailable(why) => unavailable(why),
    })?;
    match capability.map_or(Flag::Offered, |capability| H::flag(&view, capability)) {
        Flag::Offered => Ok(Target::proven(view, H::policy)),
        Flag::Unreachable => Err(unavailable("its capability is from an earlier reading".into())),
        flag @ Flag::Passing(_) => Err(refusals::passing(call, &flag, handlers.retry_after_seconds(id))),
        flag => Err(not_supported(call, &flag)),
    }
}

/// Refuses a task on another resource, which a reused idempotency key can find.
fn task_answer(call: &Call<'_>, task: WriteAnswer) -> Result<Answer, Failure> {
    let resource = |tool: &ToolDef| tool.target.as_ref().map(|target| target.resource);
    if call.catalogue.tool(&task.tool).is_some_and(|tool| resource(tool) != resource(call.tool)) {
        let what = "`idempotency_key` is that of another task in flight; use another key";
        return Err(Failure::exactly(call.catalogue.roles.invalid_argument, what));
    }
    let reader = call.caller.application.permissions;
    let shown = WriteResult { task: &task, catalogue: call.catalogue, tool: call.tool, reader };
    let answer = Answer::of(&shown, call).map_err(|error| internal_failure(call, &error.to_string()))?;
    let WriteAnswer { task_id, accepted_at, hit, matches, .. } = task;
    let (status, finished_at) = (tasks::TaskStatus::Dispatched, None);
    let created_at = accepted_at;
    Ok(answer.of_task(AnsweredTask { id: task_id, status, created_at, finished_at, is_new: !hit, is_same: matches }))
}
