//! Starts the adb server of this machine, with the program `adb` of Android's platform tools.

use super::address::AdbAddress;
use std::env;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;
use tokio::time::timeout;

const USUAL_PORT: u16 = 5037;

const START_WITHIN: Duration = Duration::from_secs(20);

/// Returns the address of the adb server that the programs of this machine use.
pub(super) fn local_server() -> AdbAddress {
    let port = env::var("ANDROID_ADB_SERVER_PORT").ok().and_then(|port| port.parse().ok());
    AdbAddress::Tcp((Ipv4Addr::LOCALHOST, port.unwrap_or(USUAL_PORT)).into())
}

/// Does nothing if the server runs. Without `adb`, the list of phones says what is missing.
pub async fn start_server() {
    let Some(adb) = find_adb() else { return tracing::warn!("adb is not in PATH, and in no usual folder of an SDK") };
    let mut command = Command::new(&adb);
    command.arg("start-server").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    match timeout(START_WITHIN, command.status()).await {
        Ok(Ok(status)) if status.success() => {}
        Ok(ended) => tracing::warn!(adb = %adb.display(), ?ended, "the adb server could not be started"),
        Err(_) => tracing::warn!(adb = %adb.display(), "the adb server did not start in time"),
    }
}

fn find_adb() -> Option<PathBuf> {
    let folder = |name: &str| env::var_os(name).map(PathBuf::from);
    let path = env::var_os("PATH").unwrap_or_default();
    let homes = ["Android/Sdk", "Library/Android/sdk"].into_iter().filter_map(|sdk| Some(folder("HOME")?.join(sdk)));
    let usual = ["/opt/android-sdk", "/usr/lib/android-sdk"].map(PathBuf::from);
    let sdks = ["ANDROID_HOME", "ANDROID_SDK_ROOT"].into_iter().filter_map(folder).chain(homes).chain(usual);
    let folders = env::split_paths(&path).chain(sdks.map(|sdk| sdk.join("platform-tools")));
    folders.filter(|folder| folder.is_absolute()).map(|folder| folder.join("adb")).find(|adb| adb.is_file())
}
