//! The handler that issues screen sessions: `spec/tools/sessions.toml`.

use super::check_offer;
use crate::phones::contract::{
    CreateSessionArgs, CreateSessionError, ScreenSession, SessionMode, SessionsTools, texts,
};
use crate::phones::devices::Phones;
use crate::phones::platforms::Platforms;
use crate::phones::port::{DeviceReading, DeviceSnapshot, Session, SessionError};
use std::sync::Arc;
use toolwarrant::contract::PermissionSet;
use toolwarrant::handler::{Call, Reply, Target};

impl SessionsTools for Phones {
    async fn create_session(
        &self,
        call: &Call<'_>,
        device: &Target<Arc<DeviceSnapshot>>,
        args: CreateSessionArgs,
    ) -> Result<Reply<ScreenSession>, CreateSessionError> {
        let CreateSessionArgs { device_id: _, mode } = args;
        check_offer(CreateSessionArgs::MODE, &mode, &device.session_modes, |mode| mode.as_str())
            .map_err(|what| CreateSessionError::NotOffered { what })?;
        let reader = call.caller.application.permissions;
        issue(&self.platforms, device, mode, reader).await.map(Reply::from).map_err(|error| {
            tracing::warn!(request_id = call.request_id, %error, "no session was issued");
            CreateSessionError::UpstreamUnavailable { what: what(&error).into() }
        })
    }
}

async fn issue(
    platforms: &Platforms,
    device: &DeviceReading,
    mode: SessionMode,
    reader: PermissionSet,
) -> Result<ScreenSession, SessionError> {
    let Session { token, url, expires_at } = platforms.of(&device.id)?.session(&device.id, mode).await?;
    let next_step = if url.is_some() { texts::SESSION_PAGE } else { texts::SESSION_TOKEN };
    let next_step = next_step.for_reader(reader);
    Ok(ScreenSession { device_id: device.id.clone(), token, url, mode, expires_at, next_step })
}

fn what(error: &SessionError) -> &'static str {
    match error {
        SessionError::Unreachable(_) => "the platform could not be reached",
        SessionError::Refused(_) => "the platform issued no session",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::phones::port::ReadPort;
    use crate::phones::testing::name;
    use crate::platforms::simulator::Sim;
    use toolwarrant::{Clock, Timestamp};

    #[tokio::test]
    async fn a_session_names_its_phone_and_mode_and_passes_on_what_the_platform_gave() {
        let sim = Sim::new(5, 12, Clock::manual(Timestamp(0)), &[0; 32]);
        let cast = sim.list_page(None, 12).unwrap();
        let platforms = Platforms::default().with(name("phone"), Arc::new(sim));
        for (index, expires_at) in [(0, Some(Timestamp(600_000))), (10, None)] {
            let session = issue(&platforms, &cast[index], SessionMode::View, PermissionSet::NONE).await.unwrap();
            assert_eq!((&session.device_id, session.mode), (&cast[index].id, SessionMode::View));
            assert_eq!((session.url, session.expires_at), (None, expires_at));
            assert_eq!(session.token.expose().as_str().len(), 64);
        }
    }

    #[tokio::test]
    async fn a_platform_that_issues_no_session_is_not_quoted() {
        let sim = Sim::new(5, 12, Clock::manual(Timestamp(0)), &[0; 32]);
        let cast = sim.list_page(None, 12).unwrap();
        let platforms = Platforms::default().with(name("phone"), Arc::new(sim));
        let refused = issue(&platforms, &cast[6], SessionMode::View, PermissionSet::NONE).await.unwrap_err();
        assert!(refused.to_string().contains("no screen stream"));
        assert_eq!(what(&refused), "the platform issued no session");
    }
}
