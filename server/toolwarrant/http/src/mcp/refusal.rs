//! The refusal of a whole HTTP request, as a JSON-RPC error with an HTTP status.

use super::answers::error;
use crate::context::{respond, say_what_is_taken, status};
use axum::body::Body;
use axum::http::Response;
use axum::http::header::HeaderValue;
use toolwarrant_base::wording::Words;
use toolwarrant_core::catalogue::ErrorDef;
use toolwarrant_core::failure::Failure;
use toolwarrant_core::pipeline::Handlers;

pub(super) struct HttpRefusal {
    pub(super) failure: Failure,
    /// As JSON; `null` if it could not be read.
    pub(super) id: String,
}

impl HttpRefusal {
    pub(super) fn new(def: &'static ErrorDef, what: impl Into<Words>) -> Self {
        Failure::new(def, what).into()
    }

    pub(super) fn respond<H: Handlers>(self, request_id: &HeaderValue) -> Response<Body> {
        let mut response = respond(status(&self.failure), error(&self.id, &self.failure), request_id);
        say_what_is_taken::<H>(&mut response, "Bearer");
        response
    }
}

impl From<Failure> for HttpRefusal {
    fn from(failure: Failure) -> Self {
        Self { failure, id: "null".to_owned() }
    }
}
