//! Mistakes in the tables of platforms: each is reported with its place, and without a secret.

use super::Site;
use crate::harness::double::KEYS;
use crate::harness::program::steady;
use std::os::unix::fs::PermissionsExt;

const LAB: &str =
    "[platform.lab]\nkind = \"armcloud\"\nbase-url = \"https://api.example.com\"\naccess-key-file = \"own\"\n";

const ADB: &str = "[platform.one]\nkind = \"adb\"\n";

const MISTAKEN: [&str; 31] = [
    "echo-listen = \"somewhere\"",
    "[platform.phone]\nkind = \"armcloud\"",
    "[platform.sim]\nkind = \"simulator\"",
    "[platform.Lab-1]\nkind = \"armcloud\"",
    "[platform.lab]\nkind = \"armcloud\"\nbase-url = \"http://api.example.com\"",
    "LAB prefix = \"/vcpcloud\"",
    "LAB signing = \"v3\"",
    "LAB signing = \"v2\"",
    "[platform.lab]\nkind = \"armcloud\"\nbase-url = \"https://api.example.com\"\naccess-key-file = \"open\"",
    "LAB secret-key-env = \"CLOUDPHONE_NO_SUCH_VARIABLE\"",
    "LAB secret-key-file = \"own\"\npower-seconds = 0",
    "LAB secret-key-file = \"own\"\nproxy-seconds = 3601",
    "LAB secret-key-file = \"own\"\nrequests-per-second = 10001",
    "[platform.bare]\nkind = \"armcloud\"",
    "LAB access-key-env = \"HOME\"",
    "LAB secret-key-file = \"empty\"",
    "[platform.other]\nkind = \"emulator\"",
    "[platform]\nflat = 1",
    "LAB secret-key = \"never shown\"",
    "LAB power-seconds = \"long\"",
    "[platform.phone]\nkind = \"simulator\"\nregion = \"y\"",
    "[platform.den]\nbase-url = 7",
    "[platform.rack]\nkind = \"adb\"\nonly = []",
    "ADB server = \"192.0.2.7:5037\"\nonly = [\"a\"]",
    "ADB only = [\"model:Pixel\", \"a\"]",
    "ADB only = [\"a\"]\nnames = { b = \"Anna\" }",
    "ADB connect = [\"192.0.2.7\"]",
    "ADB only = [\"a\"]\nconnect = [\"192.0.2.7\"]",
    "ADB only = [\"a\"]\nstart = [\"/bin/true\"]",
    "ADB only = [\"a\"]\n[platform.two]\nkind = \"adb\"\nonly = [\"b\"]",
    "[platform",
];

#[tokio::test]
async fn each_mistake_in_the_tables_is_reported_with_its_place_and_without_a_secret() {
    let site = Site::new();
    for (file, mode) in [("open", 0o644), ("own", 0o600), ("empty", 0o600)] {
        let text = if file == "empty" { "" } else { KEYS[1].1 };
        std::fs::write(site.path(file), text).expect("a file");
        std::fs::set_permissions(site.path(file), PermissionsExt::from_mode(mode)).expect("a mode");
    }
    let mut shown = String::new();
    for mistaken in MISTAKEN {
        site.configure(&mistaken.replace("LAB ", LAB).replace("ADB ", ADB));
        let (code, text) = site.operate("config check").await;
        assert!(
            code == 1 && !text.contains("never shown") && KEYS.iter().all(|(_, key)| !text.contains(key)),
            "{text}"
        );
        let text = steady(&text, site.home.path());
        let is_told = |line: &&str| ["error", "-->", "| ^", "help"].iter().any(|start| line.starts_with(start));
        text.lines().filter(is_told).for_each(|line| shown += &format!("{line}\n"));
    }
    insta::assert_snapshot!(shown);
}
