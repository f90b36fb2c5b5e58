//! The screen page: pictures of a phone for all who watch it, and input of those who may touch it.
//!
//! A picture is taken only while somebody waits for one. Of those who wait for the same phone, one
//! takes it for all; if it leaves, another does. Start at [`Screens`].

pub(crate) mod frame;
mod viewers;

use super::contract::{DeviceId, SessionMode};
use super::devices::Phones;
use super::port::{Point, Screen, ScreenInput, Still, StillSize, Unreachable};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use toolwarrant::base::json;
use toolwarrant::page::{PageAnswer, PageError, PageFile, PageRequest, Pass, WebPage};
use toolwarrant::text::{Words, words};
use toolwarrant::{BoxFuture, Clock};
use viewers::Viewers;

pub const PATH: &str = "/screen";

/// Below the timeouts of common proxies.
const HELD: Duration = Duration::from_secs(20);

/// A swipe takes up to 5 s of it.
pub const INPUT_WITHIN: Duration = Duration::from_secs(12);

const SWIPE_MAX_MILLISECONDS: u16 = 5_000;

const FILES: [PageFile; 3] = [
    PageFile { name: "", content_type: "text/html; charset=utf-8", text: include_str!("screens/page/screen.html") },
    PageFile {
        name: "screen.css",
        content_type: "text/css; charset=utf-8",
        text: include_str!("screens/page/screen.css"),
    },
    PageFile {
        name: "screen.js",
        content_type: "text/javascript; charset=utf-8",
        text: include_str!("screens/page/screen.js"),
    },
];

const INPUTS: &str = "an input is JSON, one of {\"touch\":{\"x\":1,\"y\":2}}, {\"swipe\":{\"from\":{\"x\":1,\"y\":2},\"to\":\
                      {\"x\":3,\"y\":4},\"milliseconds\":300}}, {\"key\":\"back\"} and {\"text\":\"of 1 to 200 characters\"}";

pub struct Screens {
    phones: Arc<Phones>,
    clock: Clock,
    viewers: Viewers,
}

impl Screens {
    #[must_use]
    pub fn new(phones: Arc<Phones>, clock: Clock) -> Self {
        Self { phones, clock, viewers: Viewers::default() }
    }

    /// Describes the session to the page.
    async fn describe(&self, pass: &Pass, id: &DeviceId) -> PageAnswer {
        let found = self.phones.find(id).await.ok();
        let body = json!({
            "name": found.as_ref().map_or(id.as_str(), |phone| phone.name.as_str()),
            "device_id": id,
            "mode": pass.mode(),
            "expires_at": pass.expires_at(),
            "now": self.clock.now(),
        });
        PageAnswer::Content { content_type: "application/json", number: None, body: body.to_string().into() }
    }

    async fn show(&self, pass: &Pass, id: &DeviceId, query: &str) -> Result<PageAnswer, PageError> {
        let after = query.strip_prefix("after=").and_then(|number| number.parse().ok());
        let after = after
            .ok_or_else(|| PageError::Malformed("the query is `after=`, and the number of the last picture".into()))?;
        let place = self.viewers.enter(id, pass.application()).map_err(PageError::TooMany)?;
        let reader = self.phones.readers.of(id);
        let newer = reader.wait_for_newer(self.screen(id)?, id, after);
        let newer = self.clock.before(self.clock.now().plus(HELD), newer);
        let newer = tokio::select! {
            why = place.wait_for_loss() => return Err(PageError::TooMany(why)),
            newer = newer => newer,
        };
        match newer {
            None => Ok(PageAnswer::Nothing),
            Some(Ok(shown)) => {
                pass.note_read();
                let body = shown.still.bytes().clone();
                Ok(PageAnswer::Content { content_type: Still::CONTENT_TYPE, number: Some(shown.number), body })
            }
            Some(Err(error)) => match error.reason() {
                Some(why) => Err(unavailable(why)),
                None => Err(self.explain(id, "the phone does not answer").await),
            },
        }
    }

    async fn take(&self, pass: &Pass, id: &DeviceId, body: &[u8]) -> Result<PageAnswer, PageError> {
        if pass.mode() != SessionMode::Control.as_str() {
            return Err(PageError::Forbidden("this session may watch the screen, and send no input".into()));
        }
        let input: ScreenInput = json::read_bytes(body).map_err(|_| PageError::Malformed(INPUTS.into()))?;
        check(&input, self.phones.readers.of(id).size()).map_err(PageError::Malformed)?;
        pass.note_input();
        let sent = self.clock.before(self.clock.now().plus(INPUT_WITHIN), self.screen(id)?.input(id, &input));
        let sent = sent.await.unwrap_or_else(|| Err(Unreachable("it did not answer in time".into()).into()));
        let Err(error) = sent else { return Ok(PageAnswer::Nothing) };
        match error.reason() {
            Some(why) => Err(PageError::Malformed(why.into())),
            None => {
                tracing::debug!(device_id = id.as_str(), %error, "an input did not reach a phone");
                Err(self.explain(id, "the phone may not have taken the input: look at it before you repeat it").await)
            }
        }
    }

    fn screen(&self, id: &DeviceId) -> Result<&dyn Screen, PageError> {
        let platform = self.phones.platforms.of(id).ok();
        platform
            .and_then(|platform| platform.screen(id))
            .ok_or_else(|| unavailable("this phone has no screen any more"))
    }

    /// Says why the phone offers no session, if that is known.
    async fn explain(&self, id: &DeviceId, otherwise: &'static str) -> PageError {
        let found = self.phones.find(id).await.ok();
        let why = found.as_ref().and_then(|phone| phone.offers.session.refusal());
        unavailable(why.unwrap_or(otherwise))
    }
}

impl WebPage for Screens {
    fn path(&self) -> &'static str {
        PATH
    }

    fn files(&self) -> &'static [PageFile] {
        &FILES
    }

    fn answer<'a>(&'a self, pass: &'a Pass, request: PageRequest<'a>) -> BoxFuture<'a, Result<PageAnswer, PageError>> {
        Box::pin(async move {
            let id = DeviceId::new(pass.target()).map_err(|_| PageError::NoName)?;
            match request {
                PageRequest::Read { name: "session", .. } => Ok(self.describe(pass, &id).await),
                PageRequest::Read { name: "still", query } => self.show(pass, &id, query).await,
                PageRequest::Input { name: "input", body } => self.take(pass, &id, body).await,
                PageRequest::Read { .. } | PageRequest::Input { .. } => Err(PageError::NoName),
            }
        })
    }
}

fn unavailable(why: &'static str) -> PageError {
    PageError::Unavailable(why.into())
}

fn check(input: &ScreenInput, size: Option<StillSize>) -> Result<(), Words> {
    let points = match input {
        ScreenInput::Touch(point) => vec![point],
        ScreenInput::Swipe { milliseconds, .. } if *milliseconds > SWIPE_MAX_MILLISECONDS => {
            return Err(words!["a swipe takes at most ", u64::from(SWIPE_MAX_MILLISECONDS), " milliseconds"]);
        }
        ScreenInput::Swipe { from, to, .. } => vec![from, to],
        ScreenInput::Key(_) | ScreenInput::Text(_) | ScreenInput::Open(_) => return Ok(()),
    };
    let StillSize { width, height } = size.ok_or("no picture was shown yet, so a point has no meaning")?;
    match points.into_iter().all(|Point { x, y }| *x < width && *y < height) {
        true => Ok(()),
        false => Err(words!["a point lies within the picture, which has ", width, " by ", height, " pixels"]),
    }
}
