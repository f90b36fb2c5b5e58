//! The tools of toybox that differ from those of this machine, by their own names or after
//! `toybox`.

use super::network::{nc, wget};
use super::phone::{Failure, Phone};
use crate::host::ActEnd;
use crate::net;
use std::io;

const DF: &str = "\
Filesystem       1K-blocks     Used Available Use% Mounted on
/dev/block/dm-5  115249236 12000000 103249236  11% /data";

pub(super) async fn run(phone: &Phone, name: &str, arguments: &[String]) -> Result<(), Failure> {
    let has = |tool: &str| phone.tools.iter().any(|known| known == tool);
    match (name, arguments) {
        ("df", _) => println!("{DF}"),
        ("getprop", [name]) => println!("{}", phone.properties.get(name).map_or("", String::as_str)),
        ("setprop", _) => return setprop(phone, arguments).await,
        ("wget", _) if has("wget") => return wget(phone, arguments).await,
        ("nc", _) if has("nc") => return nc(phone, arguments).await,
        ("toybox", [tool, arguments @ ..]) if tool != "toybox" => {
            return Box::pin(run(phone, tool, arguments)).await;
        }
        ("toybox", _) => {
            let tools = ["df", "getprop", "nc", "setprop", "wget"].into_iter();
            println!(
                "{}",
                tools.filter(|tool| has(tool) || !["nc", "wget"].contains(tool)).collect::<Vec<_>>().join(" ")
            );
        }
        _ => return Err(Failure::new(127, format!("toybox: Unknown command {name} (see \"toybox --help\")"))),
    }
    Ok(())
}

/// Sets the only property that can be set, which restarts the phone.
async fn setprop(phone: &Phone, arguments: &[String]) -> Result<(), Failure> {
    let failed = |why: &str| Failure::new(1, format!("Failed to set property: {why}"));
    if arguments != ["sys.powerctl", "reboot,"] {
        return Err(failed("it is not known"));
    }
    let act: io::Result<ActEnd> = net::post(&phone.control, &format!("pads/{}/act/reboot", phone.pad), "").await;
    match act.map_err(|error| failed(&error.to_string()))?.status {
        Some(0) => Ok(()),
        status => Err(Failure::new(status.unwrap_or(1), "Failed to set property")),
    }
}
