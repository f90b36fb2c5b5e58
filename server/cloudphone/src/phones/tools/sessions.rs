//! The handler that issues screen sessions: `spec/tools/sessions.toml`.

use super::check_offer;
use crate::phones::contract::{
    CreateSessionArgs, CreateSessionError, ScreenSession, SessionToken, SessionsTools, texts,
};
use crate::phones::devices::{Phones, ScreenPasses};
use crate::phones::port::{DeviceSnapshot, Session, SessionError};
use crate::phones::screens::PATH;
use std::sync::Arc;
use toolwarrant::handler::{Call, Reply, Target};
use toolwarrant::page::{Issued, Opening};
use toolwarrant::text::Secret;

impl SessionsTools for Phones {
    async fn create_session(
        &self,
        call: &Call<'_>,
        device: &Target<Arc<DeviceSnapshot>>,
        args: CreateSessionArgs,
    ) -> Result<Reply<ScreenSession>, CreateSessionError> {
        let CreateSessionArgs { device_id: _, mode } = args;
        let platform = self.platforms.of(&device.id);
        let has_screen = platform.as_ref().is_ok_and(|platform| platform.screen(&device.id).is_some());
        let session = match (self.screens.as_ref().filter(|_| has_screen), platform) {
            (Some(ScreenPasses { passes, last }), _) => {
                let opening = Opening { path: PATH, mode: mode.as_str(), lasts: *last };
                let issued = passes.issue(call, opening);
                issued.map_err(|error| SessionError::Refused(error.to_string().into())).and_then(Session::try_from)
            }
            (None, platform) => {
                check_offer(CreateSessionArgs::MODE, &mode, &device.session_modes, |mode| mode.as_str())
                    .map_err(|what| CreateSessionError::NotOffered { what })?;
                match platform {
                    Ok(platform) => platform.session(&device.id, mode).await,
                    Err(error) => Err(error.into()),
                }
            }
        };
        let Session { token, url, expires_at } = session.map_err(|error| {
            tracing::warn!(request_id = call.request_id, %error, "no session was issued");
            let what = match error {
                SessionError::Unreachable(_) => "the platform could not be reached",
                SessionError::Refused(_) => "the platform issued no session",
            };
            CreateSessionError::UpstreamUnavailable { what: what.into() }
        })?;
        let next_step = if url.is_some() { texts::SESSION_PAGE } else { texts::SESSION_TOKEN };
        let next_step = next_step.for_reader(call.caller.application.permissions);
        Ok(ScreenSession { device_id: device.id.clone(), token, url, mode, expires_at, next_step }.into())
    }
}

impl TryFrom<Issued> for Session {
    type Error = SessionError;

    fn try_from(Issued { token, url, expires_at }: Issued) -> Result<Self, SessionError> {
        let token = SessionToken::new(token.expose()).map_err(|_| SessionError::Refused("its token is none".into()))?;
        Ok(Self { token: Secret::new(token), url: Some(url), expires_at: Some(expires_at) })
    }
}
