//! HTTP/2 header compression (RFC 7541): a decoder for responses, and functions that encode single fields.
//!
//! The tables and the integer encoding are implemented here; a crate provides Huffman coding. `docs/dependencies.md`
//! explains why.

use std::collections::VecDeque;
use std::sync::LazyLock;

use httlib_huffman::DecoderSpeed;

use crate::response::Violation;

/// Size of the dynamic table in each direction, in bytes, unless a peer requests a smaller size.
pub const TABLE_SIZE: usize = 4096;
/// Overhead of a table entry in addition to the name and value, in bytes.
const ENTRY_OVERHEAD: usize = 32;

const STATIC_FIELDS: &str = ":authority;:method GET;:method POST;:path /;:path /index.html;:scheme http;:scheme https;\
    :status 200;:status 204;:status 206;:status 304;:status 400;:status 404;:status 500;accept-charset;\
    accept-encoding gzip, deflate;accept-language;accept-ranges;accept;access-control-allow-origin;age;allow;\
    authorization;cache-control;content-disposition;content-encoding;content-language;content-length;content-location;\
    content-range;content-type;cookie;date;etag;expect;expires;from;host;if-match;if-modified-since;if-none-match;\
    if-range;if-unmodified-since;last-modified;link;location;max-forwards;proxy-authenticate;proxy-authorization;range;\
    referer;refresh;retry-after;server;set-cookie;strict-transport-security;transfer-encoding;user-agent;vary;via;\
    www-authenticate";

static STATIC_TABLE: LazyLock<Vec<(&str, &str)>> =
    LazyLock::new(|| STATIC_FIELDS.split(';').map(|field| field.split_once(' ').unwrap_or((field, ""))).collect());

/// Number of entries in the static table. The indices of the dynamic table follow them.
const STATIC_COUNT: usize = 61;

#[derive(Debug)]
struct Field {
    name: Box<[u8]>,
    value: Box<[u8]>,
}

#[derive(Debug)]
struct Table {
    entries: VecDeque<Field>, // newest first
    size: usize,
    limit: usize,
}

impl Table {
    fn get(&self, index: usize) -> Result<(&[u8], &[u8]), Violation> {
        let missing = Violation("index of a header field is outside the tables");
        let place = index.checked_sub(1).ok_or(missing)?;
        if place < STATIC_COUNT {
            let (name, value) = STATIC_TABLE[place];
            return Ok((name.as_bytes(), value.as_bytes()));
        }
        self.entries.get(place - STATIC_COUNT).map(|field| (&*field.name, &*field.value)).ok_or(missing)
    }

    fn insert(&mut self, field: Field) {
        self.size += entry_size(&field.name, &field.value);
        self.entries.push_front(field);
        self.evict();
    }

    fn evict(&mut self) {
        while self.size > self.limit {
            let Some(field) = self.entries.pop_back() else { return };
            self.size -= entry_size(&field.name, &field.value);
        }
    }
}

/// Return the size of a field in a dynamic table, in bytes.
pub fn entry_size(name: &[u8], value: &[u8]) -> usize {
    name.len() + value.len() + ENTRY_OVERHEAD
}

/// A decoder for the header blocks of a connection.
#[derive(Debug)]
pub struct Decoder {
    table: Table,
    name: Vec<u8>,  // decoded text of the latest Huffman-coded name
    value: Vec<u8>, // decoded text of the latest Huffman-coded value
}

impl Default for Decoder {
    fn default() -> Self {
        let table = Table { entries: VecDeque::new(), size: 0, limit: TABLE_SIZE };
        Self { table, name: Vec::new(), value: Vec::new() }
    }
}

