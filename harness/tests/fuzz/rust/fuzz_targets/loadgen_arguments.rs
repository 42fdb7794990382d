//! Any command line is parsed or rejected. The target does not resolve hosts or open files (`Plan::new`).

#![no_main]

use clap::Parser;
use libfuzzer_sys::fuzz_target;
use tfb_fuzz::arguments::Arguments;

fuzz_target!(|text: &str| {
    let Ok(arguments) = Arguments::try_parse_from(["loadgen"].into_iter().chain(text.split('\0'))) else { return };
    assert!(arguments.connections > 0 && arguments.threads > 0 && arguments.depth > 0);
    assert!(arguments.rate.is_none_or(|rate| rate > 0.0 && rate <= 1e8));
    assert!((0.0..=1.0).contains(&arguments.responses.share));
    for (name, value) in &arguments.headers {
        assert!(!name.is_empty() && !name.contains([':', '\r', '\n']) && !value.contains(['\r', '\n']));
    }
});
