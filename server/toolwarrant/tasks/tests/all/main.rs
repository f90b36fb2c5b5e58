//! The engine: by its ports, and in simulated worlds.

mod engine;
mod simulation;
