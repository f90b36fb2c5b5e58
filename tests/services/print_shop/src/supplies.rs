//! The supply of paper, which shows everything that a service can have in addition to its tools. A
//! table of the configuration file names the suppliers. Commands of the shop's own list them and
//! order from them. A van drives in the background, and the monitor shows each supplier.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tokio::sync::{mpsc, oneshot};
use toolwarrant::BoxFuture;
use toolwarrant::config::{Config, ConfigError, ConfigTable, CredentialSource, Spanned};
use toolwarrant::operator::{Commands, Explanation, OwnCommand, UpstreamState, Upstreams};

/// `[supplier.NAME]` of the configuration file.
pub(crate) const TABLE: ConfigTable = ConfigTable { name: "supplier", judge };

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Supplier {
    pack: Spanned<u32>,
    account_file: Option<Spanned<PathBuf>>,
}

/// Commands of the shop.
#[derive(Debug, clap::Subcommand, Serialize, Deserialize)]
pub enum ShopCommand {
    /// List suppliers of paper, and order from them
    #[command(subcommand)]
    Supply(SupplyCommand),
}

/// Commands about suppliers.
#[derive(Debug, clap::Subcommand, Serialize, Deserialize)]
pub enum SupplyCommand {
    /// List suppliers
    List,
    /// Order a pack of paper
    Order {
        /// The supplier
        supplier: String,
        /// Order without asking
        #[arg(long)]
        yes: bool,
    },
}

impl OwnCommand for ShopCommand {
    fn question(&self) -> Option<String> {
        match self {
            Self::Supply(SupplyCommand::Order { supplier, yes: false }) => {
                Some(format!("Order and pay for a pack of {supplier}?"))
            }
            Self::Supply(_) => None,
        }
    }

    fn changes(&self) -> bool {
        !matches!(self, Self::Supply(SupplyCommand::List))
    }
}

#[derive(Debug)]
pub(crate) struct Supplies {
    suppliers: BTreeMap<String, (u32, AtomicU64)>,
    van: mpsc::Sender<(u32, oneshot::Sender<String>)>,
}

impl Supplies {
    /// Returns a future, in which the van drives while it is polled.
    pub(crate) fn of(config: &Config) -> Result<(Arc<Self>, impl Future<Output = ()> + Send + 'static), ConfigError> {
        let (van, mut orders) = mpsc::channel::<(u32, oneshot::Sender<String>)>(1);
        let suppliers = read(config)?.into_iter().map(|(name, pack)| (name, (pack, AtomicU64::new(0)))).collect();
        let drive = async move {
            while let Some((sheets, brought)) = orders.recv().await {
                let _ = brought.send(format!("the van has brought {sheets} sheets"));
            }
        };
        Ok((Arc::new(Self { suppliers, van }), drive))
    }

    async fn order(&self, supplier: &str) -> Result<Value, Explanation> {
        let (sheets, orders) =
            self.suppliers.get(supplier).ok_or_else(|| format!("there is no supplier {supplier}"))?;
        orders.fetch_add(1, Relaxed);
        let (brought, answer) = oneshot::channel();
        let gone = |_| "the van is not running".to_owned();
        self.van.send((*sheets, brought)).await.map_err(|_| gone(()))?;
        Ok(json!({"sound": *sheets > 0, "said": answer.await.map_err(|_| gone(()))?}))
    }
}

impl Commands<ShopCommand> for Supplies {
    fn execute(&self, ShopCommand::Supply(command): ShopCommand) -> BoxFuture<'_, Result<Value, Explanation>> {
        Box::pin(async move {
            match command {
                SupplyCommand::List => {
                    let row = |(name, (pack, _)): (&String, &(u32, AtomicU64))| json!({"supplier": name, "pack": pack});
                    Ok(self.suppliers.iter().map(row).collect())
                }
                SupplyCommand::Order { supplier, yes: _ } => self.order(&supplier).await,
            }
        })
    }
}

/// A supplier with empty packs counts as unreachable.
impl Upstreams for Supplies {
    fn states(&self) -> Vec<UpstreamState> {
        let state = |(name, (pack, orders)): (&String, &(u32, AtomicU64))| UpstreamState {
            name: name.clone(),
            kind: "paper",
            reachable: *pack > 0,
            prefix: None,
            age_seconds: (*pack > 0).then_some(0),
            targets: u64::from(*pack > 0),
            calls: vec![("ok", orders.load(Relaxed))],
            waiting: 0,
            refused: 0,
            unserved: Vec::new(),
        };
        self.suppliers.iter().map(state).collect()
    }
}

fn read(config: &Config) -> Result<Vec<(String, u32)>, ConfigError> {
    let suppliers: Vec<(_, Supplier)> = config.entries(TABLE.name)?;
    for (name, Supplier { pack, account_file }) in &suppliers {
        if !name.get_ref().bytes().all(|byte| byte.is_ascii_lowercase()) {
            let help = "a name consists of lower-case letters".to_owned();
            let message = format!("`{}` is not a valid name of a supplier", name.get_ref());
            return Err(config.mistake(name.span(), message, Some(help)));
        }
        if *pack.get_ref() > 10_000 {
            let help = "at most 10000 are allowed".to_owned();
            return Err(config.mistake(pack.span(), "no van can carry that many sheets", Some(help)));
        }
        if let Some(file) = account_file {
            let source = CredentialSource::File(config.beside(file.get_ref()));
            source.read().map_err(|error| config.mistake(file.span(), error.to_string(), None))?;
        }
    }
    Ok(suppliers.into_iter().map(|(name, supplier)| (name.into_inner(), supplier.pack.into_inner())).collect())
}

fn judge(config: &Config) -> Result<Value, ConfigError> {
    Ok(read(config)?.into_iter().map(|(supplier, pack)| json!({"supplier": supplier, "pack": pack})).collect())
}
