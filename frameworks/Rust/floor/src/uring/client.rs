//! A client's connection: reads requests, and writes the responses in the same order.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use compio::BufResult;
use compio::io::{AsyncReadExt, AsyncWriteExt};
use compio::net::TcpStream;
use compio::time::sleep;

use super::Thread;
use crate::answers;
use crate::http::{self, HTML, JSON, Request, Response, Route, Status, TEXT};
use crate::postgres::World;
use crate::random;

/// Initial size of the buffers, in bytes.
const BUFFER: usize = 8 * 1024;
/// Output size, in bytes, above which the responses are written before more requests are handled.
const BACKLOG: usize = 1 << 20;

type Answer = (Status, &'static [u8]);

struct Client {
    thread: Rc<Thread>,
    stream: TcpStream,
    output: Vec<u8>,
    body: Vec<u8>,
}

pub async fn serve(thread: Rc<Thread>, stream: TcpStream) {
    if stream.set_nodelay(true).is_err() {
        return; // the client has disconnected
    }
    let index = thread.clients.borrow_mut().insert(stream.clone());
    let mut client = Client { thread, stream, output: Vec::with_capacity(BUFFER), body: Vec::new() };
    let _ = client.run().await; // fails only if the client has disconnected
    client.thread.clients.borrow_mut().remove(index);
}

impl Client {
    /// Runs until the client disconnects, or a response closes the connection.
    async fn run(&mut self) -> io::Result<()> {
        let mut input = Vec::with_capacity(BUFFER);
        loop {
            input.reserve(BUFFER / 2);
            let BufResult(result, buffer) = self.stream.append(input).await;
            input = buffer;
            if result? == 0 {
                return Ok(());
            }
            let mut used = 0;
            while let Some(mut request) = http::parse(&input[used..]) {
                used += request.length;
                request.close |= self.thread.shared.stopping();
                self.handle(request).await?;
                if request.close {
                    return self.flush().await;
                }
            }
            input.drain(..used);
            self.flush().await?;
        }
    }

    async fn flush(&mut self) -> io::Result<()> {
        if self.output.is_empty() {
            return Ok(());
        }
        let BufResult(result, buffer) = self.stream.write_all(std::mem::take(&mut self.output)).await;
        self.output = buffer;
        self.output.clear();
        result
    }

    /// Handles a request, and appends the response to the output.
    async fn handle(&mut self, request: Request) -> io::Result<()> {
        self.body.clear();
        let (status, content_type) = match request.route {
            Route::Json => {
                answers::message(&mut self.body);
                (Status::Ok, JSON)
            }
            Route::Plaintext => self.hello(),
            Route::Refused(status) => (status, TEXT),
            route => {
                // This request may wait, so send the responses to earlier requests now.
                self.flush().await?;
                self.wait(route).await
            }
        };
        let (head, close) = (request.head, request.close);
        Response { status, content_type, body: &self.body, head, close }
            .write(&self.thread.date.get(), &mut self.output);
        if self.output.len() > BACKLOG { self.flush().await } else { Ok(()) }
    }

    fn hello(&mut self) -> Answer {
        self.body.extend_from_slice(b"Hello, World!");
        (Status::Ok, TEXT)
    }

    /// Handles a request that must wait for PostgreSQL, a timer or the upstream.
    async fn wait(&mut self, route: Route) -> Answer {
        match route {
            Route::Delay(milliseconds) => {
                sleep(Duration::from_millis(milliseconds)).await;
                self.hello()
            }
            Route::FanOut(calls) => self.fan_out(calls).await,
            Route::Fortunes => match self.thread.database.fortunes().await {
                Some(rows) => {
                    rows.page(&mut self.body);
                    (Status::Ok, HTML)
                }
                None => (Status::Unavailable, TEXT),
            },
            Route::Db => match self.thread.database.worlds(&[random::row()]).await.as_deref() {
                Some([world, ..]) => {
                    answers::world(*world, &mut self.body);
                    (Status::Ok, JSON)
                }
                _ => (Status::Unavailable, TEXT),
            },
            Route::Queries(count) => {
                let worlds = self.thread.database.worlds(&random::rows(count)).await;
                self.worlds(worlds)
            }
            Route::CachedQueries(count) => {
                let worlds = self.cached_worlds(count).await;
                self.worlds(worlds)
            }
            Route::Updates(count) => {
                let worlds = self.update(count).await;
                self.worlds(worlds)
            }
            Route::Json | Route::Plaintext | Route::Refused(_) => (Status::NotFound, TEXT), // `handle` handles these
        }
    }

    fn worlds(&mut self, worlds: Option<Vec<World>>) -> Answer {
        let Some(worlds) = worlds else { return (Status::Unavailable, TEXT) };
        answers::worlds(&worlds, &mut self.body);
        (Status::Ok, JSON)
    }

    async fn cached_worlds(&self, count: usize) -> Option<Vec<World>> {
        let (mut worlds, mut missing) = (Vec::with_capacity(count), Vec::new());
        for id in random::rows(count) {
            match self.thread.shared.cached(id) {
                Some(number) => worlds.push(World { id, number }),
                None => missing.push(id),
            }
        }
        if !missing.is_empty() {
            for world in self.thread.database.worlds(&missing).await? {
                self.thread.shared.cache(world.id, world.number);
                worlds.push(world);
            }
        }
        Some(worlds)
    }

    async fn update(&self, count: usize) -> Option<Vec<World>> {
        let mut worlds = self.thread.database.worlds(&random::distinct_rows(count)).await?;
        for world in &mut worlds {
            world.number = random::other_number(world.number);
        }
        self.thread.database.update(&worlds).await?;
        Some(worlds)
    }

    async fn fan_out(&mut self, calls: usize) -> Answer {
        if self.thread.shared.upstream.is_none() {
            return (Status::Unavailable, TEXT);
        }
        match self.thread.call_upstream(calls).await {
            Some(sum) => {
                answers::fan_out(calls, sum, &mut self.body);
                (Status::Ok, JSON)
            }
            None => (Status::BadGateway, TEXT),
        }
    }
}
