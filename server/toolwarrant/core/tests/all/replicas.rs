//! Several replicas of one store: what a change on one of them means for the others, and what each
//! may answer if it cannot reach the store.

mod answers;
mod directory;
mod harness;
mod link;
mod membership;
