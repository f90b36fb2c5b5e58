//! Pictures of phones behind an adb server, and input for them.
//!
//! Other work on a phone goes first: a picture is not begun meanwhile, and one that is being taken
//! is dropped and begun again. An input waits on the phone for a line, which is sent once the phone
//! has accepted it: a phone that takes it late does nothing. Typed text is in these lines, because
//! phones log their commands. If there is no picture, the phone is asked if it sleeps. Start at
//! [`AdbScreen`].

use super::elements;
use super::other_work::OtherWork;
use super::phone::AdbPhones;
use super::wire::STREAM_MAX;
use crate::phones::contract::{DeviceId, ScreenElement};
use crate::phones::port::{OpenTarget, Point, Screen, ScreenError, ScreenInput, ScreenKey, Still, Unreachable};
use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;
use toolwarrant::{Clock, Timestamp};

/// Of the time of a picture, for the reason that there is none.
const REASON_WITHIN: Duration = Duration::from_secs(2);

/// A swipe takes up to 5 s of it, and `input` of old phones 1 s for each command.
const INPUT_WITHIN: Duration = Duration::from_secs(10);

/// Until the screen rests, and for the list.
const LIST_WITHIN: Duration = Duration::from_secs(15);

/// In bytes. A list of a full screen has 100 KiB.
const LIST_MAX: usize = 1 << 20;

/// In bytes, with the heads of frames of 320 bytes or more.
const PICTURE_MAX: usize = Still::BYTES_MAX + Still::BYTES_MAX / 64;

/// Takes no picture, which a sleeping phone may refuse, too.
const LOOK: &str = "case $(dumpsys power) in *mWakefulness=Asleep*|*mWakefulness=Dozing*)exit 46;;esac";
const SLEEPS: u8 = 46;

/// Old phones report success for a command that they do not know.
const SELECT_ALL: &str = "read go&&case $(input 2>&1) in *keycombination*)input keycombination 113 29;;*)exit 47;;esac";
const LACKS_COMMAND: u8 = 47;

/// A shell's status for a program that it does not find.
const NO_PROGRAM: u8 = 127;

const BUSY: &str = "the server reads or operates the phone, and takes pictures again after that";
const FAILED: &str = "the `screencap` of the phone fails";
const NO_SCREENCAP: &str = "the phone has no `screencap`, which takes pictures";
const NO_SELECT_ALL: &str = "this phone has no command that selects all";

const NO_LIST: &str = "the `uiautomator` of the phone lists nothing";
const NO_APP: &str = "the phone has no such app, or none for such an address";

/// A list needs a file, which is removed however the shell ends: adbd hangs up if the caller goes
/// away. It fails on a screen that does not come to rest within 10 s.
const LIST: &str = "f=/data/local/tmp/.cloudphone-$$;trap 'rm -f $f' 0;trap exit 1;\
                    case $(uiautomator dump $f 2>&1) in *idle*)exit 48;;esac;cat $f";
const MOVES: u8 = 48;

/// The line is no part of a command, so the shell does not read it as one.
const OPEN_APP: &str = "read -r t&&monkey -p \"$t\" -c android.intent.category.LAUNCHER 1 </dev/null";
const OPEN_ADDRESS: &str = "read -r t&&case $(am start -a android.intent.action.VIEW -d \"$t\" </dev/null 2>&1) in \
                            *\"Error: \"*)exit 1;;esac";

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
    ) -> Result<(Vec<u8>, u8), Unreachable> {
        self.phones.find(id)?.exchange(command, bounds).await
    }

    /// Takes a picture when no other work on the phone is under way.
    async fn take(&self, id: &DeviceId, until: Timestamp) -> Result<Still, ScreenError> {
        let (output, status) = loop {
            self.work.wait_until(false, id).await;
            tokio::select! {
                biased;
                () = self.work.wait_until(true, id) => {}
                ended = self.run_on(id, ("screencap -p", b""), (PICTURE_MAX, until)) => break ended?,
            }
        };
        let why = match status {
            0 => match Still::from_outside(output) {
                Err(why) => why,
                still => return still,
            },
            NO_PROGRAM => return Err(ScreenError::Refused(NO_SCREENCAP)),
            _ => ScreenError::Refused(FAILED),
        };
        Err(self.explain(id, why, until).await)
    }

    /// Returns `awake` as the reason of a phone that answers and does not sleep.
    async fn explain(&self, id: &DeviceId, awake: ScreenError, until: Timestamp) -> ScreenError {
        match self.run_on(id, (LOOK, b""), (STREAM_MAX, until)).await {
            Ok((_, SLEEPS)) => ScreenError::Asleep,
            Ok(_) => awake,
            Err(error) => error.into(),
        }
    }
}

