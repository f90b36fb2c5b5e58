//! Everything that the product promises, tried at its boundary.

mod print_shop;
