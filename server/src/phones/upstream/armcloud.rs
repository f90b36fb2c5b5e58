//! The adapter for VMOS Cloud, VSPhone and ARMCloud, which share one interface.

pub mod api;
pub mod sign;
