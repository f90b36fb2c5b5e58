//! The addresses of an adb server, and of phones that it connects to. A program that reaches the
//! server owns every phone behind it, so its address must be on this machine.

use super::wire::PhoneAddress;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdbAddress {
    /// On loopback.
    Tcp(SocketAddr),
    Unix(PathBuf),
}

const NO_SERVER: &str = "expected a loopback address like `127.0.0.1:5037`, or the absolute path of a Unix socket; for \
                         a server on another machine, run `ssh -N -L 5037:127.0.0.1:5037 MACHINE` and write \
                         `127.0.0.1:5037`";

impl FromStr for AdbAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        match text.parse::<SocketAddr>() {
            Ok(address) if address.ip().to_canonical().is_loopback() && address.port() != 0 => Ok(Self::Tcp(address)),
            Err(_) if Path::new(text).is_absolute() => Ok(Self::Unix(text.into())),
            _ => Err(NO_SERVER),
        }
    }
}

impl fmt::Display for AdbAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkAddress(pub(super) PhoneAddress);

impl FromStr for NetworkAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        const NO_PHONE: &str = "expected a host and a port, like `192.0.2.7:5555`";
        let (host, port) = text.rsplit_once(':').ok_or(NO_PHONE)?;
        let is_port = port.parse::<u16>().is_ok_and(|port| port != 0) && !host.is_empty() && !host.contains(' ');
        PhoneAddress::of_serial(text).filter(|_| is_port).map(Self).ok_or(NO_PHONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_phone_has_a_host_and_a_port() {
        for text in ["192.0.2.7:5555", "[fe80::7%eth0]:5555", "pixel.lan:5555"] {
            assert!(text.parse::<NetworkAddress>().is_ok(), "{text}");
        }
        for text in ["192.0.2.7", ":5555", "192.0.2.7:0", "192.0.2.7:70000", "usb:1", "-x:5555", "a b:5555"] {
            assert!(text.parse::<NetworkAddress>().is_err(), "{text}");
        }
    }

    #[test]
    fn only_addresses_on_this_machine_are_accepted() {
        for text in ["127.0.0.1:5037", "127.8.0.1:1", "[::1]:5037", "/run/adb.sock"] {
            assert_eq!(text.parse::<AdbAddress>().unwrap().to_string(), text);
        }
        for text in
            ["", "5037", "localhost:5037", "192.0.2.1:5037", "0.0.0.0:5037", "[::]:5037", "127.0.0.1:0", "adb.sock"]
        {
            assert!(text.parse::<AdbAddress>().is_err(), "{text}");
        }
    }
}
