//! The handlers of an agent that sees and touches: `spec/tools/screen.toml`.
//!
//! Pictures before and after an input show what was seen. They do not show a cause, so no answer
//! names one. An input is sent once. Start at [`ScreenAct::carry_out`].

use crate::phones::contract::numbers::SEEN_SECONDS;
use crate::phones::contract::{
    DeviceId, ElementsArgs, ElementsError, Gesture, InputSeen, LookArgs, LookError, OpenArgs, OpenError, PressArgs,
    PressError, PressedKey, ScreenElements, ScreenPicture, ScreenTools, SeenChange, Side, TouchArgs, TouchError,
    TypeTextArgs, TypeTextError, UnreadableReason, texts,
};
use crate::phones::devices::Phones;
use crate::phones::port::{
    DeviceSnapshot, ELEMENTS_MAX, OpenTarget, Point, Screen, ScreenError, ScreenInput, ScreenKey, StillSize, Typed,
};
use crate::phones::reader::{NumberedStill, Reader};
use crate::phones::screens::INPUT_WITHIN;
use crate::phones::screens::frame::{SizedPicture, fit};
use std::sync::Arc;
use std::time::Duration;
use toolwarrant::handler::{Call, Picture, Reply, Target};
use toolwarrant::text::{Remark, Words, words};

/// After an input, a change is looked for at least so long.
const WATCHED: Duration = Duration::from_secs(SEEN_SECONDS as u64);

/// Other lists of a phone take up to 10 s until it comes to rest.
const ELEMENTS_WITHIN: Duration = Duration::from_secs(16);

const LONG_MILLISECONDS: u16 = 800;
const SWIPE_MILLISECONDS: u16 = 300;

type Device = Target<Arc<DeviceSnapshot>>;

/// The reason that a tool of the screen did nothing, or that nobody knows if it did.
enum Refusal {
    InvalidArgument(Words),
    NotOffered(Words),
    /// With the task of the write.
    DeviceBusy(Words),
    ScreenUnreadable(Words),
    OtherPicture(Words),
    Internal(Remark),
}

/// Lets a tool answer with the refusals that it declares.
macro_rules! declare_refusals {
    ($error:ident: $($refusal:ident)|* $(, $busy:ident)? $(; $others:pat)?) => {
        impl From<Refusal> for $error {
            fn from(refusal: Refusal) -> Self {
                match refusal {
                    $(Refusal::$refusal(what) => Self::$refusal { what },)*
                    $(Refusal::$busy(task_id) => Self::$busy { what: BUSY.into(), task_id },)?
                    Refusal::Internal(why) => Self::Internal(why),
                    $($others => Self::Internal("a refusal that this tool does not declare".into()),)?
                }
            }
        }
    };
}

const BUSY: &str = "a write on this device is in flight, so no input was sent";

declare_refusals!(LookError: NotOffered | ScreenUnreadable; _);
declare_refusals!(ElementsError: NotOffered | ScreenUnreadable; _);
declare_refusals!(TouchError: InvalidArgument | NotOffered | ScreenUnreadable | OtherPicture, DeviceBusy);
declare_refusals!(TypeTextError: InvalidArgument | NotOffered, DeviceBusy; _);
declare_refusals!(PressError: NotOffered, DeviceBusy; _);
declare_refusals!(OpenError: InvalidArgument | NotOffered, DeviceBusy; _);

impl ScreenTools for Phones {
    async fn look(&self, _: &Call<'_>, device: &Device, args: LookArgs) -> Result<Reply<ScreenPicture>, LookError> {
        let longest = u32::try_from(args.longest_side.get()).unwrap_or_default();
        let SizedPicture { size, png, .. } = self.look_at(&device.id, longest).await?;
        let picture = Picture::read(png).await.map_err(LookError::Internal)?;
        let (width, height) = sides(size)?;
        Ok(ScreenPicture { device_id: args.device_id, state: device.state(), width, height, picture }.into())
    }

