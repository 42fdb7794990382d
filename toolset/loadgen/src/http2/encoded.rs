//! Requests encoded for HTTP/2, ahead of the load.

use super::hpack::{CLEAR_TABLE, TABLE_SIZE, entry_size, push_dynamic, push_literal, push_static};

/// HTTP/1.1 fields that HTTP/2 does not use (RFC 9113 section 8.2.2).
const CONNECTION_FIELDS: [&str; 6] =
    ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade", "host"];

/// State of the server's dynamic table, which determines how the next request is encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TableState {
    #[default]
    Empty, // no request has been sent
    Filled,    // it contains `EncodedRequest::fields`
    TooLarge,  // the server wants a smaller table, so the next block empties it
    Abandoned, // it stays empty, and blocks use literals only
}

/// A request, with a header block for each state of the server's dynamic table.
#[derive(Clone, Debug, Default)]
pub struct EncodedRequest {
    pub filling: Vec<u8>, // adds the fields to the table
    pub indexed: Vec<u8>, // refers to the fields in the table
    pub literal: Vec<u8>, // does not use the table
    pub body: Vec<u8>,
    fields: Vec<(String, String)>,
}

impl EncodedRequest {
    /// Convert an HTTP/1.1 request. Errors are messages for the user.
    pub fn new(head: &str, body: &[u8], scheme: &str) -> Result<Self, String> {
        let mut lines = head.split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let (mut host, mut length, mut fields) = ("", None, Vec::new());
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            let (name, value) = (name.to_ascii_lowercase(), value.trim());
            match name.as_str() {
                "host" => host = value,
                "transfer-encoding" => return Err("head: HTTP/2 has no Transfer-Encoding; use Content-Length".into()),
                "content-length" => length = Some(value),
                _ if CONNECTION_FIELDS.contains(&name.as_str()) => {}
                _ => fields.push((name, value.to_owned())),
            }
        }
        fields.insert(0, (":authority".into(), host.to_owned()));
        let mut start = Vec::new();
        for (name, value) in [(":method", method), (":scheme", scheme), (":path", target)] {
            if !push_static(&mut start, name, value) {
                push_literal(&mut start, name, value, false);
            }
        }
        let (mut filling, mut indexed, mut literal) = (start.clone(), start.clone(), start);
        for (place, (name, value)) in fields.iter().enumerate() {
            push_literal(&mut filling, name, value, true);
            push_dynamic(&mut indexed, fields.len() - 1 - place);
            push_literal(&mut literal, name, value, false);
        }
        for (block, value) in [&mut filling, &mut indexed, &mut literal].into_iter().zip(length.iter().cycle()) {
            push_literal(block, "content-length", value, false);
        }
        if filling.len() > 16_000 {
            return Err(format!("head: {} bytes do not fit into a HEADERS frame (limit: 16000)", filling.len()));
        }
        Ok(Self { filling, indexed, literal, body: body.to_vec(), fields })
    }

    /// Return whether all requests can refer to the same entries of the server's dynamic table.
    pub fn share_table(requests: &[Self]) -> bool {
        let Some(first) = requests.first() else { return false };
        let size: usize = first.fields.iter().map(|(name, value)| entry_size(name.as_bytes(), value.as_bytes())).sum();
        size <= TABLE_SIZE && requests.iter().all(|request| request.fields == first.fields)
    }

    /// Append the header block for the table's `state`, and return the table's next state.
    #[inline]
    pub fn push_block(&self, out: &mut Vec<u8>, state: TableState) -> TableState {
        let (block, next) = match state {
            TableState::Filled => (&self.indexed, TableState::Filled),
            TableState::Empty => (&self.filling, TableState::Filled),
            TableState::TooLarge | TableState::Abandoned => (&self.literal, TableState::Abandoned),
        };
        if state == TableState::TooLarge {
            out.push(CLEAR_TABLE);
        }
        out.extend_from_slice(block);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::super::hpack::Decoder;
    use super::*;

    fn fields(decoder: &mut Decoder, request: &EncodedRequest, state: TableState) -> (String, TableState) {
        let (mut block, mut text) = (Vec::new(), String::new());
        let next = request.push_block(&mut block, state);
        let mut field = |name: &[u8], value: &[u8]| {
            text.extend([name, b"=", value, b";"].map(String::from_utf8_lossy));
        };
        decoder.decode(&block, |_| true, &mut field).unwrap();
        (text, next)
    }

    #[test]
    fn every_form_has_the_same_fields() {
        let head =
            "POST /a?b HTTP/1.1\r\nHost: h:1\r\nAccept: */*\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\n";
        let request = EncodedRequest::new(head, b"hi", "https").unwrap();
        let mut decoder = Decoder::default();
        let mut state = TableState::Empty;
        let mut texts = Vec::new();
        for next in [TableState::Filled, TableState::Filled, TableState::TooLarge] {
            let (text, reached) = fields(&mut decoder, &request, state);
            assert_eq!(reached, TableState::Filled);
            texts.push(text);
            state = next;
        }
        for _ in 0..2 {
            let (text, reached) = fields(&mut decoder, &request, state);
            texts.push(text);
            state = reached;
        }
        assert_eq!(state, TableState::Abandoned);
        let expected = ":method=POST;:scheme=https;:path=/a?b;:authority=h:1;accept=*/*;content-length=2;";
        assert_eq!(texts, [expected; 5]);
        assert!(request.indexed.len() < request.filling.len());
    }

    #[test]
    fn tables_are_shared_by_equal_fields() {
        let request = |line: &str| EncodedRequest::new(line, b"", "http").unwrap();
        let (one, two) = ("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n", "GET /2 HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(EncodedRequest::share_table(&[request(one), request(two)]));
        assert!(!EncodedRequest::share_table(&[request(one), request(&two.replace("Host: a", "Host: b"))]));
        assert!(!EncodedRequest::share_table(&[request(&one.replace('a', &"a".repeat(5000)))]));
        let chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert!(EncodedRequest::new(chunked, b"", "http").unwrap_err().contains("Transfer-Encoding"));
    }
}
