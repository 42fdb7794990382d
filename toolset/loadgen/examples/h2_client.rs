//! A closed loop over cleartext HTTP/2 that uses the crate h2 on a tokio runtime with one thread.
//! `harness/studies/http2_generators.py` compares its CPU time per response with the load generator's.
//!
//! Usage: `h2_client ADDRESS PATH CONNECTIONS STREAMS SECONDS`. Prints the number of successful responses.

use std::cell::Cell;
use std::env;
use std::error::Error;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use h2::client::{self, SendRequest};
use http::Request;
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::Instant;

const STREAM_WINDOW: u32 = 1 << 20; // bytes
const CONNECTION_WINDOW: u32 = 1 << 24; // bytes

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [address, path, connections, streams, seconds] = arguments.as_slice() else {
        return Err("usage: h2_client ADDRESS PATH CONNECTIONS STREAMS SECONDS".into());
    };
    let request = Request::get(format!("http://{address}{path}")).body(())?;
    let (connections, streams): (usize, usize) = (connections.parse()?, streams.parse()?);
    let duration = Duration::from_secs(seconds.parse()?);
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let successes = LocalSet::new().block_on(&runtime, load(&request, address, (connections, streams), duration))?;
    println!("{{\"successes\":{successes}}}");
    Ok(())
}

/// Send requests on each stream of each connection until the time is up. Return the number of successful responses.
async fn load(
    request: &Request<()>,
    address: &str,
    (connections, streams): (usize, usize),
    duration: Duration,
) -> Result<u64, Box<dyn Error>> {
    let successes = Rc::new(Cell::new(0));
    let end = Instant::now() + duration;
    let mut loops = JoinSet::new();
    for _ in 0..connections {
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        let (sender, connection) = client::Builder::new()
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .handshake(socket)
            .await?;
        tokio::task::spawn_local(connection);
        for _ in 0..streams {
            loops.spawn_local(repeat(sender.clone(), request.clone(), end, Rc::clone(&successes)));
        }
    }
    while let Some(outcome) = loops.join_next().await {
        outcome??;
    }
    Ok(successes.get())
}

/// Send the request again after each response, until `end`.
async fn repeat(
    mut sender: SendRequest<Bytes>,
    request: Request<()>,
    end: Instant,
    successes: Rc<Cell<u64>>,
) -> Result<(), h2::Error> {
    while Instant::now() < end {
        sender = sender.ready().await?;
        let (response, _) = sender.send_request(request.clone(), true)?;
        let response = response.await?;
        let succeeded = response.status().is_success();
        let mut body = response.into_body();
        while let Some(chunk) = body.data().await {
            let length = chunk?.len();
            body.flow_control().release_capacity(length)?;
        }
        if succeeded {
            successes.set(successes.get() + 1);
        }
    }
    Ok(())
}
