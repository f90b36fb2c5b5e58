//! Pictures: each a struct of numbers, an SVG of them, and its twin in text.

pub mod timeline;
