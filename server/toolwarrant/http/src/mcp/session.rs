//! Answers the messages of one authenticated HTTP request. The outcome of a tool is always a
//! result, even if the tool failed, so that the model reads it.

use super::answers::{self, Answers, error};
use super::envelope::{Message, ParamMembers, Params, RpcRequest};
use super::follow;
use super::metadata;
use super::method::{Method, TaskMethod};
use super::refusal::HttpRefusal;
use crate::context::{Context, reason};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use std::borrow::Cow;
use std::sync::LazyLock;
use toolwarrant_base::wording::Echo;
use toolwarrant_base::{json, words};
use toolwarrant_core::access::Caller;
use toolwarrant_core::args::read_text;
use toolwarrant_core::catalogue::ToolDef;
use toolwarrant_core::failure::Failure;
use toolwarrant_core::handler::ToolCall;
use toolwarrant_core::limit::HeadCharge;
use toolwarrant_core::pipeline::{Admitted, Handlers};
use toolwarrant_core::reply::{Answer, Frame};
use toolwarrant_core::revision::Revision;
use toolwarrant_core::tasks::LongPoll;

pub(super) struct Session<'a, H> {
    pub(super) context: &'a Context<H>,
    pub(super) answers: &'a Answers,
    pub(super) caller: &'a Caller,
    /// Before the body was read.
    pub(super) charged: Option<HeadCharge>,
    pub(super) request_id: &'a str,
    pub(super) revision: Revision,
    pub(super) hold: LongPoll<'a>,
}

