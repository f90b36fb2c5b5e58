//! Phones of ARMCloud, VMOS Cloud and VSPhone, which have one interface.

pub mod listing;
pub mod rows;
