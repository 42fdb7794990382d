//! Requests as they go on the wire, and the rule by which the bodies of their answers are judged.

use std::io::BufRead;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::response::Sink;

/// The longest line of a request list, in bytes.
const LINE_LIMIT: u64 = 1 << 20;

/// Bytes of a body that are kept of a drawn response; no answer of any test comes near.
const CAPTURE_LIMIT: usize = 1 << 20;
/// What a line of a list may say.
const KNOWN: [&str; 6] = ["target", "method", "headers", "body_base64", "expect_body_base64", "expect_length"];
/// The most requests of a list.
const LIST_LIMIT: usize = 1_000_000;

/// What the body of an answer must be; nothing asked, nothing checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// These bytes.
    pub exact: Option<Vec<u8>>,
    /// A length in this range, both ends included.
    pub length: Option<(u64, u64)>,
}

/// How a body fared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// As asked.
    Right,
    /// Of another length.
    WrongLength,
    /// Other bytes.
    WrongBytes,
}

/// One request, ready to be sent.
#[derive(Clone, Debug)]
pub struct Request {
    /// All its bytes.
    pub bytes: Vec<u8>,
    /// The request target, for the samples.
    pub target: String,
    /// Whether it is HEAD.
    pub head: bool,
    /// What its answer must be.
    pub rule: Rule,
}

impl Request {
    /// The bytes of a request: the headers as given and in their order.
    pub fn new(method: &str, target: &str, headers: &[(String, String)], body: &[u8], rule: Rule) -> Self {
        use std::io::Write;
        let mut bytes = Vec::new();
        let write = "memory takes what is written";
        write!(bytes, "{method} {target} HTTP/1.1\r\n").expect(write);
        for (name, value) in headers {
            write!(bytes, "{name}: {value}\r\n").expect(write);
        }
        if !body.is_empty() && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-length")) {
            write!(bytes, "Content-Length: {}\r\n", body.len()).expect(write);
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(body);
        Self { bytes, target: target.to_owned(), head: method == "HEAD", rule }
    }
}

/// What all requests of a list have in common unless their line says otherwise.
#[derive(Clone, Debug)]
pub struct Defaults<'a> {
    /// The method.
    pub method: &'a str,
    /// Headers in order, Host among them.
    pub headers: &'a [(String, String)],
    /// The rule.
    pub rule: &'a Rule,
}

/// Read a list: one JSON object a line with `target`, and optionally `method`, `headers` (pairs, in place of the common
/// ones), `body_base64`, `expect_body_base64` and `expect_length` (`[least, most]`).
pub fn read_list(name: &str, list: &mut impl BufRead, defaults: &Defaults) -> Result<Vec<Request>, String> {
    use std::io::Read;
    let mut requests = Vec::new();
    let mut line = String::new();
    loop {
        line.clear();
        let read = list.by_ref().take(LINE_LIMIT).read_line(&mut line).map_err(|error| format!("{name}: {error}"))?;
        if read == 0 {
            break;
        }
        let place = format!("{name}: line {}", requests.len() + 1);
        if read as u64 == LINE_LIMIT || requests.len() == LIST_LIMIT {
            return Err(format!("{place}: more than {LINE_LIMIT} bytes, or more than {LIST_LIMIT} requests"));
        }
        requests.push(from_line(&line, defaults).map_err(|error| format!("{place}: {error}"))?);
    }
    if requests.is_empty() {
        Err(format!("{name}: no request in it; one JSON object a line is expected"))
    } else {
        Ok(requests)
    }
}

fn from_line(line: &str, defaults: &Defaults) -> Result<Request, String> {
    let Ok(Value::Object(fields)) = serde_json::from_str(line) else { return Err("not a JSON object".into()) };
    if let Some(key) = fields.keys().find(|key| !KNOWN.contains(&key.as_str())) {
        return Err(format!("unknown key {key:?}; known are {}", KNOWN.join(", ")));
    }
    let text = |key: &str| match fields.get(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(format!("{key} is not a string")),
    };
    let bytes =
        |key: &str| text(key)?.map(|text| STANDARD.decode(text).map_err(|error| format!("{key}: {error}"))).transpose();
    let target = text("target")?.ok_or("target is missing")?;
    if target.is_empty() || target.contains(|character: char| character.is_control() || character == ' ') {
        return Err(format!("{target:?} is no request target"));
    }
    let headers: Option<Vec<(String, String)>> = fields
        .get("headers")
        .map(|pairs| serde_json::from_value(pairs.clone()).map_err(|error| format!("headers: {error}")))
        .transpose()?;
    let length: Option<(u64, u64)> = fields
        .get("expect_length")
        .map(|pair| serde_json::from_value(pair.clone()).map_err(|error| format!("expect_length: {error}")))
        .transpose()?;
    let exact = bytes("expect_body_base64")?;
    let rule = if exact.is_some() || length.is_some() { Rule { exact, length } } else { defaults.rule.clone() };
    Ok(Request::new(
        text("method")?.unwrap_or(defaults.method),
        target,
        headers.as_deref().unwrap_or(defaults.headers),
        &bytes("body_base64")?.unwrap_or_default(),
        rule,
    ))
}

