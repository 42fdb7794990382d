//! The requests of a load: either a single request that is repeated, or requests drawn by weight from a table.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::http2::EncodedRequest;
use crate::random::Random;
use crate::response::ended_by_crlf;

/// A request, ready to be sent.
#[derive(Clone, Debug)]
pub struct Request {
    pub bytes: Vec<u8>,     // head and body
    pub head_length: usize, // length of the head in `bytes`
    pub target: String,     // request target
    pub bodiless: bool,     // whether the response has no body (HEAD)
    status: u16,            // expected status; 0 for any 2xx
    cumulative_weight: f64, // sum of this request's and all earlier requests' weights
}

impl Request {
    /// Return whether `status` is the expected status.
    #[inline]
    pub fn expects(&self, status: u16) -> bool {
        if self.status == 0 { (200..300).contains(&status) } else { self.status == status }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestLine {
    head: String, // request line and headers, up to and including the empty line
    body_base64: String,
    status: u16,
    weight: f64,
}

/// A table of at least one request. Requests are drawn in proportion to their weights.
#[derive(Clone, Debug)]
pub struct RequestTable(Vec<Request>);

impl RequestTable {
    /// Create a table with a single GET request. `lines` are complete header lines.
    pub fn single_get(target: &str, lines: &str) -> Self {
        let bytes = format!("GET {target} HTTP/1.1\r\n{lines}\r\n").into_bytes();
        let (head_length, target) = (bytes.len(), target.to_owned());
        Self(vec![Request { bytes, head_length, target, bodiless: false, status: 0, cumulative_weight: 1.0 }])
    }

    /// Parse a file with a JSON request per line. An error names the line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (mut requests, mut cumulative_weight) = (Vec::new(), 0.0);
        for (index, line) in text.lines().enumerate() {
            let error = |message: String| format!("line {}: {message}", index + 1);
            let line: RequestLine = serde_json::from_str(line).map_err(|cause| error(cause.to_string()))?;
            let mut fields = [httparse::EMPTY_HEADER; 128];
            let mut parsed = httparse::Request::new(&mut fields);
            let complete =
                parsed.parse(line.head.as_bytes()).is_ok_and(|end| end == httparse::Status::Complete(line.head.len()));
            let complete = complete && ended_by_crlf(line.head.as_bytes());
            let (true, Some(method), Some(target)) = (complete, parsed.method, parsed.path) else {
                return Err(error(
                    "head: not a valid request head; expected a request line, header lines and an empty line".into(),
                ));
            };
            if !(line.weight > 0.0 && line.weight.is_finite()) {
                return Err(error(format!("weight {}: expected a finite number greater than 0", line.weight)));
            }
            cumulative_weight += line.weight;
            if cumulative_weight.is_infinite() {
                return Err(error(format!("weight {}: the sum of all weights is too large", line.weight)));
            }
            let body = STANDARD.decode(&line.body_base64).map_err(|cause| error(format!("body_base64: {cause}")))?;
            let (bytes, target) = ([line.head.as_bytes(), &body].concat(), target.to_owned());
            requests.push(Request {
                bytes,
                head_length: line.head.len(),
                target,
                bodiless: method == "HEAD",
                status: line.status,
                cumulative_weight,
            });
        }
        if requests.is_empty() { Err("the file contains no requests".into()) } else { Ok(Self(requests)) }
    }

    /// Draw a request and return its index.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> u32 {
        let Some(last) = self.0.len().checked_sub(1).filter(|&last| last > 0) else { return 0 };
        let point = random.unit() * self.0[last].cumulative_weight;
        self.0.partition_point(|request| request.cumulative_weight <= point).min(last) as u32
    }

    /// Return the request at an index.
    #[inline]
    pub fn get(&self, index: u32) -> &Request {
        &self.0[index as usize]
    }

    /// Return all requests encoded for HTTP/2. An error names the request's line.
    pub fn encode(&self, scheme: &str) -> Result<Vec<EncodedRequest>, String> {
        let encode = |(index, request): (usize, &Request)| {
            let (head, body) = request.bytes.split_at(request.head_length);
            EncodedRequest::new(&String::from_utf8_lossy(head), body, scheme)
                .map_err(|message| format!("line {}: {message}", index + 1))
        };
        self.0.iter().enumerate().map(encode).collect()
    }

    /// Return the number of requests.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "{\"head\":\"POST /x?y HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n\",\"body_base64\":\"aGk=\",\"status\":201,\"weight\":1}\n\
        {\"head\":\"HEAD / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n\",\"body_base64\":\"\",\"status\":0,\"weight\":3}\n";

    #[test]
    fn requests_are_drawn_by_weight() {
        let table = RequestTable::parse(TWO).unwrap();
        assert_eq!(
            (table.get(0).bytes.as_slice(), table.get(0).target.as_str()),
            (&b"POST /x?y HTTP/1.1\r\nHost: a\r\n\r\nhi"[..], "/x?y")
        );
        assert_eq!((table.get(0).expects(201), table.get(0).expects(200), table.get(0).bodiless), (true, false, false));
        assert_eq!((table.get(1).expects(204), table.get(1).expects(304), table.get(1).bodiless), (true, false, true));
        let mut random = Random::new(1);
        let second = (0..100_000).filter(|_| table.draw(&mut random) == 1).count();
        assert!((74_000..76_000).contains(&second), "{second}");
    }

    #[test]
    fn parse_errors_name_the_line() {
        for (was, is, message) in [
            ("Host: a", "Host a", "line 1: head: not a valid request head"),
            ("a\\r\\n\\r\\n", "a\\r\\n", "line 1: head: "),
            ("\\r\\n\\r\\n", "\\r\\n\\r\\nmore", "line 1: head: "),
            ("\\r\\n\\r\\n", "\\n\\n", "line 1: head: "),
            (
                ":3}",
                ":1e308}\n{\"head\":\"GET / HTTP/1.1\\r\\n\\r\\n\",\"body_base64\":\"\",\"status\":0,\"weight\":1e308}",
                "line 3: weight",
            ),
            ("aGk=", "?", "line 1: body_base64: "),
            (":3}", ":0}", "line 2: weight 0: expected"),
            ("weight", "wieght", "line 1: unknown field `wieght`"),
            (TWO, "", "contains no requests"),
        ] {
            let error = RequestTable::parse(&TWO.replace(was, is)).unwrap_err();
            assert!(error.contains(message), "{is}: {error}");
        }
    }
}
