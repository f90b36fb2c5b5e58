//! The compiler's messages for a maintainer: each file of `ui/` must fail with the output in its
//! `.stderr` file.

use std::os::unix::fs::symlink;
use std::path::Path;

#[test]
fn mistakes_in_handlers_and_contracts_are_compile_errors_that_say_what_to_do() {
    link_contracts();
    trybuild::TestCases::new().compile_fail("../../tests/contract/ui/*.rs");
}

/// The files are compiled in a package outside this workspace, and the path of a contract is
/// relative to its package.
fn link_contracts() {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the folder of what is built");
    let package = target.join("tests/trybuild").join(env!("CARGO_PKG_NAME"));
    std::fs::create_dir_all(&package).expect("a folder of the target");
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    for folder in ["services/print_shop", "contract/ui"] {
        let folder = tests.join(folder);
        let link = package.join(folder.file_name().expect("a name"));
        let _ = std::fs::remove_file(&link);
        symlink(folder, link).expect("a link in the target");
    }
}
