//! Phones of ARMCloud, VMOS Cloud and VSPhone, which have one interface.

pub mod api;
pub mod listing;
pub mod rows;
pub mod sign;
