//! The state that all keys of an application share.

use super::grants::Grants;
use crate::catalogue::Catalogue;
use crate::limit::Window;
use crate::permissions::PermissionSet;
use crate::reply::ToolLists;
use crate::toolsets::Toolsets;
use bytes::Bytes;
use std::sync::{Arc, OnceLock};

#[derive(Debug)]
pub struct Application {
    pub id: Box<str>,
    pub name: Box<str>,
    /// None while it is suspended.
    pub permissions: PermissionSet,
    pub suspended: bool,
    pub toolsets: Toolsets,
    pub grants: Grants,
    /// The same object after a change, so that spent requests still count.
    pub window: Arc<Window>,
    /// For these permissions, made at the first request.
    pub(crate) tools: OnceLock<ToolLists>,
    /// A JSON string, also made at the first request.
    pub(crate) instructions: OnceLock<Bytes>,
}

impl Application {
    #[must_use]
    pub fn new(id: &str, name: &str, permissions: PermissionSet, grants: Grants, window: Arc<Window>) -> Self {
        let (tools, instructions, toolsets) = Default::default();
        let (id, name) = (id.into(), name.into());
        Self { id, name, permissions, suspended: false, toolsets, grants, window, tools, instructions }
    }

    #[must_use]
    pub fn with_toolsets(self, toolsets: Toolsets, catalogue: &Catalogue) -> Self {
        Self { toolsets, permissions: toolsets.open(catalogue, self.permissions), ..self }
    }

    #[must_use]
    pub fn suspend(self) -> Self {
        Self { permissions: PermissionSet::default(), suspended: true, ..self }
    }
}
