//! The readings of a phone: one script, and the parser of its output. They are the phone's own
//! word.

use crate::adapter_kit::readings::{START, start_of};
use crate::phones::port::PhoneStart;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use strum::{EnumString, IntoStaticStr};
use toolwarrant::text::Untrusted;

/// A phone that does not say that it has booted counts as booting until then.
const BOOTS_WITHIN: Duration = Duration::from_mins(10);

/// In bytes. Evidence shows it after the start.
const IDENTITY_MAX: usize = 32;

/// The word that this server writes on a phone. A copy of the phone's data has it, too.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Mark(String);

impl Mark {
    const DIGITS: usize = 32;

    pub(super) fn parse(text: &str) -> Option<Self> {
        let is_mark = text.len() == Self::DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_mark.then(|| Self(text.to_owned()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct PhoneFacts {
    pub(super) has_booted: bool,
    /// By the clock of the phone, it runs longer than phones need to boot.
    #[serde(skip)]
    pub(super) has_run_long: bool,
    /// The serial in the phone's own properties, which stays when the connection changes. Clones
    /// may share it, or have none.
    pub(super) identity: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) mark: Option<Mark>,
    #[serde(skip)]
    pub(super) word: String,
    pub(super) start: Option<String>,
    pub(super) model: Option<Untrusted>,
    pub(super) release: Option<Untrusted>,
    pub(super) cores: Option<i64>,
    pub(super) memory_mb: Option<i64>,
    pub(super) storage_gb: Option<i64>,
    #[serde(default)]
    pub(super) netcat: Option<Netcat>,
}

/// As a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, EnumString, IntoStaticStr)]
pub(super) enum Netcat {
    #[strum(serialize = "nc")]
    Nc,
    #[strum(serialize = "toybox nc")]
    ToyboxNc,
}

const START_FOLLOWS: &str = "\nstart=\n";

const MARK: &str = "/data/local/tmp/.cloudphone";

/// Keeps a mark that root writes readable for the shell, which is this user, and for no app.
const FOR_SHELL: &str = "chown 2000:2000";

/// Returns a script that marks a phone without a mark. Of two at once, over two connections, one
/// writes.
pub(super) fn mark_script(mark: &Mark) -> String {
    let (mark, digits) = (mark.as_str(), Mark::DIGITS);
    format!(
        "umask 077;{{ (set -C;echo {mark} >{MARK})||{{ read m w <{MARK};[ ${{#m}} = {digits} ]||echo {mark} >{MARK};}};\
         {FOR_SHELL} {MARK};}} 2>/dev/null"
    )
}

/// Returns a script that replaces a mark, and adds a word that compares connections.
pub(super) fn word_script(mark: &Mark, word: &str) -> String {
    let mark = mark.as_str();
    format!(
        "umask 077;rm -f {MARK}.new;echo {mark} {word} >{MARK}.new&&{{ {FOR_SHELL} {MARK}.new 2>/dev/null;\
         mv {MARK}.new {MARK};}}"
    )
}

/// The statuses of a script on a phone with another mark, and on one that has not booted.
pub(super) const OTHER_PHONE: u8 = 44;
pub(super) const NOT_BOOTED: u8 = 45;

/// Goes on only on a phone that has booted.
pub(super) const BOOTED: &str = "[ \"$(getprop sys.boot_completed)\" = 1 ]||exit 45;";

/// Returns the beginning of a script that goes on only on a phone with this mark, or without one.
pub(super) fn on_marked(mark: Option<&Mark>) -> String {
    let mark = mark.map_or("''", Mark::as_str);
    format!("m=;{{ read m w <{MARK};}} 2>/dev/null;[ \"$m\" = {mark} ]||exit {OTHER_PHONE};")
}

/// Returns a script that prints a line `NAME=VALUE` per reading, and the start last. It removes a
/// mark that it cannot read, which root has written.
pub(super) fn script() -> String {
    format!(
        "for p in sys.boot_completed ro.serialno ro.product.model ro.build.version.release;do echo $p=$(getprop $p);\
         done;echo cores=$(grep -c ^processor /proc/cpuinfo);echo memory=$(grep ^MemTotal: /proc/meminfo);\
         echo storage=$(df -k /data|tail -n 1);\
         if command -v nc >/dev/null;then echo netcat=nc;elif toybox|grep -qw nc;then echo netcat=toybox nc;fi;\
         [ ! -e {MARK} ]||[ -r {MARK} ]||rm -f {MARK};\
         {{ read mark word <{MARK};}} 2>/dev/null;echo mark=$mark;echo word=$word;\
         echo start=;{START}"
    )
}

/// Returns a script that prints only the serial and the start.
pub(super) fn start_script() -> String {
    format!("echo ro.serialno=$(getprop ro.serialno);echo start=;{START}")
}

impl PhoneFacts {
    pub(super) fn name(&self) -> &str {
        if self.identity.is_empty() { "-" } else { &self.identity }
    }

    /// Returns `None` if the output is not whole.
    pub(super) fn parse(output: &str) -> Option<(Self, Option<PhoneStart>)> {
        let (readings, start) = output.split_once(START_FOLLOWS)?;
        let value = |name: &str| {
            let mut values = readings.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
            values.next().map(str::trim).unwrap_or_default()
        };
        let text = |name| Some(Untrusted::clean(value(name))).filter(|text| !text.as_str().is_empty());
        let kilobytes = |name| value(name).split_whitespace().nth(1)?.parse::<i64>().ok().filter(|count| *count > 0);
        let plain = |c: &char| c.is_ascii_alphanumeric() || "._:-".contains(*c);
        let start = start_of(start);
        let facts = Self {
            has_booted: value("sys.boot_completed") == "1",
            has_run_long: start.as_ref().and_then(|start| start.age).is_some_and(|age| age >= BOOTS_WITHIN),
            identity: value("ro.serialno").chars().filter(plain).take(IDENTITY_MAX).collect(),
            mark: Mark::parse(value("mark")),
            word: value("word").chars().filter(char::is_ascii_hexdigit).take(Mark::DIGITS).collect(),
            start: start.as_ref().map(|start| start.value.clone()),
            model: text("ro.product.model"),
            release: text("ro.build.version.release"),
            cores: value("cores").parse().ok().filter(|count| *count > 0),
            memory_mb: kilobytes("memory").map(|count| count >> 10),
            storage_gb: kilobytes("storage").map(|count| count >> 20),
            netcat: value("netcat").parse().ok(),
        };
        let start = start.map(|start| start.on(facts.name()));
        Some((facts, start))
    }
}

#[cfg(test)]
mod tests {
    use super::super::states::AdbState;
    use super::*;
    use proptest::prelude::*;

    const OUTPUT: &str = "\
sys.boot_completed=1
ro.serialno=R58 M12;x
ro.product.model=Pixel 6
ro.build.version.release=14
cores=8
memory=MemTotal: 3906252 kB
storage=/dev/block/dm-5 115249236 12000000 103249236 11% /data
netcat=toybox nc
mark=00112233445566778899aabbccddeeff
start=
2c7b8f3e-8a2f-4a55-9d3e-0f6a1b2c3d4e
1 (init) S 0 0 0 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 23 4
";

    #[test]
    fn each_reading_is_found_and_a_missing_one_is_not_known() {
        let (facts, _) = PhoneFacts::parse(OUTPUT).unwrap();
        assert_eq!(
            (facts.has_booted, &*facts.identity, facts.start.as_deref()),
            (true, "R58M12x", Some("2c7b8f3e:23"))
        );
        assert_eq!(facts.model.as_ref().map(Untrusted::as_str), Some("Pixel 6"));
        assert_eq!((facts.cores, facts.memory_mb, facts.storage_gb), (Some(8), Some(3_814), Some(109)));
        assert_eq!(facts.netcat, Some(Netcat::ToyboxNc));
        assert_eq!(facts.mark.as_ref().map(Mark::as_str), Some("00112233445566778899aabbccddeeff"));
        let (bare, _) = PhoneFacts::parse("sys.boot_completed=\nstart=\n").unwrap();
        assert_eq!(bare, PhoneFacts::default());
        assert_eq!(PhoneFacts::parse("sys.boot_completed=1\n"), None, "not whole");
    }

    #[test]
    fn a_phone_that_does_not_say_that_it_has_booted_is_named_after_10_minutes() {
        for (ticks, has_booted, state) in
            [(60_022, "", AdbState::Booting), (60_023, "", AdbState::Unbooted), (60_023, "1", AdbState::Running)]
        {
            let now = format!("now\n9 (cat) S 0 0 0 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 {ticks} 4\n");
            let output = OUTPUT.replace("boot_completed=1", &format!("boot_completed={has_booted}")) + &now;
            assert_eq!(AdbState::of_answer(&PhoneFacts::parse(&output).unwrap().0), state, "{ticks}");
        }
    }

    #[test]
    fn the_script_fits_a_service() {
        assert!(script().len() < 1_000);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn whatever_a_phone_prints_an_identity_is_short_and_plain(output in "((ro.serialno|memory|cores)=.{0,60}\n){0,9}\nstart=\n.{0,40}") {
            let identity = PhoneFacts::parse(&output).unwrap_or_default().0.identity;
            prop_assert!(identity.len() <= IDENTITY_MAX && !identity.contains(['@', ' ']));
        }
    }
}
