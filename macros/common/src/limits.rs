//! The limits and the refused characters that the contract compiler reports to clients and the
//! server enforces, and the commands that every program has. One table, so the two cannot drift
//! apart.

/// 2^53 - 1, the largest that every JSON reader represents exactly (RFC 8259, section 6).
pub const MAX_INTEGER: i64 = (1 << 53) - 1;

pub const UNTRUSTED_MAX_CHARS: usize = 64;

/// A name in a map of others.
pub const UNTRUSTED_NAME_MAX_CHARS: usize = 256;

/// Of a value that is free JSON.
pub const JSON_LEVELS: usize = 16;

/// Two IPv6 addresses with words between them fit.
pub const REMARK_MAX_CHARS: usize = 256;

pub const URL_MAX_CHARS: usize = 2_048;

pub const MAX_WAIT_SECONDS: u32 = 50;

pub const TASKS_KEPT_DAYS: u32 = 7;

/// The command for a resource has the resource's name, so no resource has one of these.
#[rustfmt::skip]
pub const COMMANDS: [&str; 26] = [
    "acts", "app", "audit", "backup", "bridge", "call", "clock", "cluster", "completion", "config", "console", "doctor",
    "files", "find", "help", "key", "overview", "ready", "refunds", "restore", "serve", "sign",
    "stdio", "store", "task", "tools",
];

/// Returns true for control characters, line separators, fillers and format characters, which hide
/// or reorder text.
#[must_use]
pub fn deceives(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e01ef}')
}
