//! `cloudphone`: cloud phones as tools for AI agents. ARCHITECTURE.md is the map.

pub mod clock;
pub mod framework;
