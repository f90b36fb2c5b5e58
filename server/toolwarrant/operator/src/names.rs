//! The names that belong to a service. Start at [`Names::of`].

use toolwarrant_core::registry::KeyPrefixes;

/// The names of a service. Existing folders, keys and configurations contain them, so they must not
/// change after a release.
#[derive(Clone, Debug)]
pub struct Names {
    /// The name of the program: `print-shop`.
    pub program: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The prefixes of key ids and secrets.
    pub keys: KeyPrefixes,
    /// The salt for everything that is derived from the master key.
    pub salt: String,
    /// The file name of the database in the data folder.
    pub database: String,
    /// The prefix of environment variables: `PRINT_SHOP_`.
    pub environment: String,
    /// The prefix of metrics: `print_shop_`.
    pub metrics: String,
}

impl Names {
    /// Returns the usual names of a program. `program` consists of lower-case letters, digits and
    /// hyphens.
    #[must_use]
    pub fn of(program: &'static str, version: &'static str) -> Self {
        let metrics = format!("{}_", program.replace('-', "_"));
        Self {
            program,
            version,
            keys: KeyPrefixes { id: "key_", secret: "secret_" },
            salt: format!("{program} 1"),
            database: format!("{program}.db"),
            environment: metrics.to_uppercase(),
            metrics,
        }
    }
}
