//! An application: what its keys share.

use super::grants::Grants;
use crate::limit::Window;
use crate::permissions::PermissionSet;
use crate::reply::ToolLists;
use bytes::Bytes;
use std::sync::{Arc, OnceLock};

/// An application. All its keys share what is in here.
#[derive(Debug)]
pub struct Application {
    /// Its id in the audit and in storage.
    pub id: Box<str>,
    /// Its name for people.
    pub name: Box<str>,
    /// What it may do.
    pub permissions: PermissionSet,
    /// Which targets it may see.
    pub grants: Grants,
    /// Its request budget. A change of the application keeps it, so the budget goes on.
    pub window: Arc<Window>,
    /// The tools that `tools/list` shows for these permissions, made at the first request for them.
    pub(crate) tools: OnceLock<ToolLists>,
    /// The instructions for these permissions as a JSON string, made likewise.
    pub(crate) instructions: OnceLock<Bytes>,
}

impl Application {
    /// An application with that budget.
    #[must_use]
    pub fn new(id: &str, name: &str, permissions: PermissionSet, grants: Grants, window: Arc<Window>) -> Self {
        let (tools, instructions) = (OnceLock::new(), OnceLock::new());
        Self { id: id.into(), name: name.into(), permissions, grants, window, tools, instructions }
    }
}
