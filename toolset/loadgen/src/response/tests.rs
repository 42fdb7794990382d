use super::*;

/// Read a stream in pieces of `piece` bytes. Return status, body and size of each response.
fn read(stream: &[u8], piece: usize) -> Result<Vec<(u16, Vec<u8>, u64)>, Violation> {
    let (mut reader, mut cache, mut capture) = (Reader::default(), HeadCache::default(), CapturedResponse::new(0));
    let mut responses = Vec::new();
    for part in stream.chunks(piece) {
        let mut at = 0;
        while at < part.len() {
            let (used, response) = reader.advance(&part[at..], &mut cache, Some(&mut capture))?;
            at += used;
            if let Some(response) = response {
                responses.push((response.status, capture.body.clone(), response.size));
            }
        }
    }
    if let Some(response) = reader.end() {
        responses.push((response.status, capture.body.clone(), response.size));
    }
    Ok(responses)
}

const MIXED: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello\
HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nagain\
HTTP/1.1 204 No Content\r\nServer: x\r\n\r\n\
HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n5\r\nhello\r\n6;a=b\r\n world\r\n0\r\nX-Sum: 1\r\n\r\n\
HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 503 \r\nContent-Length: 0\r\n\r\n\
HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n\
HTTP/1.1 404\r\nContent-Length: 2\r\n\r\nno\
HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na\
HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nabcdefghijkl\
HTTP/1.1 200 OK\r\n\r\nup to the end";

#[test]
fn responses_do_not_depend_on_segmentation() {
    let expected = read(MIXED, MIXED.len()).unwrap();
    let bodies: Vec<(u16, &[u8])> = expected.iter().map(|(status, body, _)| (*status, body.as_slice())).collect();
    assert_eq!(
        bodies,
        [
            (200, b"hello".as_slice()),
            (200, b"again"),
            (204, b""),
            (200, b"hello world"),
            (503, b""),
            (304, b""),
            (404, b"no"),
            (200, b"a"),
            (200, b"abcdefghijkl"), // the head starts like the previous head
            (200, b"up to the end"),
        ]
    );
    assert_eq!(expected.iter().map(|(_, _, size)| size).sum::<u64>(), MIXED.len() as u64);
    for piece in 1..60 {
        assert_eq!(read(MIXED, piece).unwrap(), expected, "pieces of {piece}");
    }
}

#[test]
fn close_follows_connection_header() {
    let close = |head: &[u8]| parse_head(head).unwrap().close;
    assert!(!close(b"HTTP/1.1 200 OK\r\n\r\n"));
    assert!(close(b"HTTP/1.1 200 OK\r\nConnection: foo, Close\r\n\r\n"));
    assert!(close(b"HTTP/1.0 200 OK\r\n\r\n"));
    assert!(!close(b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n"));
}

const OK: &str = "HTTP/1.1 200 OK";

#[test]
fn invalid_responses_are_rejected() {
    let (none, line, size) = ("invalid status line", "invalid header line", "chunk size is not a hexadecimal number");
    for (start, rest, reason) in [
        ("SSH-2.0-x", "", "not an HTTP/1 status line"),
        ("HTTP/1.1 abc", "", none),
        ("HTTP/1.1 20", "", none),
        ("HTTP/1.1 099 x", "", none),
        ("HTTP/1.1 2000", "", none),
        ("HTTP/1.2 200 OK", "", "not HTTP/1.1 or HTTP/1.0"),
        ("HTTP/1.1 101 Up", "", "unsolicited protocol switch"),
        (OK, "no colon\r\n", line),
        (OK, "A b: c\r\n", line),
        (OK, " A: b\r\n", line),
        (OK, "A: b\nC: d\r\n", "line ends without a carriage return"),
        (OK, "Content-Length: 5x\r\n", "Content-Length is not a number"),
        (OK, "Content-Length: -5\r\n", "Content-Length is not a number"),
        (OK, "Content-Length: 5\r\nContent-Length: 6\r\n", "different Content-Length headers"),
        (OK, "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "both Content-Length and Transfer-Encoding"),
        (OK, "Transfer-Encoding: gzip\r\n", "Transfer-Encoding is not chunked"),
        (OK, "Transfer-Encoding: chunked\r\n\r\nzz", size),
        (OK, "Transfer-Encoding: chunked\r\n\r\n1\nabc", size),
        (OK, "Transfer-Encoding: chunked\r\n\r\n1\r\nabc", "chunk is longer than its size"),
    ] {
        let stream = format!("{start}\r\n{rest}\r\n");
        for piece in [1, 3, stream.len()] {
            let error = read(stream.as_bytes(), piece).expect_err(&stream);
            assert_eq!(error.0, reason, "{stream} in pieces of {piece}");
        }
    }
}

#[test]
fn endless_heads_are_rejected() {
    let mut stream = b"HTTP/1.1 200 OK\r\n".to_vec();
    stream.extend(b"X: y\r\n".repeat(20_000));
    let error = read(&stream, 1000).unwrap_err();
    assert_eq!(error.0, "header section is longer than 64 KiB");
}

#[test]
fn head_limit_does_not_depend_on_segmentation() {
    for (length, fits) in [(HEAD_LIMIT, true), (HEAD_LIMIT + 1, false)] {
        let frame = b"HTTP/1.1 204 No Content\r\nX: \r\n\r\n".len();
        let head = format!("HTTP/1.1 204 No Content\r\nX: {}\r\n\r\n", "x".repeat(length - frame));
        for piece in [1, 100, 65_000, head.len()] {
            assert_eq!(read(head.as_bytes(), piece).is_ok(), fits, "{length} bytes in pieces of {piece}");
        }
    }
}