impl Decoder {
    /// Decode a complete header block, and pass the fields to `field`. Fields that `wanted` rejects may be skipped.
    pub fn decode(
        &mut self,
        block: &[u8],
        wanted: impl Fn(&[u8]) -> bool,
        mut field: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), Violation> {
        let mut rest = block;
        while let Some(&first) = rest.first() {
            if first & 0x80 != 0 {
                let (name, value) = self.table.get(integer(&mut rest, 7)?)?;
                field(name, value);
                continue;
            }
            if first & 0x60 == 0x20 {
                self.table.limit = integer(&mut rest, 5)?;
                if self.table.limit > TABLE_SIZE {
                    return Err(Violation("dynamic table is larger than permitted"));
                }
                self.table.evict();
                continue;
            }
            let indexed = first & 0x40 != 0;
            let name = match integer(&mut rest, if indexed { 6 } else { 4 })? {
                0 => text(string(&mut rest)?, &mut self.name)?,
                index => self.table.get(index)?.0,
            };
            let coded = string(&mut rest)?;
            if !indexed && !wanted(name) {
                continue;
            }
            let value = text(coded, &mut self.value)?;
            field(name, value);
            if indexed {
                let added = Field { name: name.into(), value: value.into() };
                self.table.insert(added);
            }
        }
        Ok(())
    }
}

/// Read an integer with a `bits`-bit prefix (RFC 7541 section 5.1) from `rest`, and advance `rest`.
fn integer(rest: &mut &[u8], bits: u32) -> Result<usize, Violation> {
    let invalid = Violation("integer in a header block is too long");
    let (&first, mut tail) = rest.split_first().ok_or(invalid)?;
    let most = (1 << bits) - 1;
    let mut value = usize::from(first) & most;
    if value == most {
        for shift in [0, 7, 14, 21] {
            let (&byte, after) = tail.split_first().ok_or(invalid)?;
            tail = after;
            value += usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                *rest = tail;
                return Ok(value);
            }
        }
        return Err(invalid);
    }
    *rest = tail;
    Ok(value)
}

/// Read a string from `rest`. Return whether it is Huffman-coded, and the bytes.
fn string<'a>(rest: &mut &'a [u8]) -> Result<(bool, &'a [u8]), Violation> {
    let coded = rest.first().is_some_and(|first| first & 0x80 != 0);
    let length = integer(rest, 7)?;
    let (bytes, tail) = rest.split_at_checked(length).ok_or(Violation("header block ends inside a string"))?;
    *rest = tail;
    Ok((coded, bytes))
}

/// Return a string's text. A Huffman-coded string is decoded into `decoded`.
fn text<'a>((coded, bytes): (bool, &'a [u8]), decoded: &'a mut Vec<u8>) -> Result<&'a [u8], Violation> {
    if !coded {
        return Ok(bytes);
    }
    decoded.clear();
    httlib_huffman::decode(bytes, decoded, DecoderSpeed::FiveBits)
        .map_err(|_| Violation("invalid Huffman code in a header block"))?;
    Ok(decoded)
}

