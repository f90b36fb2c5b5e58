//! Prints the reference of the metrics of a program, whose name is the argument.

use toolwarrant_operator::{Names, metrics};

fn main() {
    let program = std::env::args().nth(1).unwrap_or_default().leak();
    print!("{}", metrics::reference(&Names::of(program, "")));
}
