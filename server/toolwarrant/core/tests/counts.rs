//! Counts by many threads, as a monitor reads them.

use std::thread;
use std::time::Duration;
use toolwarrant_core::counts::Requests;

mod contract {
    //! The print shop's contract, written against this crate alone.
    toolwarrant_macros::contract!("../../../tests/services/print_shop/spec", runtime = ::toolwarrant_core);
}

#[test]
fn what_many_threads_count_is_one_number_for_each_tool_and_outcome() {
    let counts = Requests::new(&contract::CATALOGUE);
    let [first, second, ..] = contract::CATALOGUE.tools else { panic!("tools") };
    let code = second.errors.last().expect("an error").code;
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                for millis in 0..10 {
                    counts.count_call(first, "ok", Some(Duration::from_millis(millis)));
                    counts.count_call(second, code, Some(Duration::ZERO));
                }
                (0..5).for_each(|_| counts.count_call(second, code, None));
                counts.count_call(second, "cancelled", None);
                counts.count_call(second, "no such outcome", None);
                counts.unsound.add(7);
            });
        }
    });
    let told = |n: usize| -> Vec<_> { counts.tools()[n].outcomes().filter(|(_, calls)| *calls > 0).collect() };
    assert_eq!(told(first.index), [("ok", 60)]);
    assert_eq!(told(second.index), [("cancelled", 6), (code, 90)]);
    let ([below_1, below_5, below_10, ..], millis) = counts.tools()[first.index].took().get();
    assert_eq!((below_1, below_5, below_10, millis), (6, 24, 30, 6 * 45));
    assert_eq!((counts.unsound.get(), counts.rate_limited.get()), (42, 0));
}
