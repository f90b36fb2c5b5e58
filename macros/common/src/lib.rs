//! The parts that the compiler of contracts and the server share. This crate knows no contract and
//! no server.

mod excerpt;
mod joiners;
pub mod json;
mod limits;
mod listed;
mod names;
mod page;
pub mod shape;
mod visible;

pub use excerpt::{Excerpt, excerpt, line_column, shorten};
pub use joiners::{find_deceiving, is_needed};
pub use limits::{
    COMMANDS, JSON_LEVELS, MAX_INTEGER, MAX_WAIT_SECONDS, REMARK_MAX_CHARS, TASKS_KEPT_DAYS, UNTRUSTED_MAX_CHARS,
    UNTRUSTED_NAME_MAX_CHARS, URL_MAX_CHARS, deceives,
};
pub use listed::{ListForm, ToolHints, ToolItem};
pub use names::{nearest, suggestion};
pub use page::{read_text, table_row};
pub use visible::{escape_json, escape_line, escape_text};
