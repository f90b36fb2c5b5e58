//! Folders that change under a running program, and tasks that it cannot read.

mod swapped;
mod unread;
