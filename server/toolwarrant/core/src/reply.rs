//! The result of a tool, from the handler's value to the body of the response.
//!
//! An [`Answer`] is written once, together with the [`Frame`] of its transport. Values that many
//! calls share are [`Rendered`] once and copied into each answer: [`Prepared`] as a whole,
//! [`ListWriter`] as parts. Start at [`Reply`].

mod frame;
mod list;
mod recipient;
mod rendered;
mod shape;
mod tool_lists;

pub use frame::Frame;
pub use list::{ListResult, ListWriter};
pub use recipient::{Recipient, TargetIds, VisitId};
pub(crate) use recipient::{Sight, find_refused};
pub use rendered::{Prepared, Ready, RenderBudget, Rendered};
pub(super) use tool_lists::ToolLists;

use crate::report::TaskStatus;
use bytes::Bytes;
use serde::Serialize;
use serde::ser::Error;
use shape::shape;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::text::Json;

/// The result of a tool: a value, or an answer that is already written.
#[derive(Debug)]
pub struct Reply<T>(Form<T>);

#[derive(Debug)]
enum Form<T> {
    Value(T),
    Written(Answer),
    Unwritable(serde_json::Error),
}

impl<T> From<T> for Reply<T> {
    fn from(value: T) -> Self {
        Self(Form::Value(value))
    }
}

impl<T: Serialize + TargetIds> Reply<T> {
    /// Returns the answer, in the frame of the call.
    ///
    /// # Errors
    /// The value is no JSON, or holds a target that the caller may not see.
    pub fn answer<'a>(self, to: impl Into<Recipient<'a>>) -> Result<Answer, serde_json::Error> {
        match self.0 {
            Form::Value(value) => {
                let to = to.into();
                to.check(&value)?;
                shape(Json::of(&value)?, to.frame, to.body).map(Into::into)
            }
            Form::Written(answer) if to.into().is_written_whole() => Ok(answer),
            Form::Written(_) => Err(serde_json::Error::custom("the answer of a tool with a body is made from a value")),
            Form::Unwritable(error) => Err(error),
        }
    }
}

/// The body of a response. If it contains a secret, it is wiped when it is dropped.
#[derive(Debug)]
pub struct Answer {
    body: Json,
    task: Option<Box<AnsweredTask>>,
    once: bool,
}

/// The task that a call made, repeats or reads.
#[derive(Debug)]
pub struct AnsweredTask {
    pub id: String,
    pub status: TaskStatus,
    pub created_at: Timestamp,
    pub finished_at: Option<Timestamp>,
    pub is_new: bool,
    /// True if it has the tool, target and arguments of the call.
    pub is_same: bool,
}

impl Answer {
    pub fn of<'a>(value: &impl Serialize, frame: impl Into<Frame<'a>>) -> Result<Self, serde_json::Error> {
        shape(Json::of(value)?, frame.into(), None).map(Into::into)
    }

    #[must_use]
    pub fn list(answers: &[Self]) -> Self {
        let length: usize = answers.iter().map(|answer| answer.body.bytes.len() + 1).sum();
        let mut body = Json::with_capacity(length + 1, false);
        for Self { body: item, .. } in answers {
            body.bytes.push(if body.bytes.is_empty() { b'[' } else { b',' });
            body.bytes.extend_from_slice(&item.bytes);
            body.has_secret |= item.has_secret;
        }
        body.bytes.push(b']');
        Self { once: answers.iter().any(Self::is_of_once), ..body.into() }
    }

    pub(super) fn of_task(self, task: AnsweredTask) -> Self {
        Self { task: Some(Box::new(task)), ..self }
    }

    /// Marks the answer of a call that must not be sent again.
    #[must_use]
    pub fn of_once(self, once: bool) -> Self {
        Self { once, ..self }
    }

    #[must_use]
    pub fn is_of_once(&self) -> bool {
        self.once
    }

    /// Returns the task that the call made, repeats, or reads for plain JSON.
    #[must_use]
    pub fn task(&self) -> Option<&AnsweredTask> {
        self.task.as_deref()
    }
}

impl From<Json> for Answer {
    fn from(body: Json) -> Self {
        Self { body, task: None, once: false }
    }
}

/// The body has no secret.
impl From<Vec<u8>> for Answer {
    fn from(bytes: Vec<u8>) -> Self {
        Json { bytes, has_secret: false }.into()
    }
}

impl From<Answer> for Bytes {
    fn from(Answer { body, .. }: Answer) -> Self {
        body.into()
    }
}

#[cfg(test)]
mod tests;
