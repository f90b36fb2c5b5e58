//! A file that is new in the spec folder must be expanded, and no file that exists tells the compiler of it.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../spec/tools");
}
