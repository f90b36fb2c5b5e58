//! The names of all switches, their values and their effects.

use crate::display::Display;
use serde_json::Value;

#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) switch: Switch,
    pub(crate) name: &'static str,
    pub(crate) when: When,
    pub(crate) value: Form,
    pub(crate) doc: &'static str,
}

/// It determines the possible limits of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// A switch of a pad applies to requests that name the pad, and one for all pads to any
    /// request.
    Call,
    /// When a task is created; the task keeps the value.
    Task,
    Shell,
    /// When the pad is shown, or when an action of the pad takes its time.
    Pad,
    Platform,
}

impl When {
    pub(super) fn why(self) -> &'static str {
        match self {
            Self::Shell => "it is read when a command runs",
            Self::Pad => "it stays in force until it is set again",
            Self::Platform => "it applies to the whole platform",
            Self::Call | Self::Task => "",
        }
    }
}

/// Any switch can also be `false` or null, which turns it off.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    Flag,
    Milliseconds(u64),
    Integer,
    Text,
    OneOf(&'static [&'static str]),
    SomeOf(&'static [&'static str]),
}

impl Form {
    pub(crate) fn describe(self) -> String {
        match self {
            Self::Flag => "true or false".to_owned(),
            Self::Milliseconds(usual) => format!("milliseconds, by default {usual}"),
            Self::Integer => "an integer".to_owned(),
            Self::Text => "a text".to_owned(),
            Self::OneOf(words) => format!("one of {}", words.join(", ")),
            Self::SomeOf(words) => format!("a list of some of {}", words.join(", ")),
        }
    }

    pub(super) fn usual(self) -> u64 {
        if let Self::Milliseconds(usual) = self { usual } else { 0 }
    }

    pub(super) fn read(self, name: &str, value: &Value) -> Result<Value, String> {
        let is_word = |words: &[&str], value: &Value| value.as_str().is_some_and(|word| words.contains(&word));
        let fits = match self {
            _ if matches!(value, Value::Null | Value::Bool(false)) => true,
            Self::Flag => value.is_boolean(),
            Self::Milliseconds(_) => value.is_u64(),
            Self::Integer => value.is_i64(),
            Self::Text => value.is_string(),
            Self::OneOf(words) => is_word(words, value),
            Self::SomeOf(words) => value.as_array().is_some_and(|list| list.iter().all(|value| is_word(words, value))),
        };
        if fits { Ok(value.clone()) } else { Err(format!("`{name}` must be {}, not {value}", self.describe())) }
    }
}

macro_rules! switches {
    ($($when:ident { $($switch:ident $name:literal $value:expr, $doc:literal;)* })*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Switch { $($($switch,)*)* }

        pub(crate) const TABLE: &[Row] = &[
            $($(Row { switch: Switch::$switch, name: $name, when: When::$when, value: $value, doc: $doc },)*)*
        ];
    };
}

impl Switch {
    pub(crate) fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }
}

use Form::{Flag, Integer, Milliseconds, OneOf, SomeOf, Text};

switches! {
    Call {
        Stall "stall_ms" Milliseconds(0), "waits this long before it acts";
        DropBefore "drop_before_acting" Flag, "does nothing and closes the connection";
        DropAfter "drop_after_acting" Flag, "acts, and closes the connection without an answer";
        ResetBefore "reset_before_answer" Flag, "acts, and resets the connection before the first byte of the answer";
        ResetAfter "reset_after_first_byte" Flag, "acts, and resets the connection after the first byte of the answer";
        HalfBody "half_body" Flag, "acts, and closes the connection after half of the answer's body";
        StallAnswer "stall_answer_ms" Milliseconds(0), "acts, and waits this long before it answers";
        Code "code" Integer,
            "answers with this code and does nothing: with status 401 for codes of signatures, 429 with its headers";
        CodeAfter "code_after_acting" Integer, "acts, but answers with this code";
        HttpStatus "http_status" Integer, "does nothing and answers with this status and a page of HTML";
        Shape "shape" OneOf(&SHAPES), "acts, and answers in another shape";
        BodyBytes "body_bytes" Integer, "acts, and answers with a body of at least this size";
    }
    Task {
        TaskEnd "task_end" Integer, "the final status of the task; without effect unless it is 3";
        Effect "effect" OneOf(&["never", "always", "show"]),
            "ends with 3 without effect, has its effect although the task fails or never ends, or shows a start in lists alone";
        EffectLate "effect_late_ms" Milliseconds(0), "the effect comes this long after the task's end";
        TaskNeverEnds "task_never_ends" Flag, "the task stays at 2 without effect";
    }
    Shell {
        Shell "shell" OneOf(&["silent", "fails", "hangs"]),
            "no command runs: the task ends with 3 and empty output, ends with -1, or stays at 2; over adb alike";
        Tools "tools" SomeOf(&["curl", "wget", "nc"]),
            "the tools that the pad has (wget and nc are toybox's), by default all";
        ShellIgnoresProxy "shell_ignores_proxy" Flag, "a command's requests do not go through the platform's proxy";
        ProxyLogin "proxy_login" Text, "the user:password that the proxies of the pad require";
        ProxyLies "proxy_lies" Text, "its proxies answer with this body themselves, and do not connect";
        ProxyRotates "proxy_rotates" Flag, "its proxies use another exit for each request";
        ProxyDead "proxy_dead" Flag, "its proxies accept no connection";
        OwnAddress "own_address" Text, "the address from which its requests without a proxy leave, as behind a NAT or an app";
        Screen "screen" Text, "the size of the pictures of its screen, as WIDTHxHEIGHT, by default 90x160";
        ScreenBytes "screen_bytes" Integer, "its pictures have at least this size";
        ScreenFault "screen_fault" OneOf(&Display::FAULTS),
            "`screencap` prints a text, never stops printing, prints nothing and does not end, or turns each second picture";
        Forwarder "forwarder" Text, "the address from which all requests seem to come, as behind a port forwarder";
    }
    Pad {
        TaskTime "task_ms" Milliseconds(500), "the duration of a task";
        RestartTime "restart_ms" Milliseconds(3_000), "the duration of a restart or reset task";
        OnlineTime "online_ms" Milliseconds(1_000), "the time from the end of a start task until the pad is online";
        PowerTime "power_ms" Milliseconds(3_000), "the duration of a power on or off task";
        CommandTime "command_ms" Milliseconds(100), "the time that a command takes in addition to its own";
        Lag "lag_ms" Milliseconds(0), "the age of the state in lists and readings of the pad";
        UnknownPad "unknown_pad" Flag, "treats the pad as one that does not exist";
        PadStatus "pad_status" Integer, "the padStatus that is shown";
        CvmStatus "cvm_status" Integer, "the cvmStatus that is shown";
        PublicAddress "public_address" Text, "userPadList shows this publicIp";
        AdbState "adb_state" Text, "the state of the pad in the list of adb; `absent` if it is not in the list";
        AdbSwapsWith "adb_swaps_with" Text,
            "from the next restart over adb on, its connection leads to the pad with this code, and that pad's to it";
        AdbCopyOf "adb_copy_of" Text,
            "an emulator of one image with the pad of this code: the same serial of its own and, at each start, its data";
        AdbOld "adb_old" Flag, "adb on the pad has no shells with an exit status, as before Android 7";
    }
    Platform {
        RefuseConnections "refuse_connections" Flag, "closes the ports of the platform and of adb and every connection, until it is turned off";
        ClockSkew "clock_skew_s" Integer, "the seconds by which the platform's clock is ahead";
    }
}

const SHAPES: [&str; 1] = ["zeros"];
