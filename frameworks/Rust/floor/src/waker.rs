//! A handle that wakes a thread's event loop from other threads.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

#[derive(Clone)]
pub struct Waker(Arc<OwnedFd>);

impl Waker {
    /// Opens an eventfd. epoll needs a non-blocking eventfd, and io_uring a blocking eventfd.
    pub fn new(nonblocking: bool) -> io::Result<Self> {
        let mut flags = EventfdFlags::CLOEXEC;
        flags.set(EventfdFlags::NONBLOCK, nonblocking);
        Ok(Self(Arc::new(eventfd(0, flags)?)))
    }

    pub fn wake(&self) {
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes()); // fails only if a wake-up is already pending
    }

    /// Resets the waker after a wake-up.
    pub fn clear(&self) {
        let _ = rustix::io::read(&*self.0, &mut [0; 8]);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