#[async_trait]
impl Screen for AdbScreen {
    async fn still(&self, id: &DeviceId) -> Result<Still, ScreenError> {
        let until = self.clock.now().plus(Still::WITHIN);
        let give_up = async {
            self.clock.sleep_until(until.minus(REASON_WITHIN)).await;
            let why = match self.work.is_under_way(id) {
                true => ScreenError::Refused(BUSY),
                false => self.explain(id, ScreenError::Slow, until).await,
            };
            self.clock.sleep_until(until).await;
            why
        };
        tokio::select! {
            biased;
            why = give_up => Err(why),
            ended = self.take(id, until) => ended,
        }
    }

    async fn input(&self, id: &DeviceId, input: &ScreenInput) -> Result<(), ScreenError> {
        let once = |command: String| (format!("read go&&input {command}"), "\n".to_owned());
        let (script, lines) = match input {
            ScreenInput::Touch(Point { x, y }) => once(format!("tap {x} {y}")),
            ScreenInput::Swipe { from, to, milliseconds } => {
                once(format!("swipe {} {} {} {} {milliseconds}", from.x, from.y, to.x, to.y))
            }
            ScreenInput::Key(ScreenKey::SelectAll) => (SELECT_ALL.to_owned(), "\n".to_owned()),
            ScreenInput::Key(key) => once(format!("keyevent {}", code(*key))),
            ScreenInput::Text(typed) => (TYPE.to_owned(), lines(typed.as_str())?),
            ScreenInput::Open(OpenTarget::App(package)) => (OPEN_APP.to_owned(), format!("{package}\n")),
            ScreenInput::Open(OpenTarget::Address(url)) => (OPEN_ADDRESS.to_owned(), format!("{url}\n")),
        };
        let until = self.clock.now().plus(INPUT_WITHIN);
        match self.run_on(id, (&script, lines.as_bytes()), (STREAM_MAX, until)).await? {
            (_, 0) => Ok(()),
            (_, LACKS_COMMAND) => Err(ScreenError::Refused(NO_SELECT_ALL)),
            // Both say in this way that they found nothing to open.
            _ if matches!(input, ScreenInput::Open(_)) => Err(ScreenError::Refused(NO_APP)),
            (_, status) => Err(Unreachable(format!("an input ended with status {status}").into()).into()),
        }
    }

    async fn elements(&self, id: &DeviceId) -> Result<Option<Vec<ScreenElement>>, ScreenError> {
        let until = self.clock.now().plus(LIST_WITHIN);
        match self.run_on(id, (LIST, b""), (LIST_MAX, until)).await? {
            (_, MOVES) => Ok(None),
            (list, 0) => elements::parse(&list).map(Some).ok_or(ScreenError::Refused(NO_LIST)),
            _ => Err(ScreenError::Refused(NO_LIST)),
        }
    }

    async fn sleeps(&self, id: &DeviceId) -> Result<bool, Unreachable> {
        let until = self.clock.now().plus(REASON_WITHIN);
        Ok(self.run_on(id, (LOOK, b""), (STREAM_MAX, until)).await?.1 == SLEEPS)
    }
}

/// Source: Android's `KeyEvent`.
fn code(key: ScreenKey) -> u8 {
    match key {
        // With Ctrl, which has the code 113.
        ScreenKey::SelectAll => 29,
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
        ScreenKey::VolumeUp => 24,
        ScreenKey::VolumeDown => 25,
        ScreenKey::Power => 26,
        ScreenKey::Wake => 224,
    }
}

/// Returns the lines for [`TYPE`]. `input text` makes a blank of each `%s`, and has no other way to
/// write these two characters than one after the other.
fn lines(typed: &str) -> Result<String, ScreenError> {
    match typed.is_ascii() {
        true => Ok(typed.replace("%s", "%\ns").replace(' ', "%s") + "\n\n"),
        false => Err(ScreenError::Refused("this phone takes only the characters of ASCII")),
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
        assert!(matches!(lines("pässword"), Err(ScreenError::Refused(_))));
    }
}
