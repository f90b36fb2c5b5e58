//! The adb server's list, and the phones in it that the operator serves.
//!
//! A phone names itself in its line, so one odd line must cost no other. A line is read from its
//! end, where the server's own words stand. Start at [`parse_list`] and [`select`].

use super::address::NetworkAddress;
use super::states::AdbState;
use super::wire::PhoneAddress;
use std::collections::{BTreeMap, HashMap};
use std::str::FromStr;

const LINE_MAX: usize = 1_024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ListLine {
    serial: String,
    state: AdbState,
    usb_path: Option<String>,
}

/// A serial, or `usb:` and a USB path. A `*` at the end stands for any rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhonePattern(String);

const NO_PATTERN: &str = "expected a serial like `emulator-5554`, or a USB path like `usb:1-1.2`, as `adb devices -l` \
                          shows them; a `*` at the end stands for any rest";

impl FromStr for PhonePattern {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        // A letter stands for the rest.
        let example = text.strip_suffix('*').map_or_else(|| text.to_owned(), |head| format!("{head}x"));
        PhoneAddress::parse(&example).map(|_| Self(text.to_owned())).ok_or(NO_PATTERN)
    }
}

impl PhonePattern {
    pub(super) fn any() -> Self {
        Self("*".to_owned())
    }

    #[must_use]
    pub fn admits(&self, text: &str) -> bool {
        let is_of_usb = |text: &str| text.starts_with("usb:");
        let matches = self.0.strip_suffix('*').map_or(self.0 == text, |head| text.starts_with(head));
        matches && is_of_usb(text) == is_of_usb(&self.0)
    }

