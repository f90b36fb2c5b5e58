//! The tools of a phone: this program under the names in a pad's PATH. Each refuses options that it
//! does not list, as the real tool does.

mod network;
mod phone;
mod screen;
mod toybox;

use phone::Failure;
pub(crate) use phone::{ALWAYS, CHOSEN, OF_THIS_MACHINE, Phone};
use std::process::ExitCode;

pub(crate) fn is_tool(name: &str) -> bool {
    ALWAYS.iter().chain(&CHOSEN).any(|tool| *tool == name)
}

pub(crate) fn run(name: &str, arguments: &[String]) -> ExitCode {
    let Some(phone) = Phone::read() else {
        eprintln!("{name}: this runs only in the shell of a pad: `{}` does not name a phone", Phone::VARIABLE);
        return ExitCode::from(126);
    };
    let ended = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => {
            let ended = runtime.block_on(async {
                match name {
                    "curl" => network::curl(&phone, arguments).await,
                    "dumpsys" => screen::dumpsys(&phone, arguments),
                    "screencap" => screen::screencap(&phone, arguments).await,
                    "am" | "monkey" => screen::open(&phone, name, arguments).await,
                    "uiautomator" => screen::list(&phone, arguments).await,
                    "input" => screen::input(&phone, arguments).await,
                    _ => toybox::run(&phone, name, arguments).await,
                }
            });
            // Does not wait for a stdin that stays open.
            runtime.shutdown_background();
            ended
        }
        Err(error) => Err(Failure::new(126, format!("{name}: {error}"))),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { status, message }) => {
            if !message.is_empty() {
                eprintln!("{message}");
            }
            ExitCode::from(status)
        }
    }
}
