//! An application: the state that its keys share.

use super::grants::Grants;
use crate::limit::Window;
use crate::permissions::PermissionSet;
use crate::reply::ToolLists;
use bytes::Bytes;
use std::sync::{Arc, OnceLock};

/// An application. All its keys share this state.
#[derive(Debug)]
pub struct Application {
    /// Its id in the audit and in storage.
    pub id: Box<str>,
    /// Its name for people.
    pub name: Box<str>,
    /// The permissions that it holds; none while it is suspended.
    pub permissions: PermissionSet,
    /// True if its operator has suspended it.
    pub suspended: bool,
    /// The targets that it may see.
    pub grants: Grants,
    /// Its request budget. It stays the same object when the application is changed, so spent
    /// requests still count.
    pub window: Arc<Window>,
    /// The tools that `tools/list` shows for these permissions, made when they are first requested.
    pub(crate) tools: OnceLock<ToolLists>,
    /// The instructions for these permissions as a JSON string, also made at the first request.
    pub(crate) instructions: OnceLock<Bytes>,
}

impl Application {
    /// Makes an application with that budget.
    #[must_use]
    pub fn new(id: &str, name: &str, permissions: PermissionSet, grants: Grants, window: Arc<Window>) -> Self {
        let (tools, instructions) = (OnceLock::new(), OnceLock::new());
        Self { id: id.into(), name: name.into(), permissions, suspended: false, grants, window, tools, instructions }
    }

    /// Takes all permissions away, until its operator resumes it.
    #[must_use]
    pub fn suspend(self) -> Self {
        Self { permissions: PermissionSet::default(), suspended: true, ..self }
    }
}
