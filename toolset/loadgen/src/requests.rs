//! What is asked for: the same request all the time, or each time one drawn from a table.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::arrivals::Random;
use crate::response::ended_by_crlf;

/// One request, ready to be sent.
#[derive(Clone, Debug)]
pub struct Request {
    pub bytes: Vec<u8>, // all of it
    pub target: String, // of its request line
    pub bodiless: bool, // whether its answer has no body, whatever that declares
    status: u16,        // of a good answer; 0: any 2xx
    up_to: f64,         // its weight and those before it
}

impl Request {
    /// Whether an answer of this status is a good one.
    #[inline]
    pub fn expects(&self, status: u16) -> bool {
        if self.status == 0 { (200..300).contains(&status) } else { self.status == status }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    head: String, // request line and header lines, with the empty line at their end
    body_base64: String,
    status: u16,
    weight: f64,
}

/// Never empty; each of the requests is drawn as often as its weight says.
#[derive(Clone, Debug)]
pub struct Requests(Vec<Request>);

impl Requests {
    /// GET of one target with these lines of headers.
    pub fn one(target: &str, lines: &str) -> Self {
        let bytes = format!("GET {target} HTTP/1.1\r\n{lines}\r\n").into_bytes();
        Self(vec![Request { bytes, target: target.to_owned(), bodiless: false, status: 0, up_to: 1.0 }])
    }

    /// The requests of a text of JSON lines; an error names the line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (mut made, mut up_to) = (Vec::new(), 0.0);
        for (at, line) in text.lines().enumerate() {
            let error = |message: String| format!("line {}: {message}", at + 1);
            let line: Line = serde_json::from_str(line).map_err(|wrong| error(wrong.to_string()))?;
            let mut fields = [httparse::EMPTY_HEADER; 128];
            let mut parsed = httparse::Request::new(&mut fields);
            let ends =
                parsed.parse(line.head.as_bytes()).is_ok_and(|end| end == httparse::Status::Complete(line.head.len()));
            let ends = ends && ended_by_crlf(line.head.as_bytes());
            let (true, Some(method), Some(target)) = (ends, parsed.method, parsed.path) else {
                return Err(error("head: request line, header lines and an empty line are expected".into()));
            };
            if !(line.weight > 0.0 && line.weight.is_finite()) {
                return Err(error(format!("weight {}: more than 0 is expected", line.weight)));
            }
            up_to += line.weight;
            if up_to.is_infinite() {
                return Err(error(format!("weight {}: the sum of all weights is too large", line.weight)));
            }
            let body = STANDARD.decode(&line.body_base64).map_err(|wrong| error(format!("body_base64: {wrong}")))?;
            let (bytes, target) = ([line.head.as_bytes(), &body].concat(), target.to_owned());
            made.push(Request { bytes, target, bodiless: method == "HEAD", status: line.status, up_to });
        }
        if made.is_empty() { Err("holds no request".into()) } else { Ok(Self(made)) }
    }

    /// The place of the next one.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> u32 {
        let Some(last) = self.0.len().checked_sub(1).filter(|&last| last > 0) else { return 0 };
        let point = random.unit() * self.0[last].up_to;
        self.0.partition_point(|request| request.up_to <= point).min(last) as u32
    }

    /// The request of a place.
    #[inline]
    pub fn at(&self, place: u32) -> &Request {
        &self.0[place as usize]
    }

    /// Whether there are several.
    pub fn drawn(&self) -> bool {
        self.0.len() > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "{\"head\":\"POST /x?y HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n\",\"body_base64\":\"aGk=\",\"status\":201,\"weight\":1}\n\
        {\"head\":\"HEAD / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n\",\"body_base64\":\"\",\"status\":0,\"weight\":3}\n";

    #[test]
    fn a_line_is_a_request_and_is_drawn_by_its_weight() {
        let made = Requests::parse(TWO).unwrap();
        assert_eq!(
            (made.at(0).bytes.as_slice(), made.at(0).target.as_str()),
            (&b"POST /x?y HTTP/1.1\r\nHost: a\r\n\r\nhi"[..], "/x?y")
        );
        assert_eq!((made.at(0).expects(201), made.at(0).expects(200), made.at(0).bodiless), (true, false, false));
        assert_eq!((made.at(1).expects(204), made.at(1).expects(304), made.at(1).bodiless), (true, false, true));
        let mut random = Random::new(1);
        let second = (0..100_000).filter(|_| made.draw(&mut random) == 1).count();
        assert!((74_000..76_000).contains(&second), "{second}");
    }

    #[test]
    fn what_does_not_fit_is_named() {
        for (was, is, message) in [
            ("Host: a", "Host a", "line 1: head: request line, header lines"),
            ("a\\r\\n\\r\\n", "a\\r\\n", "line 1: head: "),
            ("\\r\\n\\r\\n", "\\r\\n\\r\\nmore", "line 1: head: "),
            ("\\r\\n\\r\\n", "\\n\\n", "line 1: head: "),
            (
                ":3}",
                ":1e308}\n{\"head\":\"GET / HTTP/1.1\\r\\n\\r\\n\",\"body_base64\":\"\",\"status\":0,\"weight\":1e308}",
                "line 3: weight",
            ),
            ("aGk=", "?", "line 1: body_base64: "),
            (":3}", ":0}", "line 2: weight 0: more than 0"),
            ("weight", "wieght", "line 1: unknown field `wieght`"),
            (TWO, "", "holds no request"),
        ] {
            let error = Requests::parse(&TWO.replace(was, is)).unwrap_err();
            assert!(error.contains(message), "{is}: {error}");
        }
    }
}