/// What is kept of a response that the harness will judge.
#[derive(Clone, Debug, Default)]
pub struct Capture {
    /// The head of the response itself, with the empty line at its end.
    pub head: Vec<u8>,
    /// The body without framing.
    pub body: Vec<u8>,
}

/// Compares a body with its rule while it comes, and keeps the response where that is asked.
#[derive(Debug, Default)]
pub struct Judge<'a> {
    rule: Option<&'a Rule>,
    progress: Progress,
    capture: Option<&'a mut Capture>,
}

/// How far a comparison has come: survives from one read to the next.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    compared: usize,
    differs: bool,
}

impl<'a> Judge<'a> {
    /// Go on with a response that has been compared so far.
    #[inline]
    pub fn new(rule: Option<&'a Rule>, progress: Progress, capture: Option<&'a mut Capture>) -> Self {
        Self { rule, progress, capture }
    }

    /// How far it has come.
    #[inline]
    pub fn progress(&self) -> Progress {
        self.progress
    }
}

impl Progress {
    /// The verdict on a complete body of `length` bytes.
    #[inline]
    pub fn judge(self, rule: &Rule, length: u64) -> Judgement {
        match rule {
            Rule { exact: Some(exact), .. } if exact.len() as u64 != length => Judgement::WrongLength,
            Rule { length: Some((least, most)), .. } if length < *least || length > *most => Judgement::WrongLength,
            Rule { exact: Some(_), .. } if self.differs => Judgement::WrongBytes,
            _ => Judgement::Right,
        }
    }
}

impl Sink for Judge<'_> {
    #[inline]
    fn head(&mut self, bytes: &[u8]) {
        self.progress = Progress::default();
        if let Some(capture) = &mut self.capture {
            capture.head.clear();
            capture.head.extend_from_slice(bytes);
            capture.body.clear();
        }
    }

    #[inline]
    fn body(&mut self, bytes: &[u8]) {
        if let Some(Rule { exact: Some(exact), .. }) = self.rule {
            let end = self.progress.compared + bytes.len();
            self.progress.differs |= exact.get(self.progress.compared..end) != Some(bytes);
            self.progress.compared = end;
        }
        if let Some(capture) = &mut self.capture {
            let room = CAPTURE_LIMIT.saturating_sub(capture.body.len());
            capture.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(rule: &Rule, parts: &[&[u8]]) -> Judgement {
        let mut progress = Progress::default();
        for part in parts {
            let mut judge = Judge::new(Some(rule), progress, None);
            judge.body(part);
            progress = judge.progress();
        }
        progress.judge(rule, parts.iter().map(|part| part.len() as u64).sum())
    }

    #[test]
    fn a_body_is_compared_across_its_parts() {
        let rule = Rule { exact: Some(b"Hello, World!".to_vec()), length: None };
        assert_eq!(judge(&rule, &[b"Hello", b", Wor", b"ld!"]), Judgement::Right);
        assert_eq!(judge(&rule, &[b"Hello", b", wor", b"ld!"]), Judgement::WrongBytes);
        assert_eq!(judge(&rule, &[b"Hello, World!", b"!"]), Judgement::WrongLength);
        assert_eq!(judge(&rule, &[]), Judgement::WrongLength);
    }

    #[test]
    fn a_length_may_lie_in_a_range() {
        let rule = Rule { exact: None, length: Some((2, 3)) };
        assert_eq!(judge(&rule, &[b"ab"]), Judgement::Right);
        assert_eq!(judge(&rule, &[b"a", b"bcd"]), Judgement::WrongLength);
        assert_eq!(judge(&rule, &[b"a"]), Judgement::WrongLength);
    }

    fn list(text: &str) -> Result<Vec<Request>, String> {
        let headers = [("Host".to_owned(), "a:1".to_owned())];
        let rule = Rule::default();
        read_list("list", &mut text.as_bytes(), &Defaults { method: "GET", headers: &headers, rule: &rule })
    }

    #[test]
    fn a_list_says_for_each_request_what_differs() {
        let requests = list(concat!(
            "{\"target\": \"/a?b=c\"}\n",
            "{\"target\": \"/p\", \"method\": \"POST\", \"headers\": [[\"Host\", \"b\"]], \"body_base64\": \"aGk=\", \"expect_length\": [1, 2]}\n",
        ))
        .unwrap();
        assert_eq!(requests[0].bytes, b"GET /a?b=c HTTP/1.1\r\nHost: a:1\r\n\r\n");
        assert_eq!(requests[1].bytes, b"POST /p HTTP/1.1\r\nHost: b\r\nContent-Length: 2\r\n\r\nhi");
        assert_eq!(requests[1].rule, Rule { exact: None, length: Some((1, 2)) });
    }

    #[test]
    fn a_broken_list_is_named_with_its_line() {
        for (text, message) in [
            ("", "list: no request in it; one JSON object a line is expected"),
            ("[]", "list: line 1: not a JSON object"),
            ("{\"target\": \"/\"}\n{\"url\": \"/\"}", "list: line 2: unknown key \"url\"; known are target"),
            ("{\"target\": \"/a b\"}", "list: line 1: \"/a b\" is no request target"),
            ("{\"method\": \"GET\"}", "list: line 1: target is missing"),
            ("{\"target\": \"/\", \"body_base64\": \"%\"}", "list: line 1: body_base64: "),
        ] {
            let error = list(text).unwrap_err();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
