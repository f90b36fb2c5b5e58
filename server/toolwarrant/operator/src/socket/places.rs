//! The places for connections of a socket: a user of a group takes neither all of them nor the
//! owner's.

use crate::error::OperatorError;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio::net::UnixStream;
use toolwarrant_base::ignore_poison;
use toolwarrant_core::act::Channel;

pub(super) const CONNECTIONS_MAX: usize = 64;
pub(super) const CONNECTIONS_OF_USER: usize = 8;

#[derive(Clone, Default)]
pub(super) struct SocketUsers(Arc<Mutex<HashMap<u32, usize>>>);

/// A place that is free again when this is dropped.
pub(super) struct ConnectionPlace(u32, SocketUsers);

impl SocketUsers {
    pub(super) fn admit(&self, stream: &UnixStream, channel: Channel) -> Option<ConnectionPlace> {
        let most = match channel {
            Channel::OperateSocket | Channel::ViewSocket | Channel::Console => CONNECTIONS_OF_USER,
            Channel::OwnerSocket | Channel::Offline | Channel::Start => CONNECTIONS_MAX,
        };
        let user = stream.peer_cred().ok()?.uid();
        let mut users = ignore_poison(self.0.lock());
        if users.values().sum::<usize>() >= CONNECTIONS_MAX || users.get(&user).is_some_and(|held| *held >= most) {
            return None;
        }
        *users.entry(user).or_default() += 1;
        Some(ConnectionPlace(user, self.clone()))
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        let Self(user, SocketUsers(users)) = self;
        let mut users = ignore_poison(users.lock());
        let left = users.remove(user).unwrap_or_default().saturating_sub(1);
        if left > 0 {
            users.insert(*user, left);
        }
    }
}

/// Answers without waiting: a new connection has room for this.
pub(super) fn refuse(stream: &UnixStream) {
    let busy = OperatorError::unavailable("too many commands are under way on this socket; try again");
    if let Ok(line) = serde_json::to_vec(&Err::<Value, _>(busy)) {
        let _ = stream.try_write(&line);
    }
}
