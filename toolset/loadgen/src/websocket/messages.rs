//! Messages of 5 to 1,024 bytes, drawn from a pool of random bytes.

use tungstenite::protocol::frame::coding::{Data, OpCode};

use super::push_frame;
use crate::random::Random;

/// Length of the shortest and the longest message, in bytes.
pub const MIN_LENGTH: usize = 5;
pub const MAX_LENGTH: usize = 1024;

const LENGTH_BITS: u32 = 11;
const POOL_SIZE: usize = 1 << 20;

/// Content of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageText<'a> {
    pub binary: bool,
    pub bytes: &'a [u8],
}

/// A pool of random bytes from which messages are cut. A message is identified by a number, which encodes its position,
/// length and kind.
#[derive(Debug, Default)]
pub struct MessagePool {
    text: Vec<u8>, // ASCII
    binary: Vec<u8>,
}

impl MessagePool {
    /// Create a pool of random bytes.
    pub fn new(random: &mut Random) -> Self {
        let binary: Vec<u8> = (0..POOL_SIZE / 8).flat_map(|_| random.bits().to_ne_bytes()).collect();
        let text = binary.iter().map(|byte| b' ' + byte % 95).collect();
        Self { text, binary }
    }

    /// Draw a random message, and return its number.
    #[inline]
    pub fn draw(random: &mut Random) -> u32 {
        let start = random.below(POOL_SIZE - MAX_LENGTH) as u32;
        let length = (MIN_LENGTH + random.below(MAX_LENGTH - MIN_LENGTH + 1)) as u32;
        start << (LENGTH_BITS + 1) | length << 1 | (random.bits() >> 63) as u32
    }

    /// Return the content of a message.
    #[inline]
    pub fn get(&self, message: u32) -> MessageText<'_> {
        let binary = message & 1 == 1;
        let length = (message >> 1) as usize & ((1 << LENGTH_BITS) - 1);
        let start = (message >> (LENGTH_BITS + 1)) as usize;
        let pool = if binary { &self.binary } else { &self.text };
        MessageText { binary, bytes: &pool[start..start + length] }
    }

    /// Append the frame of a message.
    #[inline]
    pub fn push(&self, message: u32, random: &mut Random, out: &mut Vec<u8>) {
        let MessageText { binary, bytes } = self.get(message);
        let kind = if binary { Data::Binary } else { Data::Text };
        push_frame(out, OpCode::Data(kind), bytes, (random.bits() as u32).to_ne_bytes());
    }
}