    fn only_phone(&self) -> Option<PhoneAddress> {
        PhoneAddress::parse(&self.0)
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SelectedPhones {
    pub(super) served: BTreeMap<PhoneAddress, AdbState>,
    /// The serial, and why it is not served.
    pub(super) left_out: Vec<(String, &'static str)>,
}

pub(super) fn parse_list(text: &str) -> Vec<Option<ListLine>> {
    text.lines().filter(|line| !line.trim().is_empty()).map(parse_line).collect()
}

/// Parses a line: a serial, which may contain anything, a state, the USB path of a phone that has
/// one, and words with a name and a colon.
fn parse_line(line: &str) -> Option<ListLine> {
    if line.len() > LINE_MAX {
        return None;
    }
    let mut line = line.trim_end();
    for name in ["transport_id:", "device:", "model:", "product:"] {
        line = split_last(line).filter(|(_, word)| word.starts_with(name)).map_or(line, |(rest, _)| rest);
    }
    let path = split_last(line).and_then(|(rest, word)| Some((rest, usb_path(word)?)));
    let (line, usb_path) = path.map_or((line, None), |(rest, path)| (rest, Some(path.to_owned())));
    let (serial, state) = AdbState::split(line)?;
    Some(ListLine { serial: serial.trim().to_owned(), state, usb_path })
}

fn split_last(line: &str) -> Option<(&str, &str)> {
    line.rsplit_once(char::is_whitespace).map(|(rest, word)| (rest.trim_end(), word))
}

/// Accepts `1-1.2` in place of `usb:1-1.2`, as a server that uses libusb writes it.
fn usb_path(word: &str) -> Option<&str> {
    let is_path =
        |word: &str| word.contains('-') && word.bytes().all(|byte| byte.is_ascii_digit() || b"-.".contains(&byte));
    word.strip_prefix("usb:").or_else(|| Some(word).filter(|word| is_path(word)))
}

/// Selects phones. One that a pattern names in full, or that is to be connected, is served even if
/// it is not listed.
pub(super) fn select(only: &[PhonePattern], connect: &[NetworkAddress], lines: &[Option<ListLine>]) -> SelectedPhones {
    let mut selected = SelectedPhones::default();
    let mut counts = HashMap::<&str, usize>::new();
    for line in lines.iter().flatten() {
        *counts.entry(&line.serial).or_default() += 1;
    }
    for line in lines {
        let Some(ListLine { serial, state, usb_path }) = line else {
            selected.left_out.push(("a line".to_owned(), "it cannot be read"));
            continue;
        };
        let admits = |text: &str| only.iter().any(|pattern| pattern.admits(text));
        let path = usb_path.as_deref().filter(|path| admits(&format!("usb:{path}")));
        let (address, is_shared) = match path {
            Some(path) => (PhoneAddress::of_usb_path(path), false),
            None if admits(serial) => (PhoneAddress::of_serial(serial), counts.get(&**serial).is_some_and(|n| *n > 1)),
            None => {
                selected.left_out.push((
                    serial.clone(),
                    "no pattern of `only` names it; add its serial or `usb:PATH` there to serve it",
                ));
                continue;
            }
        };
        match address {
            Some(address) => {
                let is_second = selected.served.contains_key(&address);
                selected.served.insert(address, if is_shared || is_second { AdbState::Shared } else { *state });
            }
            None => selected.left_out.push((
                serial.clone(),
                "its serial does not select one phone; name its USB path in `only`, as `usb:PATH`",
            )),
        }
    }
    let connected = connect.iter().map(|NetworkAddress(address)| address.clone());
    for address in only.iter().filter_map(PhonePattern::only_phone).chain(connected) {
        selected.served.entry(address).or_insert(AdbState::Absent);
    }
    selected
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIST: &str = "\
emulator-5554          device product:sdk model:Pixel_6 device:emu64 transport_id:3
0123456789ABCDEF       device usb:1-1.2 product:a model:b device:c transport_id:4
0123456789ABCDEF       unauthorized usb:1-1.3 transport_id:5
(no serial number)     no permissions (user in plugdev group; are your udev rules wrong?); see [http://x.example] usb:1-4 transport_id:6
192.0.2.7:5555         offline transport_id:7
model:Pixel            device product:x transport_id:8
nothing that is known
";

    fn patterns(texts: &[&str]) -> Vec<PhonePattern> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    /// A text with a port is to be connected.
    fn serve_phones(texts: &[&str]) -> Vec<(String, AdbState)> {
        let (connect, only): (Vec<_>, Vec<_>) = texts.iter().copied().partition(|text| text.ends_with(":5555"));
        let connect: Vec<_> = connect.into_iter().map(|text| text.parse().unwrap()).collect();
        let selected = select(&patterns(&only), &connect, &parse_list(LIST));
        selected.served.into_iter().map(|(address, state)| (address.to_string(), state)).collect()
    }

    fn phones_of(phones: &[(&str, AdbState)]) -> Vec<(String, AdbState)> {
        phones.iter().map(|(address, state)| ((*address).to_owned(), *state)).collect()
    }

    #[test]
    fn only_the_phones_that_a_pattern_names_are_served_and_never_two_under_one_address() {
        let all = [
            ("0123456789ABCDEF", AdbState::Shared),
            ("192.0.2.7:5555", AdbState::Offline),
            ("emulator-5554", AdbState::Silent),
        ];
        assert_eq!(serve_phones(&["*"]), phones_of(&all));
        let paths = [
            ("usb:1-1.2", AdbState::Silent),
            ("usb:1-1.3", AdbState::Unauthorized),
            ("usb:1-4", AdbState::NoPermissions),
        ];
        assert_eq!(serve_phones(&["usb:1-*"]), phones_of(&paths));
        // One of two phones is named by its path. The other one cannot be addressed by the serial.
        let both = [("0123456789ABCDEF", AdbState::Shared), ("usb:1-1.2", AdbState::Silent)];
        assert_eq!(serve_phones(&["usb:1-1.2", "0123*"]), phones_of(&both));
        let absent = ["192.0.2.8:5555", "emulator-5556", "usb:9-9"];
        assert_eq!(serve_phones(&absent), phones_of(&absent.map(|address| (address, AdbState::Absent))));
    }

    #[test]
    fn a_line_is_read_from_its_end_whatever_a_phone_calls_itself() {
        for (line, serial, state, path) in [
            (
                "x device usb:1-1.2     device usb:2-1 transport_id:4",
                "x device usb:1-1.2",
                AdbState::Silent,
                Some("2-1"),
            ),
            ("R58M device 3-1 product:a model:b device:c transport_id:1", "R58M", AdbState::Silent, Some("3-1")),
            ("x offline              device transport_id:9", "x offline", AdbState::Silent, None),
            ("adb-X (2)._adb-tls-connect._tcp offline", "adb-X (2)._adb-tls-connect._tcp", AdbState::Offline, None),
            ("[fe80::1%eth0]:5555    device product:p", "[fe80::1%eth0]:5555", AdbState::Silent, None),
            ("a no permissions (why?); see [http://x] 3-1.4", "a", AdbState::NoPermissions, Some("3-1.4")),
            (
                "a no permissions x     no permissions (why?); see [http://x]",
                "a no permissions x",
                AdbState::NoPermissions,
                None,
            ),
            ("a authorizing", "a", AdbState::Connecting, None),
        ] {
            let usb_path = path.map(str::to_owned);
            assert_eq!(parse_line(line), Some(ListLine { serial: serial.to_owned(), state, usb_path }), "{line}");
        }
        for line in ["device", "x", "x devices", "x device product", ""] {
            assert_eq!(parse_line(line), None, "{line}");
        }
    }

    #[test]
    fn each_line_that_is_not_served_has_a_reason() {
        let selected = select(&patterns(&["model*", "emulator-5554"]), &[], &parse_list(LIST));
        let reasons: Vec<_> = selected.left_out.iter().map(|(serial, why)| format!("{serial}: {why}")).collect();
        assert_eq!(
            reasons,
            [
                "0123456789ABCDEF: no pattern of `only` names it; add its serial or `usb:PATH` there to serve it",
                "0123456789ABCDEF: no pattern of `only` names it; add its serial or `usb:PATH` there to serve it",
                "(no serial number): no pattern of `only` names it; add its serial or `usb:PATH` there to serve it",
                "192.0.2.7:5555: no pattern of `only` names it; add its serial or `usb:PATH` there to serve it",
                "model:Pixel: its serial does not select one phone; name its USB path in `only`, as `usb:PATH`",
                "a line: it cannot be read",
            ]
        );
    }

    #[test]
    fn a_pattern_is_a_serial_or_a_path_with_a_star_at_its_end_at_most() {
        for text in ["", "usb:", "a*b", "**", "model:*", "*x"] {
            assert!(text.parse::<PhonePattern>().is_err(), "{text}");
        }
        let [all, paths] = &patterns(&["*", "usb:*"])[..] else { panic!("two") };
        assert!(all.admits("x") && !all.admits("usb:1-1") && paths.admits("usb:1-1") && !paths.admits("x"));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn whatever_a_server_lists_only_plain_addresses_are_served_and_each_line_is_counted(
            text in proptest::collection::vec(
                prop_oneof!["[^\\x00]{0,30}", "[a-c:. ]{0,6} (device|offline|no permissions)( usb:[0-9]-[0-9])?( .{0,9})?"],
                0..8,
            ).prop_map(|lines| lines.join("\n")),
        ) {
            let lines = parse_list(&text);
            let SelectedPhones { served, left_out } = select(&patterns(&["*", "usb:*"]), &[], &lines);
            prop_assert!(served.len() + left_out.len() <= lines.len());
            for address in served.keys() {
                prop_assert_eq!(PhoneAddress::parse(address.as_str()), Some(address.clone()));
            }
        }
    }
}
