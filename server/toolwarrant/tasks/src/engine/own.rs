//! Writes of the service itself, which end like those of clients.

use super::{Engine, tell};
use crate::store::Identity;
use crate::task::TaskId;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use toolwarrant_core::catalogue::PolicyDef;
use toolwarrant_core::tasks::{CallFacts, TaskView, Tasks, WriteCommand, WriteRefusal, WriteRequest};

const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Carries out writes of the service itself, such as those of an operator's check.
#[derive(Clone, Debug, Default)]
pub struct OwnTasks(Arc<OnceLock<Arc<Engine>>>);

/// A write of the service itself.
pub struct OwnWrite<'a> {
    /// Operators see it in place of a client's application. No application has an id with a blank.
    pub application: &'static str,
    /// The command of a tool.
    pub command: &'a (dyn WriteCommand + Sync),
    /// The id of the target.
    pub target: &'a str,
    /// The policy of the tool, with the times of this target.
    pub policy: PolicyDef,
}

impl OwnTasks {
    #[doc(hidden)]
    pub fn begin(&self, engine: &Arc<Engine>) {
        let _ = self.0.set(Arc::clone(engine));
    }

    /// Accepts a write as a task, and waits for its end.
    ///
    /// # Errors
    /// The reason why it was not accepted, or why its end is not known.
    pub async fn carry_out(&self, write: OwnWrite<'_>) -> Result<TaskView, String> {
        let engine = self.0.get().ok_or("no server runs here, and only a server makes tasks")?;
        let ended = engine.carry_out(write).await;
        ended.map_err(|refusal| match refusal {
            WriteRefusal::Busy { task_id, .. } => format!("the write {task_id} is in flight there"),
            WriteRefusal::Full => "too many writes are in flight".to_owned(),
            WriteRefusal::Unavailable | WriteRefusal::UsedNonce => "the store does not answer".to_owned(),
            WriteRefusal::Broken(why) => why,
        })
    }
}

impl Engine {
    async fn carry_out(&self, write: OwnWrite<'_>) -> Result<TaskView, WriteRefusal> {
        let OwnWrite { application, command, target, policy } = write;
        let broken = |why: &str| WriteRefusal::Broken(why.to_owned());
        let arguments = command.arguments().map_err(|error| WriteRefusal::Broken(error.to_string()))?;
        let tool = self.parts.catalogue.and_then(|catalogue| catalogue.tool(command.tool()));
        let tool = tool.ok_or_else(|| broken("the contract has no such tool"))?;
        let identity = Identity {
            application: application.to_owned(),
            key: None,
            fingerprint: self.fingerprint(tool.name, &arguments),
            resource: tool.target.as_ref().map_or("", |target| target.resource).to_owned(),
            target: target.to_owned(),
        };
        let (call, now) = (CallFacts::default(), self.parts.clock.now());
        let request = WriteRequest { identity, tool: tool.name, policy, call, nonce: None, now };
        let accepted = self.take_on(request, &arguments).await?;
        let id = TaskId::parse(&accepted.task_id).ok_or_else(|| broken("the id of the task is none"))?;
        loop {
            match self.parts.store.task(id).await {
                Ok(Some(record)) if record.task.status().is_some() => return Ok(tell(record, None)),
                Ok(None) => return Err(broken("the task is not stored any more")),
                // A store that does not answer now may do so in a moment.
                Ok(Some(_)) | Err(_) => self.parts.clock.sleep_until(self.parts.clock.now().plus(LOOK_EVERY)).await,
            }
        }
    }
}