/// Append an integer; `flags` are the high bits of the first byte.
fn push_integer(out: &mut Vec<u8>, flags: u8, bits: u32, value: usize) {
    let most = (1 << bits) - 1;
    if value < most {
        out.push(flags | value as u8);
        return;
    }
    out.push(flags | most as u8);
    let mut rest = value - most;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

fn push_string(out: &mut Vec<u8>, bytes: &[u8]) {
    let mut coded = Vec::new();
    if httlib_huffman::encode(bytes, &mut coded).is_ok() && coded.len() < bytes.len() {
        push_integer(out, 0x80, 7, coded.len());
        out.extend_from_slice(&coded);
    } else {
        push_integer(out, 0, 7, bytes.len());
        out.extend_from_slice(bytes);
    }
}

/// Append a field as an index into the static table. Return false if the table does not contain the field.
pub fn push_static(out: &mut Vec<u8>, name: &str, value: &str) -> bool {
    let Some(place) = STATIC_TABLE.iter().position(|&field| field == (name, value)) else { return false };
    push_integer(out, 0x80, 7, place + 1);
    true
}

/// Append a field as a literal. If `indexed` is true, the peer adds the field to the dynamic table.
pub fn push_literal(out: &mut Vec<u8>, name: &str, value: &str, indexed: bool) {
    let (flags, bits) = if indexed { (0x40, 6) } else { (0, 4) };
    let known = STATIC_TABLE.iter().position(|&(listed, _)| listed == name);
    push_integer(out, flags, bits, known.map_or(0, |place| place + 1));
    if known.is_none() {
        push_string(out, name.as_bytes());
    }
    push_string(out, value.as_bytes());
}

/// Append the index of an entry in the dynamic table. The newest entry has age 0.
pub fn push_dynamic(out: &mut Vec<u8>, age: usize) {
    push_integer(out, 0x80, 7, STATIC_COUNT + 1 + age);
}

/// A table size update to 0, which empties the peer's dynamic table.
pub const CLEAR_TABLE: u8 = 0x20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn fields(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<(String, String)>, Violation> {
        let mut fields = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        decoder.decode(block, |_| true, |name, value| fields.push((text(name), text(value))))?;
        Ok(fields)
    }

    fn field(name: &str, value: &str) -> (String, String) {
        (name.into(), value.into())
    }

    #[test]
    fn encoded_fields_are_decoded_again() {
        let long = "v".repeat(5000);
        let mut block = Vec::new();
        assert!(push_static(&mut block, ":method", "GET"));
        assert!(!push_static(&mut block, ":method", "PUT"));
        push_literal(&mut block, "accept", "text/plain", true);
        push_literal(&mut block, "x-mine", "\u{e4}", true);
        push_literal(&mut block, "x-long", &long, false);
        push_dynamic(&mut block, 0);
        push_dynamic(&mut block, 1);
        let (mine, accept) = (field("x-mine", "\u{e4}"), field("accept", "text/plain"));
        let expected =
            [field(":method", "GET"), accept.clone(), mine.clone(), field("x-long", &long), mine.clone(), accept];
        let mut decoder = Decoder::default();
        assert_eq!(fields(&mut decoder, &block).unwrap(), expected);
        assert_eq!(fields(&mut decoder, &[0xbe]).unwrap(), [mine]);
        assert!(fields(&mut decoder, &[CLEAR_TABLE, 0xbe]).is_err());
    }

    #[test]
    fn full_table_evicts_the_oldest_entry() {
        let mut decoder = Decoder::default();
        let mut block = Vec::new();
        for number in 0..3 {
            push_literal(&mut block, "x-name", &number.to_string().repeat(2000), true);
        }
        fields(&mut decoder, &block).unwrap();
        assert_eq!(decoder.table.entries.len(), 2);
        assert_eq!(fields(&mut decoder, &[0xbf]).unwrap()[0].1, "1".repeat(2000));
        assert!(fields(&mut decoder, &[0xc0]).is_err());
    }

    #[test]
    fn unwanted_literals_are_skipped() {
        let mut block = Vec::new();
        push_literal(&mut block, "etag", "a", false);
        push_literal(&mut block, "age", "b", false);
        let mut names = Vec::new();
        Decoder::default()
            .decode(&block, |name| name == b"age", |name, _| names.push(String::from_utf8(name.into()).unwrap()))
            .unwrap();
        assert_eq!(names, ["age"]);
    }

    #[test]
    fn damaged_blocks_are_refused_without_panic() {
        let mut random = Random::new(5);
        for block in [&[0x80][..], &[0x3f, 0xe2, 0x1f], &[0xff], &[0xff, 0xff, 0xff, 0xff, 0xff], &[0x40], &[0x40, 1]] {
            assert!(fields(&mut Decoder::default(), block).is_err(), "{block:?}");
        }
        for _ in 0..20_000 {
            let mut decoder = Decoder::default();
            let block: Vec<u8> = (0..random.below(24)).map(|_| random.bits() as u8).collect();
            let _ = fields(&mut decoder, &block);
            assert!(decoder.table.size <= TABLE_SIZE);
        }
    }
}
