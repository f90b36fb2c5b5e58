//! The state that all keys of an application share.

use super::grants::Grants;
use crate::limit::Window;
use crate::permissions::PermissionSet;
use crate::reply::ToolLists;
use bytes::Bytes;
use std::sync::{Arc, OnceLock};

#[derive(Debug)]
pub struct Application {
    pub id: Box<str>,
    pub name: Box<str>,
    /// None while it is suspended.
    pub permissions: PermissionSet,
    pub suspended: bool,
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
        let (tools, instructions) = (OnceLock::new(), OnceLock::new());
        Self { id: id.into(), name: name.into(), permissions, suspended: false, grants, window, tools, instructions }
    }

    #[must_use]
    pub fn suspend(self) -> Self {
        Self { permissions: PermissionSet::default(), suspended: true, ..self }
    }
}
