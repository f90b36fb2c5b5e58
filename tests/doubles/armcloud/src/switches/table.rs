//! The names of all switches, their values and their effects.

use serde_json::Value;

/// A switch.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) switch: Switch,
    pub(crate) name: &'static str,
    pub(crate) when: When,
    pub(crate) value: Form,
    pub(crate) doc: &'static str,
}

/// The moment at which a switch is read, which determines its possible limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// With a request: a switch of a pad applies to requests that name the pad, and one for all
    /// pads to any request.
    Call,
    /// When a task is created; the task keeps the value.
    Task,
    /// When a command runs on the pad.
    Shell,
    /// When the pad is shown, or when an action of the pad takes its time.
    Pad,
    /// For the whole platform.
    Platform,
}

impl When {
    /// Explains why the switch cannot be limited to calls.
    pub(super) fn why(self) -> &'static str {
        match self {
            Self::Shell => "it is looked at when a command runs",
            Self::Pad => "it holds until it is set anew",
            Self::Platform => "it is the whole platform's",
            Self::Call | Self::Task => "",
        }
    }
}

/// The form of a switch's value. Any switch can also be `false` or null, which turns it off.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    Flag,
    /// A number of milliseconds, with its default.
    Milliseconds(u64),
    Integer,
    Text,
    OneOf(&'static [&'static str]),
    /// A list of some of these words.
    SomeOf(&'static [&'static str]),
}

impl Form {
    /// Describes the allowed values.
    pub(crate) fn describe(self) -> String {
        match self {
            Self::Flag => "true or false".to_owned(),
            Self::Milliseconds(usual) => format!("milliseconds, usually {usual}"),
            Self::Integer => "an integer".to_owned(),
            Self::Text => "a text".to_owned(),
            Self::OneOf(words) => format!("one of {}", words.join(", ")),
            Self::SomeOf(words) => format!("a list of some of {}", words.join(", ")),
        }
    }

    /// Returns the default duration.
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
        if fits { Ok(value.clone()) } else { Err(format!("`{name}` is to be {}, not {value}", self.describe())) }
    }
}

