//! Writes that end once a file `open` stands next to the shares. `sends` there has a line for each.
//!
//! The id of a share says how it behaves. `plain` obeys. `broken` reports success and changes
//! nothing. `quiet` obeys and never answers.

use crate::files::Files;
use std::fs::File;
use std::io::Write as _;
use std::sync::Arc;
use toolwarrant::BoxFuture;
use toolwarrant::tasks::{Executor, Leave, Reading, Sent, Unreadable, Verdict, Write};

pub struct Slow(pub Arc<Files>);

impl Slow {
    fn is_open(&self) -> bool {
        self.0.0.join("open").exists()
    }
}

impl Executor for Slow {
    fn send<'a>(&'a self, write: &'a Write, leave: Leave) -> BoxFuture<'a, Sent> {
        Box::pin(async move {
            let sent = match write.target.starts_with("broken") {
                true => leave.confirm().map_or_else(Sent::NotSent, |()| Sent::Ok),
                false => self.0.send(write, leave).await,
            };
            if !matches!(sent, Sent::Ok) {
                return sent;
            }
            let journal = File::options().create(true).append(true).open(self.0.0.join("sends"));
            let line = format!("{} {}\n", write.target, write.id);
            match journal.and_then(|mut journal| journal.write_all(line.as_bytes())) {
                Err(why) => Sent::Err(why.to_string().into()),
                Ok(()) if write.target.starts_with("quiet") => Sent::NoAnswer("silence".into()),
                Ok(()) => Sent::Pending(write.target.clone()),
            }
        })
    }

    fn look_up<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Result<Option<Sent>, Unreadable>> {
        let sent = if self.is_open() { Sent::Ok } else { Sent::Pending(write.target.clone()) };
        Box::pin(async move { Ok(Some(sent)) })
    }

    fn probe<'a>(&'a self, write: &'a Write) -> BoxFuture<'a, Reading> {
        if self.is_open() {
            return self.0.probe(write);
        }
        let (expected, observed) = ("this text".into(), "a closed share".into());
        Box::pin(async move { Reading { verdict: Verdict::Unreadable, expected, observed } })
    }
}
