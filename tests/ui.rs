//! What the compiler says to a maintainer: each file of `ui/` must fail, and with the words beside it.

#[test]
fn mistakes_in_handlers_and_contracts_are_compile_errors_that_say_what_to_do() {
    trybuild::TestCases::new().compile_fail("../tests/ui/*.rs");
}
