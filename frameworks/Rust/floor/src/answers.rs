//! Response bodies: rows as JSON, and the fortunes page.

use crate::postgres::World;

pub fn world(world: World, output: &mut Vec<u8>) {
    let mut number = itoa::Buffer::new();
    output.extend_from_slice(b"{\"id\":");
    output.extend_from_slice(number.format(world.id).as_bytes());
    output.extend_from_slice(b",\"randomNumber\":");
    output.extend_from_slice(number.format(world.number).as_bytes());
    output.push(b'}');
}

pub fn worlds(worlds: &[World], output: &mut Vec<u8>) {
    output.push(b'[');
    for (position, one) in worlds.iter().enumerate() {
        if position > 0 {
            output.push(b',');
        }
        world(*one, output);
    }
    output.push(b']');
}

pub fn message(output: &mut Vec<u8>) {
    string_object("message", "Hello, World!", output);
}

fn string_object(key: &str, value: &str, output: &mut Vec<u8>) {
    output.extend_from_slice(b"{\"");
    output.extend_from_slice(key.as_bytes());
    output.extend_from_slice(b"\":\"");
    for byte in value.bytes() {
        match byte {
            b'"' | b'\\' => output.extend_from_slice(&[b'\\', byte]),
            0..0x20 => output.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => output.push(byte),
        }
    }
    output.extend_from_slice(b"\"}");
}

pub fn fan_out(calls: usize, sum: i64, output: &mut Vec<u8>) {
    output.extend_from_slice(b"{\"calls\":");
    output.extend_from_slice(itoa::Buffer::new().format(calls).as_bytes());
    output.extend_from_slice(b",\"sum\":");
    output.extend_from_slice(itoa::Buffer::new().format(sum).as_bytes());
    output.push(b'}');
}

/// Sorts the (id, message) pairs by message, and appends the fortunes page to `output`.
pub fn page(fortunes: &mut [(i32, &[u8])], output: &mut Vec<u8>) {
    fortunes.sort_unstable_by_key(|(_, message)| *message);
    output.extend_from_slice(
        b"<!DOCTYPE html><html><head><title>Fortunes</title></head><body><table><tr><th>id</th><th>message</th></tr>",
    );
    for (id, message) in fortunes {
        output.extend_from_slice(b"<tr><td>");
        output.extend_from_slice(itoa::Buffer::new().format(*id).as_bytes());
        output.extend_from_slice(b"</td><td>");
        escape(message, output);
        output.extend_from_slice(b"</td></tr>");
    }
    output.extend_from_slice(b"</table></body></html>");
}

fn escape(text: &[u8], output: &mut Vec<u8>) {
    let mut plain = 0;
    for (position, byte) in text.iter().enumerate() {
        let escaped: &[u8] = match byte {
            b'&' => b"&amp;",
            b'<' => b"&lt;",
            b'>' => b"&gt;",
            b'"' => b"&quot;",
            b'\'' => b"&#39;",
            _ => continue,
        };
        output.extend_from_slice(&text[plain..position]);
        output.extend_from_slice(escaped);
        plain = position + 1;
    }
    output.extend_from_slice(&text[plain..]);
}