    async fn elements(
        &self,
        call: &Call<'_>,
        device: &Device,
        args: ElementsArgs,
    ) -> Result<Reply<ScreenElements>, ElementsError> {
        let SizedPicture { size, .. } = self.look_at(&device.id, u32::MAX).await?;
        let (width, height) = sides(size)?;
        let (reader, screen) = (self.readers.of(&device.id), self.screen_of(&device.id)?);
        let listed = async {
            let _turn = reader.listing.lock().await;
            screen.elements(&device.id).await
        };
        let listed = self.clock.before(self.clock.now().plus(ELEMENTS_WITHIN), listed).await;
        let (mut elements, at_rest) = match listed.unwrap_or(Ok(None)) {
            Ok(Some(elements)) => (elements, true),
            Ok(None) => (Vec::new(), false),
            Err(error) => return Err(Refusal::unreadable(&error).into()),
        };
        let next_step = match at_rest {
            false => Some(texts::ELEMENTS_MOVING),
            true => (elements.len() > ELEMENTS_MAX).then_some(texts::ELEMENTS_MORE),
        };
        elements.truncate(ELEMENTS_MAX);
        let next_step = next_step.map(|text| text.for_reader(call.caller.application.permissions));
        Ok(ScreenElements { device_id: args.device_id, width, height, elements, next_step }.into())
    }

    async fn touch(&self, call: &Call<'_>, device: &Device, args: TouchArgs) -> Result<Reply<InputSeen>, TouchError> {
        let act = ScreenAct { phones: self, call, id: &device.id };
        Ok(act.carry_out(|screen| aim(&args, screen)).await?)
    }

    async fn type_text(
        &self,
        call: &Call<'_>,
        device: &Device,
        args: TypeTextArgs,
    ) -> Result<Reply<InputSeen>, TypeTextError> {
        let typed = Typed::new(args.text.expose().as_str()).map(ScreenInput::Text);
        let typed =
            typed.ok_or(Refusal::InvalidArgument(words!["`", TypeTextArgs::TEXT, "` has a control character"]))?;
        Ok(ScreenAct { phones: self, call, id: &device.id }.carry_out(|_| Ok(typed)).await?)
    }

    async fn press(&self, call: &Call<'_>, device: &Device, args: PressArgs) -> Result<Reply<InputSeen>, PressError> {
        let key = ScreenInput::Key(match args.key {
            PressedKey::Back => ScreenKey::Back,
            PressedKey::Home => ScreenKey::Home,
            PressedKey::Recents => ScreenKey::Recents,
            PressedKey::Enter => ScreenKey::Enter,
            PressedKey::Wake => ScreenKey::Wake,
        });
        Ok(ScreenAct { phones: self, call, id: &device.id }.carry_out(|_| Ok(key)).await?)
    }

    async fn open(&self, call: &Call<'_>, device: &Device, args: OpenArgs) -> Result<Reply<InputSeen>, OpenError> {
        let what = OpenTarget::parse(args.what.expose().as_str()).map(ScreenInput::Open);
        let why = words!["`", OpenArgs::WHAT, "` is neither the package of an app nor an https address"];
        let what = what.ok_or(Refusal::InvalidArgument(why))?;
        Ok(ScreenAct { phones: self, call, id: &device.id }.carry_out(|_| Ok(what)).await?)
    }
}

impl Phones {
    fn screen_of(&self, id: &DeviceId) -> Result<&dyn Screen, Refusal> {
        let screen = self.platforms.of(id).ok().and_then(|platform| platform.screen(id));
        screen.ok_or(Refusal::NotOffered("its platform shows this screen on a page of its own alone".into()))
    }

    async fn look_at(&self, id: &DeviceId, longest: u32) -> Result<SizedPicture, Refusal> {
        let screen = self.screen_of(id)?;
        let shown = self.readers.of(id).take(screen, id).await.map_err(|error| Refusal::unreadable(&error))?;
        let frame =
            SizedPicture::of(shown.still.clone(), longest).await.map_err(|error| Refusal::unreadable(&error))?;
        match explain_black(screen, id, &frame).await {
            None => Ok(frame),
            Some(reason) => Err(Refusal::ScreenUnreadable(words!["the picture is black: `", reason.as_str(), "`"])),
        }
    }
}

