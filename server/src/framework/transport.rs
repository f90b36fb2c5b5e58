//! How bytes come and go. [`edge`] owns connections, deadlines and sizes.

pub mod edge;
