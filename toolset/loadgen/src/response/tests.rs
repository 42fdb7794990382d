use super::*;

/// Every response of a stream that comes in pieces of `piece` bytes, as status, body and size on the wire.
fn read(stream: &[u8], piece: usize) -> Result<Vec<(u16, Vec<u8>, u64)>, Violation> {
    let (mut reader, mut cache, mut seen) = (Reader::default(), HeadCache::default(), Capture::default());
    let mut responses = Vec::new();
    for part in stream.chunks(piece) {
        let mut at = 0;
        while at < part.len() {
            let (used, response) = reader.advance(&part[at..], &mut cache, Some(&mut seen))?;
            at += used;
            if let Some(response) = response {
                responses.push((response.status, seen.body.clone(), response.size));
            }
        }
    }
    if let Some(response) = reader.end() {
        responses.push((response.status, seen.body.clone(), response.size));
    }
    Ok(responses)
}

const MIXED: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello\
HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nagain\
HTTP/1.1 204 No Content\r\nServer: x\r\n\r\n\
HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n5\r\nhello\r\n6;a=b\r\n world\r\n0\r\nX-Sum: 1\r\n\r\n\
HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 503 \r\nContent-Length: 0\r\n\r\n\
HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n\
HTTP/1.1 404\r\nContent-Length: 2\r\n\r\nno";

#[test]
fn responses_are_the_same_however_their_bytes_are_cut() {
    let whole = read(MIXED, MIXED.len()).unwrap();
    let bodies: Vec<(u16, &[u8])> = whole.iter().map(|(status, body, _)| (*status, body.as_slice())).collect();
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
        ]
    );
    assert_eq!(whole.iter().map(|(_, _, size)| size).sum::<u64>(), MIXED.len() as u64);
    for piece in 1..60 {
        assert_eq!(read(MIXED, piece).unwrap(), whole, "pieces of {piece}");
    }
}

#[test]
fn a_body_without_length_ends_with_the_connection() {
    let responses = read(b"HTTP/1.1 200 OK\r\n\r\nall of it", 4).unwrap();
    assert_eq!(responses, [(200, b"all of it".to_vec(), 28)]);
}

#[test]
fn close_is_what_the_head_says() {
    let close = |head: &[u8]| parse_head(head).unwrap().close;
    assert!(!close(b"HTTP/1.1 200 OK\r\n\r\n"));
    assert!(close(b"HTTP/1.1 200 OK\r\nConnection: foo, Close\r\n\r\n"));
    assert!(close(b"HTTP/1.0 200 OK\r\n\r\n"));
    assert!(!close(b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n"));
}

#[test]
fn what_is_no_response_is_refused() {
    for (stream, reason) in [
        (b"SSH-2.0-x\r\n\r\n".as_slice(), "not a status line of HTTP/1"),
        (b"HTTP/1.1 abc\r\n\r\n", "a status line that is none"),
        (b"HTTP/1.1 20\r\n\r\n", "a status line that is none"),
        (b"HTTP/1.1 099 x\r\n\r\n", "a status line that is none"),
        (b"HTTP/1.1 2000\r\n\r\n", "a status line that is none"),
        (b"HTTP/1.2 200 OK\r\n\r\n", "neither HTTP/1.1 nor HTTP/1.0"),
        (b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "a line that is not a header"),
        (b"HTTP/1.1 200 OK\r\nA b: c\r\n\r\n", "a line that is not a header"),
        (b"HTTP/1.1 200 OK\r\nA: b\nC: d\r\n\r\n", "a line ends without a carriage return"),
        (b"HTTP/1.1 200 OK\r\n A: b\r\n\r\n", "a line that is not a header"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5x\r\n\r\n", "a Content-Length that is not a number"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", "a Content-Length that is not a number"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", "two different Content-Length"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            "both Content-Length and Transfer-Encoding",
        ),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "a Transfer-Encoding other than chunked"),
        (b"HTTP/1.1 101 Up\r\n\r\n", "switches protocols unasked"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            "a chunk size that is not a hexadecimal number",
        ),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc", "a chunk is longer than its size"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\nabc",
            "a chunk size that is not a hexadecimal number",
        ),
    ] {
        for piece in [1, 3, stream.len()] {
            let error = read(stream, piece).expect_err(&String::from_utf8_lossy(stream));
            assert_eq!(error.0, reason, "{} in pieces of {piece}", String::from_utf8_lossy(stream));
        }
    }
}

#[test]
fn a_head_without_end_is_refused_before_it_fills_the_memory() {
    let mut stream = b"HTTP/1.1 200 OK\r\n".to_vec();
    stream.extend(b"X: y\r\n".repeat(20_000));
    let error = read(&stream, 1000).unwrap_err();
    assert_eq!(error.0, "no end of the header section within 64 KiB");
}

#[test]
fn a_head_that_begins_like_the_one_before_is_read_anew() {
    let stream =
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nabcdefghijkl";
    let bodies: Vec<_> = read(stream, stream.len()).unwrap().into_iter().map(|(_, body, _)| body).collect();
    assert_eq!(bodies, [b"a".to_vec(), b"abcdefghijkl".to_vec()]);
}