/// One input, and the pictures around it.
struct ScreenAct<'a> {
    phones: &'a Phones,
    call: &'a Call<'a>,
    id: &'a DeviceId,
}

type Seeing = Result<Arc<NumberedStill>, ScreenError>;

impl ScreenAct<'_> {
    /// Takes two pictures, sends the input that `aim` makes for their size, and looks for a change.
    async fn carry_out(
        self,
        aim: impl FnOnce(Result<StillSize, &ScreenError>) -> Result<ScreenInput, Refusal>,
    ) -> Result<Reply<InputSeen>, Refusal> {
        let Self { phones, call, id } = self;
        let (screen, reader, clock) = (phones.screen_of(id)?, phones.readers.of(id), &phones.clock);
        self.refuse_if_busy().await?;
        let first = reader.take(screen, id).await;
        let before = reader.take(screen, id).await;
        let input = aim(before.as_ref().map(|shown| shown.still.size()))?;
        self.refuse_if_busy().await?;
        let sent = clock.before(clock.now().plus(INPUT_WITHIN), screen.input(id, &input)).await;
        match sent {
            Some(Ok(())) => {}
            Some(Err(ScreenError::Refused(why))) => return Err(Refusal::NotOffered(why.into())),
            Some(Err(error)) => return Err(Refusal::Internal(error.to_string().into())),
            None => return Err(Refusal::Internal("the phone did not take an input in time".into())),
        }
        let moved = matches!((&first, &before), (Ok(first), Ok(before)) if first.number != before.number);
        let unseen = before.as_ref().err().filter(|error| !matches!(error, ScreenError::Asleep)).map(reason);
        let after = self.watch(screen, &reader, (&before, moved)).await;
        let (seen, reason) = match self.examine(screen, &after).await {
            Err(reason) => (SeenChange::Unreadable, Some(reason)),
            Ok(_) if unseen.is_some() => (SeenChange::Unreadable, unseen),
            Ok(_) if moved => (SeenChange::Moving, None),
            Ok(number) if before.is_ok_and(|before| before.number == number) => (SeenChange::Unchanged, None),
            Ok(_) => (SeenChange::Changed, None),
        };
        let next_step = match (seen, reason) {
            (SeenChange::Changed, _) => texts::SEEN_CHANGED,
            (SeenChange::Unchanged, _) => texts::SEEN_UNCHANGED,
            (SeenChange::Moving, _) => texts::SEEN_MOVING,
            (SeenChange::Unreadable, Some(UnreadableReason::Asleep)) => texts::SEEN_ASLEEP,
            (SeenChange::Unreadable, _) => texts::SEEN_UNREADABLE,
        };
        let next_step = next_step.for_reader(call.caller.application.permissions);
        Ok(InputSeen { device_id: id.clone(), seen, reason, next_step }.into())
    }

    /// A write can restart the phone while it is touched.
    async fn refuse_if_busy(&self) -> Result<(), Refusal> {
        match self.call.find_write().await {
            Ok(None) => Ok(()),
            Ok(Some(task_id)) => Err(Refusal::DeviceBusy(task_id)),
            Err(error) => Err(Refusal::Internal(error.to_string().into())),
        }
    }

    /// Returns the first picture that differs, or the last one. If the picture moved before, the
    /// next one shows no more than any other.
    async fn watch(&self, screen: &dyn Screen, reader: &Reader, (before, moved): (&Seeing, bool)) -> Seeing {
        let clock = &self.phones.clock;
        let until = clock.now().plus(WATCHED);
        loop {
            let after = reader.take(screen, self.id).await;
            let is_other = match (before, &after) {
                (Ok(before), Ok(after)) => before.number != after.number,
                (before, after) => before.is_err() && after.is_ok(),
            };
            if is_other || (moved && after.is_ok()) || clock.now() >= until {
                return after;
            }
        }
    }

    /// Returns the number of a picture that can be seen.
    async fn examine(&self, screen: &dyn Screen, shown: &Seeing) -> Result<u64, UnreadableReason> {
        let shown = shown.as_ref().map_err(reason)?;
        let frame = SizedPicture::of(shown.still.clone(), u32::MAX).await.map_err(|error| reason(&error))?;
        explain_black(screen, self.id, &frame).await.map_or(Ok(shown.number), Err)
    }
}

