//! What adapters share: everything between the port of phones and a platform that is not the platform's own.
//!
//! [`guard`] stands before each call. [`roster`] keeps the ids of phones. [`shell`] runs commands on a phone, [`readings`] what a
//! phone cannot forge, and [`shown`] which readings were seen to follow the truth. [`check`] tries a platform for its operator.
//! Nothing here knows a platform by name.

pub mod check;
pub mod guard;
pub mod readings;
pub mod roster;
pub mod shell;
pub mod shown;