macro_rules! switches {
    ($($when:ident { $($switch:ident $name:literal $value:expr, $doc:literal;)* })*) => {
        /// A switch, by its name in the table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Switch { $($($switch,)*)* }

        /// Every switch, in the order of [`Switch`].
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
        Stall "stall_ms" Milliseconds(0), "waits so long before anything is done";
        DropBefore "drop_before_acting" Flag, "does nothing and closes the connection";
        DropAfter "drop_after_acting" Flag, "acts, and closes the connection without an answer";
        ResetBefore "reset_before_answer" Flag, "acts, and resets the connection before the first byte of the answer";
        ResetAfter "reset_after_first_byte" Flag, "acts, and resets the connection after the first byte of the answer";
        HalfBody "half_body" Flag, "acts, and closes the connection after half of the answer's body";
        StallAnswer "stall_answer_ms" Milliseconds(0), "acts, and waits so long before it answers";
        Code "code" Integer, "answers with this code and does nothing: 401 for those of signatures, 429 with its headers";
        CodeAfter "code_after_acting" Integer, "acts, and answers with this code nevertheless";
        CodeText "code_text" Text, "the msg of such an answer";
        RateReset "rate_reset_s" Integer, "after how many seconds X-RateLimit-Reset of a 429 says to come back, usually 1";
        HttpStatus "http_status" Integer, "does nothing and answers with this status and a page of HTML";
        Redirect "redirect" Text, "does nothing and answers 302 to this URL";
        Shape "shape" OneOf(&SHAPES), "acts, and answers in another shape";
        BodyBytes "body_bytes" Integer, "acts, and answers with a body that is at least so large";
        EchoPadCode "echo_pad_code" Text, "acts, and answers with this padCode instead of the one that was sent";
        MissingRow "missing_row" Flag, "acts, and leaves the row of the pad out of the answer";
        UnknownAnswer "unknown_pad_answer" OneOf(&["2020", "110013", "110028", "110042", "missing_row"]),
            "how a pad that does not exist is answered; usually 2020 where one pad is named, else 110028";
        RatePerSecond "rate_per_second" Integer, "answers 429 beyond so many calls in any second";
        CommandSignature "command_signature" OneOf(&["empty", "body"]), "V2 signs this of a command's body, and nothing else";
        OnlyScheme "only_scheme" OneOf(&["v2", "v4"]), "takes signatures of this scheme alone";
        BadSignature "bad_signature_code" Integer, "what a wrong signature is answered with, usually 2019";
    }
    Task {
        Submit "submit" OneOf(&["exists", "exists_without_id", "exists_while_running"]),
            "taskStatus -1 and nothing done: always (with an earlier id, or null), or while a task of its kind runs";
        TaskEnd "task_end" Integer, "the status that the task ends with; other than 3, nothing happens";
        Effect "effect" OneOf(&["never", "always"]), "3 without effect, or effect although the task fails or never ends";
        EffectLate "effect_late_ms" Milliseconds(0), "the effect comes so long after the task's end";
        TaskQueued "task_queued_ms" Milliseconds(0), "the task is queued (9) for so long at first";
        TaskAbsent "task_absent_polls" Integer, "so many polls do not find the task at first";
        TaskNeverEnds "task_never_ends" Flag, "the task stays at 2, and nothing happens";
        EndTime "end_time" OneOf(&["early", "never"]), "endTime stands there from the beginning, or not even at the end";
        Output "output" OneOf(&["empty", "task_result", "error_msg"]),
            "where a command's output is; usually in taskResult, of syncCmd in errorMsg";
        RestartEndsIn "restart_ends_in" Integer, "the padStatus after a restart, usually 10; another stays offline";
        RestartClearsProxy "restart_clears_proxy" Flag, "a restart loses what setProxy has set";
        RestartHost "boot_id_changes" Flag, "a restart restarts the pad's host: boot_id changes, for its neighbours too";
    }
    Shell {
        Shell "shell" OneOf(&["silent", "fails", "hangs"]), "no command runs: empty output with 3, or -1, or for ever at 2";
        Tools "tools" SomeOf(&["curl", "wget", "nc"]), "which of these the pad has (wget and nc are toybox's), usually all";
        WgetQuiet "wget_refuses_quiet" Flag, "toybox wget does not know -q, as in toybox itself";
        ProcUnreadable "proc_unreadable" Flag, "nothing of /proc can be read";
        ShellIgnoresProxy "shell_ignores_proxy" Flag, "a command's requests do not follow the platform's proxy";
        ProxyLogin "proxy_login" Text, "user:password that the proxies of the pad ask for";
        ProxyLies "proxy_lies" Text, "its proxies answer with this body themselves, and reach nobody";
        ProxyForwards "proxy_forwards" Flag, "its proxies add X-Forwarded-For with the pad's own address";
        ProxyRotates "proxy_rotates" Flag, "its proxies use another exit for each request";
        ProxyDead "proxy_dead" Flag, "its proxies take no connection";
    }
    Pad {
        TaskTime "task_ms" Milliseconds(500), "how long a task takes";
        RestartTime "restart_ms" Milliseconds(3_000), "how long the task of a restart or reset takes";
        OnlineTime "online_ms" Milliseconds(1_000), "how long after the task of a start the pad comes online";
        PowerTime "power_ms" Milliseconds(3_000), "how long the task of power on or off takes";
        CommandTime "command_ms" Milliseconds(100), "how long a command takes besides its own time";
        SyncLimit "sync_limit_ms" Milliseconds(5_000), "after how long syncCmd answers 110012; the command goes on";
        ShellLimit "shell_limit_ms" Milliseconds(30_000), "after how long a command is killed: its task ends with -4";
        Lag "lag_ms" Milliseconds(0), "how old lists and readings of the pad are";
        UnknownPad "unknown_pad" Flag, "treats the pad as one that does not exist";
        PadStatus "pad_status" Integer, "the padStatus that is shown";
        Online "online" Integer, "the online that is shown";
        CvmStatus "cvm_status" Integer, "the cvmStatus that is shown";
        ProxyInList "proxy_in_list" Flag, "userPadList and padInfo show what setProxy has set";
        OfflineCommand "offline_command" OneOf(&["fails", "110031"]),
            "a command to a pad that is not up; usually empty output with 3";
    }
    Platform {
        RefuseConnections "refuse_connections" Flag, "closes the port and every connection, until it is switched off";
        ClockSkew "clock_skew_s" Integer, "how far the platform's clock is ahead";
        TimingAnswer "timing_answer" OneOf(&["tasks"]), "timingPadOn and Off answer with tasks, usually with null";
        ProxyInfo "proxy_info" Flag, "the exit of a pad's proxy can be read by a task under /vcpcloud too, usually 404";
        Pages "pages" OneOf(&["rows_are_the_size", "total_is_zero", "endless", "shifted"]),
            "infos lies of its pages: rows has the size, the total is 0, every page is full and none the last, or each begins one row early";
        Records "records" Flag, "userPadList answers with pages: data.records, page, rows";
    }
}

const SHAPES: [&str; 11] = [
    "array_instead_of_object",
    "object_instead_of_array",
    "string_code",
    "code_zero",
    "string_numbers",
    "null_data",
    "no_data",
    "html",
    "not_json",
    "no_body",
    "deep",
];

#[cfg(test)]
mod tests {
    use super::TABLE;

    #[test]
    fn every_switch_stands_at_its_own_place_in_the_table() {
        for row in TABLE {
            assert_eq!(row.switch.row().name, row.name);
        }
    }
}
