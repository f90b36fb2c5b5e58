//! The names of flags, without their dashes.
//!
//! The command line declares its flags with these names and messages refer to them by the same names, so that a renamed flag
//! leaves no old name behind. Flags that the HTTP crate checks are named there.

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

/// The configuration file.
pub const CONFIG: &str = "config";

/// Answers as JSON.
pub const JSON: &str = "json";

/// Days for which the audit trail is kept.
pub const KEEP_DAYS: &str = "audit-keep-days";

/// Bytes of the audit trail that are kept.
pub const KEEP_BYTES: &str = "audit-keep-bytes";

/// A permission of a new application.
pub const PERMISSION: &str = "permission";

/// Stands for everything of a resource.
pub const ALL: &str = "all";
