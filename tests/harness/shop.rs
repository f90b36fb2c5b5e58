//! The print shop as a second contract for tests of the framework. Its writes never end.

pub(crate) use print_shop::contract::{CATALOGUE, Contract};

use crate::harness::{Key, Server, Tenant, serve};
use print_shop::Shop;
use print_shop::machines::Machines;
use std::sync::Arc;
use toolwarrant::BoxFuture;
use toolwarrant::tasks::{Executor, Leave, Reading, Sent, Unreadable, Write};

pub(crate) async fn shop(tenants: Vec<Tenant>) -> (Server, Vec<Vec<Key>>) {
    serve(|_| (Contract(Arc::new(Shop::new(Machines::default()))), Arc::new(Mute)), tenants).await
}

/// Accepts every write and never reports its end.
pub(crate) struct Mute;

impl Executor for Mute {
    fn baseline<'a>(&'a self, _: &'a Write) -> BoxFuture<'a, Result<String, Unreadable>> {
        Box::pin(async { Ok("1".to_owned()) })
    }

    fn send<'a>(&'a self, _: &'a Write, _: Leave) -> BoxFuture<'a, Sent> {
        Box::pin(std::future::pending())
    }

    fn look_up<'a>(&'a self, _: &'a Write) -> BoxFuture<'a, Result<Option<Sent>, Unreadable>> {
        Box::pin(std::future::pending())
    }

    fn probe<'a>(&'a self, _: &'a Write) -> BoxFuture<'a, Reading> {
        Box::pin(std::future::pending())
    }
}
