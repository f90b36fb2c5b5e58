//! The names of flags, without their dashes.
//!
//! The command line declares its flags with these names, and messages refer to them by the same
//! names. So a renamed flag does not leave an old name behind. The HTTP crate defines the names of
//! the flags that it checks.

pub use toolwarrant_http::edge::{ALLOW_HOST, ALLOW_ORIGIN, PUBLIC_URL, TLS_CERT, TLS_KEY, TRUST_PROXY};

/// The address that the server listens on.
pub const LISTEN: &str = "listen";

/// The address that the monitoring server listens on.
pub const ADMIN_LISTEN: &str = "admin-listen";

/// Demo applications and keys.
pub const DEMO: &str = "demo";

/// The number of connections.
pub const MAX_CONNECTIONS: &str = "max-connections";

/// The data folder.
pub const DATA: &str = "data";

/// The store that replicas share.
pub const STORE: &str = "store";

/// The file with the password for the store.
pub const STORE_PASSWORD: &str = "store-password-file";

/// The name of a replica.
pub const REPLICA: &str = "replica";

/// The name of the cell.
pub const CELL: &str = "cell";

/// The time for which a replica answers without its store.
pub const AUTHORITY_LEASE: &str = "authority-lease";

/// The configuration file.
pub const CONFIG: &str = "config";

/// Answers as JSON.
pub const JSON: &str = "json";

/// Number of days for which the audit trail is stored.
pub const KEEP_DAYS: &str = "audit-keep-days";

/// Maximum size of the stored audit trail, in bytes.
pub const KEEP_BYTES: &str = "audit-keep-bytes";

/// Leaves addresses out of the audit trail.
pub const WITHOUT_ADDRESS: &str = "audit-without-address";

/// A permission of a new application.
pub const PERMISSION: &str = "permission";

/// Stands for everything of a resource.
pub const ALL: &str = "all";

/// The folder of the sockets for groups of operators.
pub const OPERATOR_SOCKETS: &str = "operator-sockets";

/// The group that may change something.
pub const OPERATE_GROUP: &str = "operate-group";

/// The group that may read.
pub const VIEW_GROUP: &str = "view-group";

/// The socket that a command uses.
pub const SOCKET: &str = "socket";

/// The name that an operator gives.
pub const AS: &str = "as";

/// The reason that an operator gives.
pub const REASON: &str = "reason";
