//! The golden expansion: what the print shop's contract becomes, as a reviewer reads it.

use crate::expand;
use std::path::Path;

#[test]
fn the_print_shops_contract_expands_to_this() {
    let spec = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/print_shop/spec");
    let contract = cloudphone_spec::load(&spec).expect("a contract without problems");
    let code = expand::code(&contract, &syn::parse_quote!(::cloudphone::framework));
    let file = syn::parse2(code).expect("Rust");
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("print_shop", prettyplease::unparse(&file));
    });
}
