//! The parts that every service needs, by their public interface.

mod answers;
mod forms;
mod pipeline;
mod registry;
mod stored;

mod contract {
    //! The print shop's contract, written against this crate alone.
    toolwarrant_macros::contract!("../../../tests/services/print_shop/spec", runtime = ::toolwarrant_core);
}

mod notes {
    //! A contract with each form of arguments and results.
    toolwarrant_macros::contract!("../../../tests/contract/forms", runtime = ::toolwarrant_core);
}
