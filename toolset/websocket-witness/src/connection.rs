//! A connection: sends messages, and compares each echo with the sent message.

use std::collections::VecDeque;
use std::ops::AddAssign;
use std::sync::Arc;

use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio::sync::Barrier;
use tokio::time::{Duration, Instant, timeout, timeout_at};
use tokio_tungstenite::tungstenite::{Bytes, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};

use crate::arguments::Arguments;

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const MESSAGES: u64 = 64; // number of distinct messages per connection
const SIZES: std::ops::RangeInclusive<u64> = 5..=1024; // payload size of a message, in bytes

/// Echoes and errors of one or more connections.
#[derive(Default)]
pub struct Counts {
    /// Echoes that equal their messages.
    pub echoes: u64,
    /// Payload bytes of all echoes.
    pub bytes: u64,
    /// Echoes that differ from their messages.
    pub different: u64,
    /// Connections that could not be opened.
    pub connect: u64,
    /// Connections that ended early, or on which the server sent an invalid frame.
    pub read: u64,
    /// Connections on which sending failed.
    pub write: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.echoes += other.echoes;
        self.bytes += other.bytes;
        self.different += other.different;
        self.connect += other.connect;
        self.read += other.read;
        self.write += other.write;
    }
}

/// Connect, wait for the other connections at the barrier, and exchange messages until the end of the load.
pub async fn run(arguments: Arc<Arguments>, number: u64, start: Arc<Barrier>) -> Counts {
    let mut counts = Counts::default();
    let connected = timeout(CONNECT_TIMEOUT, connect_async_with_config(&arguments.url, None, true)).await;
    let messages = messages(arguments.seed ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    start.wait().await;
    if let Ok(Ok((socket, _))) = connected {
        let end = Instant::now() + arguments.duration;
        // At the end of the load, the timeout cancels the exchange, whatever it is waiting for.
        let _ = timeout_at(end, exchange(socket, &messages, arguments.depth, &mut counts)).await;
    } else {
        counts.connect = 1;
    }
    counts
}

/// Send messages and compare their echoes until the connection fails. Keep `depth` messages in flight.
async fn exchange(mut socket: Socket, messages: &[Message], depth: usize, counts: &mut Counts) {
    let mut in_flight = VecDeque::with_capacity(depth);
    let mut unsent = messages.iter().cycle();
    loop {
        while in_flight.len() < depth
            && let Some(message) = unsent.next()
        {
            if socket.feed(message.clone()).await.is_err() {
                counts.write = 1;
                return;
            }
            in_flight.push_back(message);
        }
        if socket.flush().await.is_err() {
            counts.write = 1;
            return;
        }
        match socket.next().await {
            Some(Ok(echo @ (Message::Text(_) | Message::Binary(_)))) => {
                counts.bytes += echo.len() as u64;
                if in_flight.pop_front().is_some_and(|message| *message == echo) {
                    counts.echoes += 1;
                } else {
                    counts.different += 1;
                }
            }
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
            _ => {
                counts.read = 1;
                return;
            }
        }
    }
}

/// Return text and binary messages with lengths and contents drawn from a seed.
fn messages(seed: u64) -> Vec<Message> {
    let mut random = Random(seed);
    (0..MESSAGES)
        .map(|number| {
            let size = SIZES.start() + random.next() % (SIZES.end() - SIZES.start() + 1);
            let letters = (0..size).map(|_| b'a' + (random.next() % 26) as u8);
            if number % 2 == 0 {
                Message::Text(letters.map(char::from).collect::<String>().into())
            } else {
                Message::Binary(letters.collect::<Bytes>())
            }
        })
        .collect()
}

/// The random number generator `SplitMix64` (Steele, Lea and Flood, 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::messages;

    #[test]
    fn messages_depend_only_on_the_seed() {
        assert_eq!(messages(1), messages(1));
        assert_ne!(messages(1), messages(2));
        assert!(messages(3).iter().all(|message| (5..=1024).contains(&message.len())));
    }
}
