//! Pictures of phones behind an adb server, and input for them.
//!
//! Other work on a phone goes first: a picture is not begun meanwhile, and one that is being taken
//! is dropped and begun again. An input waits on the phone for a line, which is sent once the phone
//! has accepted it: a phone that takes it late does nothing. Typed text is in these lines, because
//! phones log their commands. Start at [`AdbScreen`].

use super::other_work::OtherWork;
use super::phone::AdbPhones;
use super::wire::STREAM_MAX;
use crate::phones::contract::DeviceId;
use crate::phones::port::{InputError, Point, Query, Screen, ScreenInput, ScreenKey, Still, Unreachable};
use std::sync::Arc;
use std::time::Duration;
use toolwarrant::{BoxFuture, Clock, Timestamp};

const STILL_WITHIN: Duration = Duration::from_secs(5);

/// A swipe takes up to 5 s of it, and `input` of old phones 1 s for each command.
const INPUT_WITHIN: Duration = Duration::from_secs(10);

/// In bytes, with the heads of frames of 320 bytes or more.
const PICTURE_MAX: usize = Still::BYTES_MAX + Still::BYTES_MAX / 64;

/// Types each line of its standard input until an empty one.
const TYPE: &str = "while read -r t&&[ \"$t\" ];do input text \"$t\" </dev/null||exit 1;done";

pub(super) struct AdbScreen {
    pub(super) phones: Arc<AdbPhones>,
    pub(super) work: Arc<OtherWork>,
    pub(super) clock: Clock,
}

impl AdbScreen {
    async fn run_on(
        &self,
        id: &DeviceId,
        command: (&str, &[u8]),
        bounds: (usize, Timestamp),
    ) -> Result<Vec<u8>, Unreachable> {
        match self.phones.find(id)?.exchange(command, bounds).await? {
            (output, 0) => Ok(output),
            (_, status) => Err(Unreachable(format!("a command for the screen ended with status {status}").into())),
        }
    }
}

impl Screen for AdbScreen {
    fn still<'a>(&'a self, id: &'a DeviceId) -> Query<'a, Still> {
        Box::pin(async move {
            let until = self.clock.now().plus(STILL_WITHIN);
            let take = async {
                loop {
                    self.work.wait_until(false, id).await;
                    tokio::select! {
                        biased;
                        () = self.work.wait_until(true, id) => {}
                        picture = self.run_on(id, ("screencap -p", b""), (PICTURE_MAX, until)) => {
                            return Still::from_outside(picture?);
                        }
                    }
                }
            };
            let late = || Unreachable("other work on the phone took the time of the picture".into());
            self.clock.before(until, take).await.ok_or_else(late)?
        })
    }

    fn input<'a>(&'a self, id: &'a DeviceId, input: &'a ScreenInput) -> BoxFuture<'a, Result<(), InputError>> {
        Box::pin(async move {
            let once = |command: String| (format!("read go&&input {command}"), "\n".to_owned());
            let (script, lines) = match input {
                ScreenInput::Touch(Point { x, y }) => once(format!("tap {x} {y}")),
                ScreenInput::Swipe { from, to, milliseconds } => {
                    once(format!("swipe {} {} {} {} {milliseconds}", from.x, from.y, to.x, to.y))
                }
                ScreenInput::Key(key) => once(format!("keyevent {}", code(*key))),
                ScreenInput::Text(typed) => (TYPE.to_owned(), lines(typed.as_str())?),
            };
            let until = self.clock.now().plus(INPUT_WITHIN);
            Ok(self.run_on(id, (&script, lines.as_bytes()), (STREAM_MAX, until)).await.map(drop)?)
        })
    }
}

/// Source: Android's `KeyEvent`.
fn code(key: ScreenKey) -> u8 {
    match key {
        ScreenKey::Home => 3,
        ScreenKey::Back => 4,
        ScreenKey::Up => 19,
        ScreenKey::Down => 20,
        ScreenKey::Left => 21,
        ScreenKey::Right => 22,
        ScreenKey::Tab => 61,
        ScreenKey::Enter => 66,
        ScreenKey::Backspace => 67,
        ScreenKey::Recents => 187,
    }
}

/// Returns the lines for [`TYPE`]. `input text` makes a blank of each `%s`, and has no other way to
/// write these two characters than one after the other.
fn lines(typed: &str) -> Result<String, InputError> {
    match typed.is_ascii() {
        true => Ok(typed.replace("%s", "%\ns").replace(' ', "%s") + "\n\n"),
        false => Err(InputError::Refused("this phone takes only the characters of ASCII")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_of_ascii_is_typed_as_it_is_and_no_other() {
        for text in ["a b", "%s", "100% sure", "%%s%s s", " % %s ", "it's $(id);\\n\"`"] {
            let lines = lines(text).unwrap();
            let typed: String = lines.lines().map(|line| line.replace("%s", " ")).collect();
            assert_eq!(typed, text);
            // Otherwise a line would be the last, or the shell would cut it.
            let body = lines.strip_suffix("\n\n").unwrap();
            assert!(body.lines().all(|line| !line.is_empty() && !line.contains(char::is_whitespace)), "{lines:?}");
        }
        assert!(matches!(lines("pässword"), Err(InputError::Refused(_))));
    }
}
