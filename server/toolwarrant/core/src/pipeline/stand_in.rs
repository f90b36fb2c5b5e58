//! Calls that an operator makes as an application, with the right of one of its live keys.

use super::refusals::no_caller;
use super::{Handlers, Pipeline};
use crate::failure::Failure;
use crate::handler::ToolCall;
use crate::reply::Frame;
use crate::tasks::LongPoll;
use bytes::Bytes;
use serde_json::value::RawValue;
use toolwarrant_base::BoxFuture;

/// Calls tools as an application. It charges the budget of the application, as any call does.
pub trait ToolCaller: Send + Sync {
    /// Returns the result as JSON. The failure is `unauthenticated` if no key of the application is
    /// live.
    fn call_as<'a>(
        &'a self,
        application: &'a str,
        tool: &'a str,
        arguments: &'a RawValue,
        request_id: &'a str,
    ) -> BoxFuture<'a, Result<Bytes, Failure>>;
}

impl<H: Handlers> ToolCaller for Pipeline<H> {
    fn call_as<'a>(
        &'a self,
        application: &'a str,
        tool: &'a str,
        arguments: &'a RawValue,
        request_id: &'a str,
    ) -> BoxFuture<'a, Result<Bytes, Failure>> {
        Box::pin(async move {
            let caller = self.access.stand_in(application, &self.clock);
            let caller = caller.map_err(|error| no_caller(H::CATALOGUE, error))?;
            let admitted = self.charge_budget(&caller, None, 1)?;
            let asked = ToolCall { tool, arguments, request_id, hold: LongPoll::Never, frame: Frame::Plain };
            Ok(self.call(&admitted, asked).await?.into())
        })
    }
}
