//! Any scenario is parsed or rejected. A parsed scenario's requests are well-formed, whatever the server responds.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tfb_fuzz::random::Random;
use tfb_fuzz::scenario::Scenario;

const HEADERS: &str = "Host: a\r\n";

/// Assert that a request is correctly framed and that its body, if any, is JSON.
fn check(request: &[u8]) {
    let end = memchr::memmem::find(request, b"\r\n\r\n").expect("a head ends with an empty line") + 4;
    let (head, body) = (std::str::from_utf8(&request[..end]).expect("a head is ASCII"), &request[end..]);
    let mut lines = head.lines();
    let words: Vec<&str> = lines.next().expect("a request line").split(' ').collect();
    let [method, target, "HTTP/1.1"] = words[..] else { panic!("no request line: {head:?}") };
    assert!(method.bytes().all(|byte| byte.is_ascii_uppercase()));
    assert!(target.starts_with('/') && target.bytes().all(|byte| byte.is_ascii_graphic()));
    let length = lines.find_map(|line| line.strip_prefix("Content-Length: ")).map_or(0, |text| text.parse().unwrap());
    assert_eq!(body.len(), length);
    if length > 0 {
        serde_json::from_slice::<Value>(body).expect("a body is a JSON document");
    }
}

fuzz_target!(|data: &[u8]| {
    let mut parts = data.split(|&byte| byte == 0);
    let Ok(text) = std::str::from_utf8(parts.next().unwrap_or_default()) else { return };
    let Ok(scenario) = Scenario::parse(text) else { return };
    let mut random = Random::new(1);
    let (mut out, mut scratch) = (Vec::new(), String::new());
    for case in &scenario.use_cases {
        let mut values = case.draw(&mut random);
        assert_eq!(values.len(), case.variables.len());
        for step in &case.steps {
            assert!(step.operation < scenario.operations.len());
            step.write(HEADERS, &values, &mut out, &mut scratch);
            check(&out);
            if !step.capture(parts.next().unwrap_or(b"{}"), &mut values) {
                break; // the load generator stops here as well
            }
        }
    }
});
