//! Mistakes in the tables of platforms: all are reported at once, each with its place, and without
//! a secret.

use super::Site;
use crate::harness::double::KEYS;
use crate::harness::program::steady;
use std::os::unix::fs::PermissionsExt;

#[tokio::test]
async fn every_mistake_in_the_tables_is_reported_at_once_with_its_place() {
    let site = Site::new();
    for (file, mode) in [("open", 0o644), ("own", 0o600), ("empty", 0o600)] {
        let text = if file == "empty" { "" } else { KEYS[1].1 };
        std::fs::write(site.path(file), text).expect("a file");
        std::fs::set_permissions(site.path(file), PermissionsExt::from_mode(mode)).expect("a mode");
    }
    site.configure(
        r#"echo-listen = "somewhere"

[platform.phone]
kind = "armcloud"
base-url = "https://api.example.com"
access-key-file = "own"
secret-key-file = "own"

[platform.sim]
kind = "simulator"

[platform.Lab-1]
kind = "armcloud"
base-url = "http://api.example.com"
prefix = "/vcpcloud"
signing = "v3"
access-key-file = "open"
secret-key-env = "CLOUDPHONE_NO_SUCH_VARIABLE"
power-seconds = 0
proxy-seconds = 3601
concurrent = 0
requests-per-second = 10001
requests-per-minute = 0

[platform.bare]
kind = "armcloud"

[platform.both]
kind = "armcloud"
base-url = "https://api.example.com/vcpcloud/api/padApi"
access-key-file = "missing"
access-key-env = "HOME"
secret-key-file = "empty"

[platform.other]
kind = "emulator"
"#,
    );
    let (code, text) = site.operate("config check").await;
    assert!(KEYS.iter().all(|(_, key)| !text.contains(key)), "{text}");
    insta::assert_snapshot!("values", format!("exit {code}\n{}", steady(&text, site.home.path())));

    site.configure(
        "[platform]\nflat = 1\n[platform.lab]\nkind = \"armcloud\"\nsecret-key = \"a\"\npower-seconds = \"long\"\nserver = \"x\"\n[platform.phone]\n\
         kind = \"simulator\"\nregion = \"y\"\n[platform.den]\nbase-url = 7\n[platform.rack]\nkind = \"adb\"\nonly = []\n",
    );
    let (code, text) = site.operate("config check").await;
    insta::assert_snapshot!("forms", format!("exit {code}\n{}", steady(&text, site.home.path())));
}
