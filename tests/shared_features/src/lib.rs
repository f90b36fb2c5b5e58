//! The features of libraries that any test of the workspace needs. A package that depends on this
//! one is built with the libraries that all others use, so that no library is built twice. `cargo
//! run` builds the product with them, too, and a package for users without them.