impl<H: Handlers> Session<'_, H> {
    /// Returns `None` for a notification. Fails if the caller's key or secret has ended meanwhile.
    pub(super) async fn one(&self, message: &Message<'_>) -> Result<Option<Answer>, HttpRefusal> {
        match self.answer_message(message, &self.charge(1)).await {
            Some(Err((id, failure))) if *failure.def() == *H::CATALOGUE.roles.unauthenticated => {
                Err(HttpRefusal { failure, id: id.to_owned() })
            }
            answered => Ok(answered.map(into_answer)),
        }
    }

    /// Charges the cost of all messages before the first one runs.
    pub(super) async fn batch(&self, messages: &[Message<'_>]) -> Option<Answer> {
        let requests = messages.iter().filter(|message| message.wants_answer()).count();
        let charged = self.charge(requests);
        let mut answers = Vec::with_capacity(requests);
        for message in messages {
            answers.extend(self.answer_message(message, &charged).await.map(into_answer));
        }
        (!answers.is_empty()).then(|| Answer::list(&answers))
    }

    fn charge(&self, requests: usize) -> Result<Admitted<'_>, Failure> {
        let cost = u32::try_from(requests.max(1)).unwrap_or(u32::MAX);
        self.context.pipeline.charge_budget(self.caller, self.charged, cost)
    }

    /// Returns the id with a failure, and `None` for a notification.
    async fn answer_message<'m>(
        &self,
        message: &'m Message<'_>,
        charged: &Result<Admitted<'_>, Failure>,
    ) -> Option<Result<Answer, (&'m str, Failure)>> {
        Some(match (message, charged) {
            (Message::Unanswered, _) => return None,
            (Message::Invalid { id, what }, _) => {
                Err((id.unwrap_or("null"), Failure::new(H::CATALOGUE.roles.invalid_request, what.clone())))
            }
            (Message::Request(request), Err(failure)) => Ok(self.over_budget(request, failure)),
            (Message::Request(request), Ok(admitted)) => {
                self.answer(admitted, request).await.map_err(|failure| (request.id, failure))
            }
        })
    }

    fn over_budget(&self, request: &RpcRequest<'_>, failure: &Failure) -> Answer {
        let RpcRequest { id, method, .. } = request;
        let record = |tool: &str| self.context.pipeline.record_refusal(self.caller, tool, self.request_id, failure);
        let known = Method::of::<H>(method, self.revision);
        if let (Some(Method::Task(_)), Some(reader)) = (known, H::CATALOGUE.followed) {
            record(reader.name);
        }
        if known != Some(Method::CallTool) {
            return error(id, failure);
        }
        if let Ok(call) = self.call_params(request) {
            record(&call.name);
        }
        self.answers.tool_failure(id, self.revision, failure)
    }

    async fn answer(&self, admitted: &Admitted<'_>, request: &RpcRequest<'_>) -> Result<Answer, Failure> {
        let RpcRequest { id, method, params, .. } = request;
        let invalid_params = H::CATALOGUE.roles.invalid_params;
        if let Params::Unusual = params
            && let Some(params) = request.params_json().filter(|params| !params.get().starts_with('{'))
        {
            let what = words!["`params` is ", Echo::of(params.get()), ", not an object"];
            return Err(Failure::new(invalid_params, what));
        }
        let (pipeline, answers) = (&self.context.pipeline, self.answers);
        match Method::of::<H>(method, self.revision) {
            Some(Method::CallTool) => self.call(admitted, request, &self.call_params(request)?).await,
            Some(Method::ListTools) => match cursor(request) {
                None => {
                    let tools = pipeline.list(admitted, self.revision, self.follows(request))?;
                    Ok(answers.list_tools(id, self.revision, &tools))
                }
                Some(cursor) => {
                    let what = words!["`cursor` ", cursor, " is not one that tools/list returned: it returns one page"];
                    Err(Failure::new(invalid_params, what))
                }
            },
            Some(Method::Initialize) => {
                let agreed = Revision::negotiate(&offer(request), H::CATALOGUE.service.served);
                Ok(answers.initialize(id, agreed, &pipeline.instructions(admitted, false)?))
            }
            Some(Method::Discover) => self.discover(admitted, request),
            Some(Method::Task(method)) => self.task(admitted, request, method).await,
            Some(Method::Ping) => Ok(answers::pong(id)),
            None => Err(Method::unknown::<H>(method)),
        }
    }

    fn discover(&self, admitted: &Admitted<'_>, request: &RpcRequest<'_>) -> Result<Answer, Failure> {
        let is_offered = follow::is_offered(H::CATALOGUE, self.caller.application.permissions);
        let instructions = self.context.pipeline.instructions(admitted, self.follows(request))?;
        Ok(self.answers.discover(request.id, is_offered, &instructions))
    }

    async fn task(
        &self,
        admitted: &Admitted<'_>,
        request: &RpcRequest<'_>,
        method: TaskMethod,
    ) -> Result<Answer, Failure> {
        let (catalogue, id, request_id) = (H::CATALOGUE, request.id, self.request_id);
        let reader = catalogue.followed.ok_or_else(|| Method::unknown::<H>(&request.method))?;
        let task_id = metadata::task_id(request)
            .ok_or_else(|| Failure::new(catalogue.roles.invalid_params, "`params` lacks `taskId`, a string"))?;
        let arguments = to_raw_value(&json!({"task_id": task_id, "wait_seconds": 0})).map_err(self.internal())?;
        let (arguments, hold, frame) = (&*arguments, LongPoll::Never, Frame::Plain);
        let asked = ToolCall { tool: reader.name, arguments, request_id, hold, frame };
        let read = self.context.pipeline.call(admitted, asked).await;
        let read = read.map_err(|failure| follow::conceal(catalogue, self.caller.application.permissions, failure))?;
        match method {
            TaskMethod::Get => follow::write_task(self.answers, catalogue, id, read).map_err(self.internal()),
            TaskMethod::Cancel | TaskMethod::Update => Ok(self.answers.acknowledge(id)),
        }
    }

    /// Returns true if the request declares the extension for tasks, and its caller may use it.
    fn follows(&self, request: &RpcRequest<'_>) -> bool {
        !self.revision.features().handshake
            && follow::is_offered(H::CATALOGUE, self.caller.application.permissions)
            && metadata::follows(request)
    }

    fn internal(&self) -> impl Fn(serde_json::Error) -> Failure {
        let request_id = self.request_id;
        move |error| {
            tracing::error!(request_id, %error, "an answer could not be written");
            Failure::new(H::CATALOGUE.roles.internal, "the answer could not be written").with("request_id", request_id)
        }
    }

    async fn call(
        &self,
        admitted: &Admitted<'_>,
        request: &RpcRequest<'_>,
        call: &CallParams<'_>,
    ) -> Result<Answer, Failure> {
        let arguments = call.arguments.unwrap_or(&NO_ARGUMENTS);
        let Self { context: Context { pipeline, .. }, answers, request_id, hold, revision, .. } = *self;
        let makes_task = || H::CATALOGUE.tool(&call.name).is_some_and(|tool| tool.task.is_some());
        // A call of an older revision, and one that only reads, pay for no more than these.
        let is_followed = !revision.features().handshake && makes_task() && self.follows(request);
        let id = request.id;
        let frame = if is_followed { Frame::Plain } else { answers.frame(id, revision) };
        match pipeline.call(admitted, ToolCall { tool: &call.name, arguments, request_id, hold, frame }).await {
            Ok(answer) if is_followed => {
                follow::write_call(answers, H::CATALOGUE, (id, revision), answer).map_err(self.internal())
            }
            Ok(answer) => Ok(answer),
            Err(failure)
                if [H::CATALOGUE.roles.unknown_tool, H::CATALOGUE.roles.unauthenticated].contains(&failure.def()) =>
            {
                Err(failure)
            }
            Err(failure) => {
                let acts_once = H::CATALOGUE.tool(&call.name).is_some_and(ToolDef::acts_once);
                Ok(answers.tool_failure(id, revision, &failure).of_once(acts_once))
            }
        }
    }

    fn call_params<'p>(&self, request: &RpcRequest<'p>) -> Result<CallParams<'p>, Failure> {
        if let Params::Read(ParamMembers { name: Some(name), arguments, .. }) = request.params
            && let Some(name) = read_text(name.get())
            && arguments.is_none_or(|arguments| arguments.get().starts_with('{'))
        {
            return Ok(CallParams { name, arguments });
        }
        let role = H::CATALOGUE.roles.invalid_params;
        let params = request
            .params_json()
            .ok_or_else(|| Failure::new(role, "tools/call needs `params` with the tool's `name`"))?;
        let call: CallParams<'p> = json::read(params.get()).map_err(|error| {
            let what = reason(&error);
            Failure::new(role, words!["`params` of tools/call: ", what])
        })?;
        match call.arguments {
            Some(arguments) if !arguments.get().starts_with('{') => {
                Err(Failure::new(role, words!["`arguments` is ", Echo::of(arguments.get()), ", not an object"]))
            }
            _ => Ok(call),
        }
    }
}

fn into_answer(answered: Result<Answer, (&str, Failure)>) -> Answer {
    answered.unwrap_or_else(|(id, failure)| error(id, &failure))
}

static NO_ARGUMENTS: LazyLock<Box<RawValue>> =
    LazyLock::new(|| RawValue::from_string("{}".to_owned()).unwrap_or_default());

#[derive(serde::Deserialize)]
struct CallParams<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// Treats a cursor that is null as absent.
fn cursor(request: &RpcRequest<'_>) -> Option<Echo> {
    let Params::Read(ParamMembers { cursor, .. }) = request.params else { return None };
    cursor.map(RawValue::get).filter(|cursor| *cursor != "null").map(Echo::of)
}

fn offer<'a>(request: &RpcRequest<'a>) -> Cow<'a, str> {
    let Params::Read(ParamMembers { protocol_version, .. }) = request.params else { return Cow::Borrowed("") };
    protocol_version.and_then(|version| read_text(version.get())).unwrap_or_default()
}
