//! The port to documents: small values that the processes of one store share, each with a version.

use crate::store::Stored;
use std::fmt::Debug;

/// A value that processes share. A process changes it by a put that fails if another process has
/// changed it meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Its key, unique in its name space.
    pub key: String,
    /// The number of its changes so far; 0 if it does not exist yet.
    pub version: u64,
    /// Its content.
    pub body: Vec<u8>,
}

/// Stores documents.
pub trait DocumentStore: Debug + Send + Sync + 'static {
    /// Returns the documents with these keys that exist, in any order.
    fn documents(&self, space: &'static str, keys: Vec<String>) -> Stored<'_, Vec<Document>>;

    /// Puts each document whose stored version is the given one; its version is then one higher.
    /// Returns for each one, in order, if it was put.
    fn put_documents(&self, space: &'static str, documents: Vec<Document>) -> Stored<'_, Vec<bool>>;
}
