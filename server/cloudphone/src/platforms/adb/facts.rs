//! The readings of a phone: one script, and the parser of its output. They are the phone's own
//! word.

use crate::adapter_kit::readings::{START, start_of};
use crate::phones::port::PhoneStart;
use serde::{Deserialize, Serialize};
use toolwarrant::text::Untrusted;

/// In bytes. Evidence shows it after the start.
const IDENTITY_MAX: usize = 32;

const MARK_DIGITS: usize = 32;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct PhoneFacts {
    pub(super) has_booted: bool,
    /// The serial in the phone's own properties, which stays when the connection changes. Clones
    /// may share it, or have none.
    pub(super) identity: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) mark: Option<String>,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Netcat {
    Nc,
    ToyboxNc,
}

impl Netcat {
    pub(super) fn command(self) -> &'static str {
        match self {
            Self::Nc => "nc",
            Self::ToyboxNc => "toybox nc",
        }
    }
}

const START_FOLLOWS: &str = "\nstart=\n";

const MARK: &str = "/data/local/tmp/.cloudphone";

/// Returns a script that marks a phone without a mark. Of two at once, over two connections, one
/// writes.
pub(super) fn mark_script(mark: &str) -> String {
    format!(
        "umask 077;(set -C;echo {mark} >{MARK}) 2>/dev/null||{{ read m w <{MARK};[ ${{#m}} = {MARK_DIGITS} ]||echo {mark} >{MARK};}}"
    )
}

/// Returns a script that writes a mark again, with a word that compares connections.
pub(super) fn word_script(mark: &str, word: &str) -> String {
    format!("umask 077;echo {mark} {word} >{MARK}.new&&mv {MARK}.new {MARK}")
}

/// The status of a script on a phone with another mark.
pub(super) const OTHER_PHONE: u8 = 44;

/// Returns a script that does nothing on a phone with another mark.
pub(super) fn on_marked(mark: Option<&str>, script: &str) -> String {
    let check = |mark| format!("{{ read m w <{MARK};}} 2>/dev/null;[ \"$m\" = {mark} ]||exit {OTHER_PHONE};");
    mark.map(check).unwrap_or_default() + script
}

/// Returns a script that prints a line `NAME=VALUE` per reading, and the start last.
pub(super) fn script() -> String {
    format!(
        "for p in sys.boot_completed ro.serialno ro.product.model ro.build.version.release;do echo $p=$(getprop $p);\
         done;echo cores=$(grep -c ^processor /proc/cpuinfo);echo memory=$(grep ^MemTotal: /proc/meminfo);\
         echo storage=$(df -k /data|tail -n 1);\
         if command -v nc >/dev/null;then echo netcat=nc;elif toybox|grep -qw nc;then echo netcat=toybox nc;fi;\
         {{ read mark word <{MARK};}} 2>/dev/null;echo mark=$mark;echo word=$word;\
         echo start=;{START}"
    )
}

impl PhoneFacts {
    pub(super) fn name(&self) -> &str {
        if self.identity.is_empty() { "-" } else { &self.identity }
    }

    pub(super) fn is_of_another(&self, known: &Self) -> bool {
        self.mark.is_some() && known.mark.is_some() && self.mark != known.mark
    }

    pub(super) fn parse_start(output: &str) -> Option<PhoneStart> {
        start_of(output.split_once(START_FOLLOWS)?.1)
    }

    /// Returns `None` if the output is not whole.
    pub(super) fn parse(output: &str) -> Option<Self> {
        let (readings, start) = output.split_once(START_FOLLOWS)?;
        let value = |name: &str| {
            let mut values = readings.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
            values.next().map(str::trim).unwrap_or_default()
        };
        let text = |name| Some(Untrusted::clean(value(name))).filter(|text| !text.as_str().is_empty());
        let kilobytes = |name| value(name).split_whitespace().nth(1)?.parse::<i64>().ok().filter(|count| *count > 0);
        let plain = |c: &char| c.is_ascii_alphanumeric() || "._:-".contains(*c);
        Some(Self {
            has_booted: value("sys.boot_completed") == "1",
            identity: value("ro.serialno").chars().filter(plain).take(IDENTITY_MAX).collect(),
            mark: Some(value("mark"))
                .filter(|mark| mark.len() == MARK_DIGITS && mark.bytes().all(|byte| byte.is_ascii_hexdigit()))
                .map(str::to_owned),
            word: value("word").chars().filter(char::is_ascii_hexdigit).take(MARK_DIGITS).collect(),
            start: start_of(start).map(|start| start.value),
            model: text("ro.product.model"),
            release: text("ro.build.version.release"),
            cores: value("cores").parse().ok().filter(|count| *count > 0),
            memory_mb: kilobytes("memory").map(|count| count >> 10),
            storage_gb: kilobytes("storage").map(|count| count >> 20),
            netcat: [Netcat::Nc, Netcat::ToyboxNc].into_iter().find(|netcat| netcat.command() == value("netcat")),
        })
    }
}

#[cfg(test)]
mod tests {
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
        let facts = PhoneFacts::parse(OUTPUT).unwrap();
        assert_eq!(
            (facts.has_booted, &*facts.identity, facts.start.as_deref()),
            (true, "R58M12x", Some("2c7b8f3e:23"))
        );
        assert_eq!(facts.model.as_ref().map(Untrusted::as_str), Some("Pixel 6"));
        assert_eq!((facts.cores, facts.memory_mb, facts.storage_gb), (Some(8), Some(3_814), Some(109)));
        assert_eq!(facts.netcat, Some(Netcat::ToyboxNc));
        assert_eq!(facts.mark.as_deref(), Some("00112233445566778899aabbccddeeff"));
        let bare = PhoneFacts::parse("sys.boot_completed=\nstart=\n").unwrap();
        assert_eq!(bare, PhoneFacts::default());
        assert_eq!(PhoneFacts::parse("sys.boot_completed=1\n"), None, "not whole");
    }

    #[test]
    fn the_script_fits_a_service() {
        assert!(script().len() < 1_000);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn whatever_a_phone_prints_an_identity_is_short_and_plain(output in "((ro.serialno|memory|cores)=.{0,60}\n){0,9}\nstart=\n.{0,40}") {
            let identity = PhoneFacts::parse(&output).unwrap_or_default().identity;
            prop_assert!(identity.len() <= IDENTITY_MAX && !identity.contains(['@', ' ']));
        }
    }
}
