//! Calls to the upstream for `/fan-out` requests.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use compio::BufResult;
use compio::io::{AsyncReadExt, AsyncWriteExt};
use compio::net::TcpStream;
use compio::runtime::spawn;

use super::Thread;
use crate::shared::complain;
use crate::upstream::{self, Answer, Target};

const BUFFER: usize = 1024;

/// A thread's connections to the upstream.
pub struct Upstream {
    idle: RefCell<Vec<TcpStream>>,
    /// Number of calls that may start in addition to the calls in progress.
    free: Cell<usize>,
    waiting: RefCell<VecDeque<Waker>>,
}

impl Upstream {
    pub fn new(connections: usize) -> Self {
        Self { idle: RefCell::default(), free: Cell::new(connections), waiting: RefCell::default() }
    }

    async fn acquire(&self) {
        poll_fn(|context| match self.free.get().checked_sub(1) {
            Some(free) => {
                self.free.set(free);
                Poll::Ready(())
            }
            None => {
                self.waiting.borrow_mut().push_back(context.waker().clone());
                Poll::Pending
            }
        })
        .await;
    }

    fn release(&self) {
        self.free.set(self.free.get() + 1);
        if let Some(waker) = self.waiting.borrow_mut().pop_front() {
            waker.wake();
        }
    }

    /// Sends a request on an idle or a new connection, and returns the integer in the response.
    async fn call(&self, target: &Target) -> Result<i64, String> {
        let idle = self.idle.borrow_mut().pop();
        let mut stream = match idle {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect(target.address).await.map_err(|error| error.to_string())?;
                stream.set_nodelay(true).map_err(|error| error.to_string())?;
                stream
            }
        };
        let answer = exchange(&mut stream, target).await?;
        if answer.keep {
            self.idle.borrow_mut().push(stream);
        }
        Ok(answer.value)
    }
}

async fn exchange(stream: &mut TcpStream, target: &Target) -> Result<Answer, String> {
    let BufResult(result, _) = stream.write_all(target.request.clone()).await;
    result.map_err(|error| error.to_string())?;
    let mut input = Vec::with_capacity(BUFFER);
    loop {
        input.reserve(BUFFER / 2);
        let BufResult(result, buffer) = stream.append(input).await;
        input = buffer;
        if result.map_err(|error| error.to_string())? == 0 {
            return Err("the upstream closed the connection".into());
        }
        if let Some(answer) = upstream::answer(&input) {
            return answer;
        }
    }
}

impl Thread {
    /// Calls the upstream several times concurrently, and returns the sum. Returns None if a call failed.
    pub async fn call_upstream(self: &Rc<Self>, calls: usize) -> Option<i64> {
        let started: Vec<_> = (0..calls).map(|_| spawn(Rc::clone(self).call())).collect();
        let mut sum = Some(0);
        for call in started {
            let value = call.await.ok().flatten();
            sum = sum.zip(value).map(|(sum, value)| sum + value);
        }
        sum
    }

    async fn call(self: Rc<Self>) -> Option<i64> {
        let target = self.shared.upstream.as_ref()?;
        self.upstream.acquire().await;
        let value = self.upstream.call(target).await;
        self.upstream.release();
        value.inspect_err(|error| complain(format_args!("upstream call failed: {error}"))).ok()
    }
}
