//! Any request table is parsed or rejected. Parsed tables yield only valid requests.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tfb_fuzz::random::Random;
use tfb_fuzz::requests::RequestTable;

fuzz_target!(|text: &str| {
    let Ok(requests) = RequestTable::parse(text) else { return };
    let mut random = Random::new(1);
    for _ in 0..4 {
        let request = requests.get(requests.draw(&mut random));
        assert!(memchr::memmem::find(&request.bytes, b"\r\n\r\n").is_some());
        assert!(!request.target.is_empty() && !request.target.contains(' '));
    }
});
