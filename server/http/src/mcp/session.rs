//! Answers the messages of one authenticated HTTP request.
//!
//! The outcome of a tool is always a result, also if the tool failed, so that the model reads it.

use super::answers::{self, array, error};
use super::envelope::{self, Message, RpcRequest};
use crate::Endpoint;
use crate::spliced::Spliced;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::LazyLock;
use toolwarrant_core::access::Caller;
use toolwarrant_core::failure::Failure;
use toolwarrant_core::handler::ToolCall;
use toolwarrant_core::pipeline::{Admitted, Handlers};
use toolwarrant_core::revision::Revision;
use toolwarrant_core::tasks::LongPoll;
use toolwarrant_core::wording::Echo;
use toolwarrant_core::words;

/// A method that requests can call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Initialize,
    Ping,
    Discover,
    ListTools,
    CallTool,
}

impl Method {
    /// The method of this name, if the revision has it.
    pub(super) fn of(name: &str, revision: Revision) -> Option<Self> {
        let handshake = revision.features().handshake;
        match name {
            "tools/call" => Some(Self::CallTool),
            "tools/list" => Some(Self::ListTools),
            "initialize" if handshake => Some(Self::Initialize),
            "ping" if handshake => Some(Self::Ping),
            "server/discover" if !handshake => Some(Self::Discover),
            _ => None,
        }
    }

    /// The failure of a call to a method of this name, which there is not.
    pub(super) fn unknown<H: Handlers>(name: &str) -> Failure {
        Failure::new(H::CATALOGUE.roles.method_not_found, words!["there is no method `", Echo::of(name), "`"])
    }
}

/// One authenticated HTTP request, whose messages are to be answered.
pub(super) struct Session<'a, H> {
    pub(super) endpoint: &'a Endpoint<H>,
    pub(super) caller: &'a Caller,
    pub(super) request_id: &'a str,
    pub(super) revision: Revision,
    pub(super) hold: LongPoll<'a>,
}

