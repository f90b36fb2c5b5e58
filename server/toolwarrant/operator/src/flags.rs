//! The names of flags, without their dashes. Messages use them too, so a renamed flag leaves no old
//! name behind. The HTTP crate defines the names of the flags that it checks.

pub use toolwarrant_http::edge::{ALLOW_HOST, ALLOW_ORIGIN, PUBLIC_URL, TLS_CERT, TLS_KEY, TRUST_PROXY};

pub const LISTEN: &str = "listen";

pub const TOOLSETS: &str = "toolsets";

pub const ADMIN_LISTEN: &str = "admin-listen";

pub const CONSOLE_LISTEN: &str = "console-listen";

pub const DEMO: &str = "demo";

pub const MAX_CONNECTIONS: &str = "max-connections";

pub const DATA: &str = "data";

pub const STORE: &str = "store";

pub const STORE_PASSWORD: &str = "store-password-file";

pub const REPLICA: &str = "replica";

pub const CELL: &str = "cell";

pub const AUTHORITY_LEASE: &str = "authority-lease";

pub const CONFIG: &str = "config";

pub const JSON: &str = "json";

pub const KEEP_DAYS: &str = "audit-keep-days";

pub const KEEP_BYTES: &str = "audit-keep-bytes";

pub const WITHOUT_ADDRESS: &str = "audit-without-address";

pub const PERMISSION: &str = "permission";

pub const ALL: &str = "all";

pub const OPERATOR_SOCKETS: &str = "operator-sockets";

pub const OPERATE_GROUP: &str = "operate-group";

pub const VIEW_GROUP: &str = "view-group";

pub const SOCKET: &str = "socket";

pub const AS: &str = "as";

pub const REASON: &str = "reason";
