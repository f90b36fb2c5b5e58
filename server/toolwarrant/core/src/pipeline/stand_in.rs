//! Calls that an operator makes as an application, with the right of one of its live keys.

use super::refusals::no_caller;
use super::{Admitted, Handlers, Pipeline, find, permit};
use crate::access::Caller;
use crate::failure::Failure;
use crate::handler::ToolCall;
use crate::reply::Frame;
use crate::tasks::LongPoll;
use bytes::Bytes;
use serde_json::value::RawValue;
use toolwarrant_base::BoxFuture;

/// Calls tools as an application.
pub trait ToolCaller: Send + Sync {
    /// Charges the budget of an application that may call the tool. The failure is
    /// `unauthenticated` if none of its keys is live.
    fn stand_in(&self, application: &str, tool: &str) -> Result<Caller, Failure>;

    /// Returns the result of a call that is charged, as JSON.
    fn call_as<'a>(
        &'a self,
        caller: &'a Caller,
        tool: &'a str,
        arguments: &'a RawValue,
        request_id: &'a str,
    ) -> BoxFuture<'a, Result<Bytes, Failure>>;
}

impl<H: Handlers> ToolCaller for Pipeline<H> {
    fn stand_in(&self, application: &str, tool: &str) -> Result<Caller, Failure> {
        let caller = self.access.stand_in(application, &self.clock);
        let caller = caller.map_err(|error| no_caller(H::CATALOGUE, error))?;
        permit(H::CATALOGUE, &caller, find(H::CATALOGUE, &caller, tool)?)?;
        self.charge_budget(&caller, None, 1)?;
        Ok(caller)
    }

    fn call_as<'a>(
        &'a self,
        caller: &'a Caller,
        tool: &'a str,
        arguments: &'a RawValue,
        request_id: &'a str,
    ) -> BoxFuture<'a, Result<Bytes, Failure>> {
        Box::pin(async move {
            let asked = ToolCall { tool, arguments, request_id, hold: LongPoll::Never, frame: Frame::Plain };
            Ok(self.call(&Admitted(caller), asked).await?.into())
        })
    }
}
