//! The handler that issues screen sessions: `spec/tools/sessions.toml`.

use super::check_offer;
use crate::phones::contract::{
    CreateSessionArgs, CreateSessionError, DeviceId, ScreenSession, SessionMode, SessionToken, SessionsTools, texts,
};
use crate::phones::devices::{Phones, ScreenPasses};
use crate::phones::platforms::Platforms;
use crate::phones::port::{DeviceReading, DeviceSnapshot, Session, SessionError};
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
        let session = match self.screens.as_ref().filter(|_| self.has_screen(&device.id)) {
            Some(ScreenPasses { passes, last }) => {
                let opening = Opening { path: PATH, mode: mode.as_str(), lasts: *last };
                let issued = passes.issue(call, opening);
                issued.map_err(|error| SessionError::Refused(error.to_string().into())).and_then(Session::try_from)
            }
            None => {
                check_offer(CreateSessionArgs::MODE, &mode, &device.session_modes, |mode| mode.as_str())
                    .map_err(|what| CreateSessionError::NotOffered { what })?;
                issue(&self.platforms, device, mode).await
            }
        };
        let Session { token, url, expires_at } = session.map_err(|error| {
            tracing::warn!(request_id = call.request_id, %error, "no session was issued");
            CreateSessionError::UpstreamUnavailable { what: what(&error).into() }
        })?;
        let next_step = if url.is_some() { texts::SESSION_PAGE } else { texts::SESSION_TOKEN };
        let next_step = next_step.for_reader(call.caller.application.permissions);
        Ok(ScreenSession { device_id: device.id.clone(), token, url, mode, expires_at, next_step }.into())
    }
}

impl Phones {
    fn has_screen(&self, id: &DeviceId) -> bool {
        self.platforms.of(id).is_ok_and(|platform| platform.screen(id).is_some())
    }
}

impl TryFrom<Issued> for Session {
    type Error = SessionError;

    fn try_from(Issued { token, url, expires_at }: Issued) -> Result<Self, SessionError> {
        let token = SessionToken::new(token.expose()).map_err(|_| SessionError::Refused("its token is none".into()))?;
        Ok(Self { token: Secret::new(token), url: Some(url), expires_at: Some(expires_at) })
    }
}

async fn issue(platforms: &Platforms, device: &DeviceReading, mode: SessionMode) -> Result<Session, SessionError> {
    platforms.of(&device.id)?.session(&device.id, mode).await
}

fn what(error: &SessionError) -> &'static str {
    match error {
        SessionError::Unreachable(_) => "the platform could not be reached",
        SessionError::Refused(_) => "the platform issued no session",
    }
}