impl<H: Handlers> Session<'_, H> {
    /// The answer to a message; a notification has none.
    pub(super) async fn one(&self, message: Message<'_>) -> Option<Spliced> {
        self.answer_all(&[message]).await.pop()
    }

    /// The answer to a batch; one of notifications has none.
    pub(super) async fn batch(&self, messages: &[Message<'_>]) -> Option<Spliced> {
        let answers = self.answer_all(messages).await;
        (!answers.is_empty()).then(|| array(&answers))
    }

    /// The answers to all messages. The cost of all messages is charged before the first one runs.
    async fn answer_all(&self, messages: &[Message<'_>]) -> Vec<Spliced> {
        let requests = messages.iter().filter(|message| message.wants_answer()).count();
        let cost = u32::try_from(requests.max(1)).unwrap_or(u32::MAX);
        let charged = self.endpoint.pipeline.charge_budget(self.caller, cost);
        let mut answers = Vec::with_capacity(requests);
        for message in messages {
            let answer = match (message, &charged) {
                (Message::Unanswered, _) => continue,
                (Message::Invalid { id, what }, _) => {
                    error(id.unwrap_or("null"), &Failure::new(H::CATALOGUE.roles.invalid_request, what.clone()))
                }
                (Message::Request(request), Err(failure)) => self.over_budget(request, failure),
                (Message::Request(request), Ok(admitted)) => match self.answer(admitted, request).await {
                    Ok(answer) => answer,
                    Err(failure) => error(request.id, &failure),
                },
            };
            answers.push(answer);
        }
        answers
    }

    fn over_budget(&self, RpcRequest { id, method, params }: &RpcRequest<'_>, failure: &Failure) -> Spliced {
        if method != "tools/call" {
            return error(id, failure);
        }
        if let Ok(call) = self.call_params(*params) {
            self.endpoint.pipeline.refused(self.caller, &call.name, self.request_id, failure);
        }
        self.endpoint.answers.failed(id, self.revision, failure)
    }

    async fn answer(&self, admitted: &Admitted<'_>, request: &RpcRequest<'_>) -> Result<Spliced, Failure> {
        let RpcRequest { id, method, params } = request;
        let invalid_params = H::CATALOGUE.roles.invalid_params;
        if let Some(params) = params.filter(|params| !params.get().starts_with('{')) {
            let what = words!["`params` is ", Echo::of(params.get()), ", not an object"];
            return Err(Failure::new(invalid_params, what));
        }
        let Endpoint { pipeline, answers, .. } = self.endpoint;
        match Method::of(method, self.revision) {
            Some(Method::CallTool) => self.call(admitted, id, &self.call_params(*params)?).await,
            Some(Method::ListTools) => match cursor(*params) {
                None => Ok(answers.listed(id, self.revision, &pipeline.list(admitted, self.revision))),
                Some(cursor) => {
                    let what = words!["`cursor` ", cursor, " is not one that tools/list returned: it returns one page"];
                    Err(Failure::new(invalid_params, what))
                }
            },
            Some(Method::Initialize) => {
                let agreed = Revision::agreed(&offer(*params), H::CATALOGUE.service.served);
                Ok(answers.initialized(id, agreed, &pipeline.instructions(admitted)))
            }
            Some(Method::Discover) => Ok(answers.discovered(id, &pipeline.instructions(admitted))),
            Some(Method::Ping) => Ok(answers::pong(id)),
            None => Err(Method::unknown::<H>(method)),
        }
    }

    async fn call(&self, admitted: &Admitted<'_>, id: &str, call: &CallParams<'_>) -> Result<Spliced, Failure> {
        let arguments = call.arguments.unwrap_or(&NO_ARGUMENTS);
        let asked = ToolCall { tool: &call.name, arguments, request_id: self.request_id, hold: self.hold };
        match self.endpoint.pipeline.call(admitted, asked).await {
            Ok(answer) => Ok(self.endpoint.answers.succeeded(id, self.revision, &answer)),
            Err(failure) if *failure.def() == *H::CATALOGUE.roles.unknown_tool => Err(failure),
            Err(failure) => Ok(self.endpoint.answers.failed(id, self.revision, &failure)),
        }
    }

    fn call_params<'p>(&self, params: Option<&'p RawValue>) -> Result<CallParams<'p>, Failure> {
        let role = H::CATALOGUE.roles.invalid_params;
        let params = params.ok_or_else(|| Failure::new(role, "tools/call needs `params` with the tool's `name`"))?;
        let call: CallParams<'p> = serde_json::from_str(params.get()).map_err(|error| {
            let what = envelope::reason(&error);
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

static NO_ARGUMENTS: LazyLock<Box<RawValue>> =
    LazyLock::new(|| RawValue::from_string("{}".to_owned()).unwrap_or_default());

#[derive(serde::Deserialize)]
struct CallParams<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow, default, deserialize_with = "envelope::present")]
    arguments: Option<&'a RawValue>,
}

/// The cursor of a `tools/list` request, cleaned for display.
fn cursor(params: Option<&RawValue>) -> Option<Echo> {
    #[derive(serde::Deserialize)]
    struct Page<'a> {
        #[serde(borrow)]
        cursor: Option<&'a RawValue>,
    }
    let page: Page<'_> = serde_json::from_str(params?.get()).ok()?;
    page.cursor.map(|cursor| Echo::of(cursor.get()))
}

/// The revision that a client offers; empty if it offers none.
fn offer(params: Option<&RawValue>) -> Cow<'_, str> {
    #[derive(serde::Deserialize)]
    struct Offer<'a> {
        #[serde(borrow, rename = "protocolVersion")]
        version: Cow<'a, str>,
    }
    let offer: Option<Offer<'_>> = params.and_then(|params| serde_json::from_str(params.get()).ok());
    offer.map_or(Cow::Borrowed(""), |offer| offer.version)
}
