//! The command line. Every flag is also an environment variable, `CLOUDPHONE_` and its name.

use clap::Parser;
use clap::builder::RangedU64ValueParser;
use cloudphone::app::Config;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Serves cloud phones to AI agents over the Model Context Protocol.
///
/// Without any flag it serves 24 simulated phones on http://127.0.0.1:8080/mcp and prints two keys to try it with.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Arguments {
    /// Address to listen on; port 0 takes a free one
    #[arg(long, env = "CLOUDPHONE_LISTEN", value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080",
          value_parser = address)]
    listen: SocketAddr,

    /// URL at which clients reach this server, where that is not the address it listens on
    #[arg(long, env = "CLOUDPHONE_PUBLIC_URL", value_name = "URL")]
    public_url: Option<String>,

    /// Host name that requests may be addressed to, beside the public URL's; may be repeated
    #[arg(long, env = "CLOUDPHONE_ALLOW_HOST", value_name = "HOST", value_delimiter = ',')]
    allow_host: Vec<String>,

    /// Origin of web pages that may call this server, such as https://example.com; may be repeated
    #[arg(long, env = "CLOUDPHONE_ALLOW_ORIGIN", value_name = "ORIGIN", value_delimiter = ',')]
    allow_origin: Vec<String>,

    /// Folder for what outlives the program: tasks, applications, keys, the audit trail
    #[arg(long, env = "CLOUDPHONE_DATA", value_name = "DIR", default_value = "data")]
    data: PathBuf,

    /// Number of simulated phones
    #[arg(long, env = "CLOUDPHONE_SIM_DEVICES", value_name = "N", default_value = "24",
          value_parser = RangedU64ValueParser::<u32>::new().range(1..=1_000_000))]
    sim_devices: u32,

    /// Seed of the simulated phones: the same seed gives the same fleet
    #[arg(long, env = "CLOUDPHONE_SIM_SEED", value_name = "N", default_value = "1")]
    sim_seed: u64,
}

fn address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "expected an IP address and a port, as in 127.0.0.1:8080")
}

impl From<Arguments> for Config {
    fn from(arguments: Arguments) -> Self {
        let Arguments { listen, public_url, allow_host, allow_origin, data, sim_devices, sim_seed } = arguments;
        // A variable that is set to nothing, as compose files like to have it, says nothing.
        let said = |text: &String| !text.is_empty();
        Self {
            listen,
            public_url: public_url.filter(said),
            allow_hosts: allow_host.into_iter().filter(said).collect(),
            allow_origins: allow_origin.into_iter().filter(said).collect(),
            data,
            sim_devices,
            sim_seed,
        }
    }
}