/// Returns why a picture is black, if it is.
async fn explain_black(screen: &dyn Screen, id: &DeviceId, frame: &SizedPicture) -> Option<UnreadableReason> {
    if !frame.is_black {
        return None;
    }
    Some(match screen.sleeps(id).await {
        Ok(true) => UnreadableReason::Asleep,
        Ok(false) => UnreadableReason::Secure,
        Err(_) => UnreadableReason::Away,
    })
}

/// Makes an input of points in a picture of this screen, which may have been made smaller.
fn aim(args: &TouchArgs, screen: Result<StillSize, &ScreenError>) -> Result<ScreenInput, Refusal> {
    let screen = screen.map_err(Refusal::unreadable)?;
    let side = |side: &Side| u32::try_from(side.get()).unwrap_or_default();
    let asked = StillSize { width: side(&args.width), height: side(&args.height) };
    if fit(screen, asked.width.max(asked.height)) != asked {
        let StillSize { width, height } = screen;
        let what = words![
            "the screen has ",
            width,
            " x ",
            height,
            " pixels, and no picture of it ",
            asked.width,
            " x ",
            asked.height
        ];
        return Err(Refusal::OtherPicture(what));
    }
    let point = |x: i64, y: i64| {
        let scale = |at: i64, asked: u32, side: u32| {
            let at = u32::try_from(at).ok().filter(|at| *at < asked)?;
            u32::try_from((u64::from(at) * 2 + 1) * u64::from(side) / (u64::from(asked) * 2)).ok()
        };
        let point = scale(x, asked.width, screen.width).zip(scale(y, asked.height, screen.height));
        let point = point.map(|(x, y)| Point { x, y });
        point.ok_or(Refusal::InvalidArgument("a point lies outside of the picture".into()))
    };
    let from = point(args.x.get(), args.y.get())?;
    let swipe = |to, milliseconds| ScreenInput::Swipe { from, to, milliseconds };
    match (args.gesture, &args.to_x, &args.to_y) {
        (Gesture::Tap, None, None) => Ok(ScreenInput::Touch(from)),
        (Gesture::Long, None, None) => Ok(swipe(from, LONG_MILLISECONDS)),
        (Gesture::Swipe, Some(x), Some(y)) => Ok(swipe(point(x.get(), y.get())?, SWIPE_MILLISECONDS)),
        _ => {
            let why = words![
                "a swipe has `",
                TouchArgs::TO_X,
                "` and `",
                TouchArgs::TO_Y,
                "`, and no other gesture has them"
            ];
            Err(Refusal::InvalidArgument(why))
        }
    }
}

fn sides(StillSize { width, height }: StillSize) -> Result<(Side, Side), Refusal> {
    let sides = Side::new(width.into()).ok().zip(Side::new(height.into()).ok());
    sides.ok_or(Refusal::Internal("a picture has no size".into()))
}

fn reason(error: &ScreenError) -> UnreadableReason {
    match error {
        ScreenError::Unreachable(_) => UnreadableReason::Away,
        ScreenError::Asleep => UnreadableReason::Asleep,
        ScreenError::Slow => UnreadableReason::Slow,
        ScreenError::Refused(_) => UnreadableReason::Broken,
    }
}

impl Refusal {
    fn unreadable(error: &ScreenError) -> Self {
        Self::ScreenUnreadable(error.reason().unwrap_or("the phone does not answer").into())
    }
}
