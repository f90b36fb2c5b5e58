//! The failure of a call: an error code of the contract, a message, and the fields of the code.
//!
//! The error in the message is [`Words`], so it cannot repeat an upstream's text. The remedy is
//! [`Advice`], so it names only tools that its reader may call. Start at [`Failure::new`].

use super::advice::Advice;
use super::catalogue::{ErrorDef, PermissionSet};
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::Value;
use toolwarrant_base::clock::Timestamp;
use toolwarrant_base::text::Remark;
use toolwarrant_base::wording::Words;
use toolwarrant_base::words;

const RETRY_AFTER: &str = "retry_after_seconds";

/// One pointer wide, so that results stay small.
#[derive(Debug, Clone)]
pub struct Failure(Box<Inner>);

#[derive(Debug, Clone)]
struct Inner {
    def: &'static ErrorDef,
    what: Words,
    remedy: Advice,
    also: Advice,
    fields: Vec<(&'static str, Value)>,
    reader: PermissionSet,
    fault: Option<Remark>,
    repeat_at: Option<Timestamp>,
}

impl Failure {
    /// Creates a failure from a fragment that states the error, and the remedy of the code.
    #[must_use]
    pub fn new(def: &'static ErrorDef, what: impl Into<Words>) -> Self {
        Self::from_sentences(def, words![what.into(), "."])
    }

    /// Creates a failure from the meaning and the remedy of its code.
    #[must_use]
    pub fn plain(def: &'static ErrorDef) -> Self {
        Self::from_sentences(def, def.meaning)
    }

    /// Takes a cause that is for the log alone.
    #[must_use]
    pub fn fault(def: &'static ErrorDef, cause: Remark) -> Self {
        let mut failure = Self::plain(def);
        failure.0.fault = Some(cause);
        failure
    }

    #[must_use]
    pub(crate) fn from_sentences(def: &'static ErrorDef, what: impl Into<Words>) -> Self {
        let mut failure = Self::exactly(def, what);
        failure.0.remedy = def.remedy;
        failure
    }

    #[must_use]
    pub fn exactly(def: &'static ErrorDef, message: impl Into<Words>) -> Self {
        let retry = def.retry_after_seconds.map(|seconds| (RETRY_AFTER, seconds.into()));
        let (what, fields, none) = (message.into(), retry.into_iter().collect(), Advice::NONE);
        let reader = PermissionSet::NONE;
        Self(Box::new(Inner { def, what, remedy: none, also: none, fields, reader, fault: None, repeat_at: None }))
    }

    /// Sets a field of the code. A value that is no JSON becomes null.
    #[must_use]
    pub fn with(mut self, field: &'static str, value: impl Serialize) -> Self {
        self.0.fields.retain(|(known, _)| *known != field);
        self.0.fields.push((field, serde_json::to_value(value).unwrap_or_default()));
        self
    }

    /// Sets the time from which a repeat helps.
    #[must_use]
    pub fn repeat_at(mut self, moment: impl Into<Option<Timestamp>>) -> Self {
        self.0.repeat_at = moment.into();
        self
    }

    /// Says after how many seconds to repeat: those of the code, if that moment has passed.
    #[must_use]
    pub(crate) fn answered_at(self, now: Timestamp) -> Self {
        match self.0.repeat_at.map_or(0, |moment| moment.seconds_from(now)) {
            0 => self,
            seconds => self.with(RETRY_AFTER, seconds),
        }
    }

    /// Replaces the remedy, if its reader can act on any part of this advice.
    #[must_use]
    pub fn with_advice(mut self, advice: Advice, reader: PermissionSet) -> Self {
        if !advice.for_reader(reader).as_str().is_empty() {
            self.0.remedy = advice;
        }
        self
    }

    #[must_use]
    pub fn and(mut self, also: Advice) -> Self {
        self.0.also = also;
        self
    }

    /// Sets the reader. Before that, the message names no tools.
    #[must_use]
    pub fn for_reader(mut self, reader: PermissionSet) -> Self {
        self.0.reader = reader;
        self
    }

    #[must_use]
    pub fn def(&self) -> &'static ErrorDef {
        self.0.def
    }

    pub(crate) fn cause(&self) -> Option<&str> {
        self.0.fault.as_ref().map(Remark::as_str)
    }

    #[must_use]
    pub fn retry_after_seconds(&self) -> Option<u64> {
        let field = self.0.fields.iter().find(|(name, _)| *name == RETRY_AFTER);
        field.filter(|_| self.0.def.retryable()).and_then(|(_, value)| value.as_u64())
    }

    #[must_use]
    pub fn message(&self) -> String {
        let Inner { what, remedy, also, fields, reader, .. } = &*self.0;
        let mut message = what.as_str().to_owned();
        for advice in [remedy, also].map(|advice| advice.for_reader(*reader)) {
            if !advice.as_str().is_empty() {
                message.push(' ');
                message.push_str(&fill_in(advice.as_str(), fields));
            }
        }
        message
    }
}

/// Fills in fields once: slots inside of a value stay.
fn fill_in(advice: &str, fields: &[(&'static str, Value)]) -> String {
    let mut out = String::with_capacity(advice.len());
    let mut rest = advice;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let slot = after.split_once('}');
        let value = slot.and_then(|(name, tail)| Some((&fields.iter().find(|(field, _)| *field == name)?.1, tail)));
        rest = match value {
            Some((Value::String(text), tail)) => {
                out.push_str(text);
                tail
            }
            Some((value, tail)) => {
                out.push_str(&value.to_string());
                tail
            }
            None => {
                out.push('{');
                after
            }
        };
    }
    out + rest
}

impl Serialize for Failure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Inner { def, fields, .. } = &*self.0;
        let mut map = serializer.serialize_map(Some(3 + fields.len()))?;
        map.serialize_entry("code", def.code)?;
        map.serialize_entry("message", &self.message())?;
        map.serialize_entry("retryable", &def.retryable())?;
        for (field, value) in fields {
            map.serialize_entry(field, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static LOCK_FULL: ErrorDef = ErrorDef {
        code: "lock_full",
        retry_after_seconds: Some(60),
        http: 409,
        jsonrpc: -32000,
        meaning: "",
        remedy: Advice::NONE,
    };

    #[test]
    fn the_delay_is_that_of_the_handlers_time_and_the_codes_without_a_time_to_come() {
        let now = Timestamp(10_000);
        for (moment, seconds) in
            [(Some(312_000), 302), (Some(10_001), 1), (Some(10_000), 60), (Some(0), 60), (None, 60)]
        {
            let failure = Failure::plain(&LOCK_FULL).repeat_at(moment.map(Timestamp)).answered_at(now);
            let shown = serde_json::to_value(&failure).unwrap();
            assert_eq!(
                (failure.retry_after_seconds(), &shown[RETRY_AFTER]),
                (Some(seconds), &seconds.into()),
                "{moment:?}"
            );
        }
    }
}
