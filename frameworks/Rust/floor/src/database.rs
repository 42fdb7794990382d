//! A thread's single PostgreSQL connection, which is reopened when lost, and the jobs that wait for results.

use std::collections::VecDeque;
use std::net::TcpStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use crate::connection::Connection;
use crate::postgres;
use crate::settings;
use crate::waker::Waker;

const RETRY: Duration = Duration::from_secs(1);

pub struct Database {
    settings: settings::Database,
    waker: Waker,
    sender: Sender<TcpStream>,
    made: Receiver<TcpStream>,
    /// None while disconnected.
    pub connection: Option<Connection>,
    /// The job of each outstanding Sync, oldest first.
    pub waiting: VecDeque<usize>,
}

impl Database {
    pub fn new(settings: settings::Database, waker: Waker) -> Self {
        let (sender, made) = channel();
        let database = Self { settings, waker, sender, made, connection: None, waiting: VecDeque::new() };
        database.connect();
        database
    }

    /// Connects on a temporary thread, to avoid blocking the event loop, and retries every second.
    pub fn connect(&self) {
        let (settings, waker, sender) = (self.settings.clone(), self.waker.clone(), self.sender.clone());
        thread::spawn(move || {
            loop {
                match postgres::connect(&settings) {
                    Ok(stream) => {
                        if sender.send(stream).is_ok() {
                            waker.wake();
                        }
                        return;
                    }
                    Err(error) => eprintln!("no connection to PostgreSQL: {error}"),
                }
                thread::sleep(RETRY);
            }
        });
    }

    /// Returns the connection that a temporary thread has established, if any.
    pub fn made(&self) -> Option<TcpStream> {
        self.made.try_recv().ok()
    }
}
