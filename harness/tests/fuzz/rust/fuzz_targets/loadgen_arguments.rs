//! A command line is read or refused. Nothing is resolved or opened: that is for `Plan::new`.

#![no_main]

use clap::Parser;
use libfuzzer_sys::fuzz_target;
use tfb_fuzz::arguments::Arguments;

fuzz_target!(|text: &str| {
    let Ok(given) = Arguments::try_parse_from(["loadgen"].into_iter().chain(text.split('\0'))) else { return };
    assert!(given.connections > 0 && given.threads > 0 && given.depth > 0);
    assert!(given.rate.is_none_or(|rate| rate > 0.0 && rate <= 1e8));
    assert!((0.0..=1.0).contains(&given.answers_share));
    for (name, value) in &given.headers {
        assert!(!name.is_empty() && !name.contains([':', '\r', '\n']) && !value.contains(['\r', '\n']));
    }
});
