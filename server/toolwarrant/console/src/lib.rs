//! The console: pages of what an operator may see and do. It knows what the command line answers, and
//! nothing else of the service.

pub mod pictures;
