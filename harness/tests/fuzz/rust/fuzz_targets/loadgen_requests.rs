//! A table of requests is read or refused; each draw from one that was read finds a request.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tfb_fuzz::arrivals::Random;
use tfb_fuzz::requests::Requests;

fuzz_target!(|text: &str| {
    let Ok(requests) = Requests::parse(text) else { return };
    let mut random = Random::new(1);
    for _ in 0..4 {
        let request = requests.at(requests.draw(&mut random));
        assert!(memchr::memmem::find(&request.bytes, b"\r\n\r\n").is_some());
        assert!(!request.target.is_empty() && !request.target.contains(' '));
    }
});
