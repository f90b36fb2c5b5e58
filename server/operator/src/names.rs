//! What a service calls itself, and all that is named after it.

use toolwarrant_core::registry::KeyPrefixes;

/// The names of a service. They stand in folders, keys and configurations that exist: once released, they stay.
#[derive(Clone, Debug)]
pub struct Names {
    /// The program, as operators call it: `print-shop`.
    pub program: &'static str,
    /// Its version.
    pub version: &'static str,
    /// What keys begin with.
    pub keys: KeyPrefixes,
    /// Salts what is derived from the master key.
    pub salt: String,
    /// The file name of the database in the data folder.
    pub database: String,
    /// What environment variables begin with: `PRINT_SHOP_`.
    pub environment: String,
    /// What metrics begin with: `print_shop_`.
    pub metrics: String,
}

impl Names {
    /// The usual names of a program, which is called in lower-case letters, digits and hyphens.
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
