//! `/v1`: the same tools over signed HTTP. This version verifies no signature, so it refuses every request before routing.

use axum::body::Body;
use axum::http::{HeaderValue, Response};
use toolwarrant_core::catalogue::Catalogue;
use toolwarrant_core::failure::Failure;

/// The answer to a request without a valid signature.
pub(super) fn unsigned(catalogue: &'static Catalogue, request_id: &HeaderValue) -> Response<Body> {
    let failure = Failure::exactly(
        catalogue.roles.unauthenticated,
        "Requests under /v1 are signed: they carry X-Api-Key, X-Timestamp, X-Nonce and X-Signature, and no Authorization. \
         Key and secret as they are belong to /mcp.",
    );
    super::refuse(&failure, request_id)
}
