//! Jobs: requests that wait for PostgreSQL, a timer or the upstream.

use std::cmp::Reverse;
use std::time::{Duration, Instant};

use super::{DATABASE, Worker, look_for};
use crate::answers;
use crate::connection::Interest;
use crate::http::{HTML, JSON, Request, Route, Status, TEXT};
use crate::postgres::{self, World};
use crate::random;
use crate::rows::Rows;
use crate::shared::{Shared, complain};

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Work {
    Db,
    Queries,
    CachedQueries,
    /// An update that is reading rows.
    Updates,
    /// An update that is writing rows.
    Written,
    Fortunes,
    Delay,
    FanOut(usize),
}

pub struct Job {
    client: usize,
    serial: u64,
    head: bool,
    close: bool,
    work: Work,
    /// Number of outstanding results.
    pub(super) waiting: usize,
    pub(super) failed: bool,
    /// Number of rows that the response must contain.
    wanted: usize,
    rows: Rows,
    pub(super) sum: i64,
}

impl Worker {
    pub(super) fn begin(&mut self, index: usize, request: Request) {
        self.body.clear();
        let Request { route, head, close, .. } = request;
        match route {
            Route::Json => {
                answers::message(&mut self.body);
                self.respond(index, Status::Ok, JSON, head, close);
            }
            Route::Plaintext => {
                self.body.extend_from_slice(b"Hello, World!");
                self.respond(index, Status::Ok, TEXT, head, close);
            }
            Route::Refused(status) => self.respond(index, status, TEXT, head, close),
            Route::Db => self.select(index, request, Work::Db, &[random::row()], Vec::new()),
            Route::Queries(count) => self.select(index, request, Work::Queries, &random::rows(count), Vec::new()),
            Route::Updates(count) => {
                self.select(index, request, Work::Updates, &random::distinct_rows(count), Vec::new());
            }
            Route::CachedQueries(count) => self.cached_queries(index, request, count),
            Route::Fortunes => self.fortunes(index, request),
            Route::Delay(milliseconds) => {
                let due = Instant::now() + Duration::from_millis(milliseconds);
                let job = self.job(index, request, Work::Delay, 1, 0, Vec::new());
                self.timers.push(Reverse((due, job)));
            }
            Route::FanOut(calls) => self.fan_out(index, request, calls),
        }
    }

    pub(super) fn job(
        &mut self,
        client: usize,
        request: Request,
        work: Work,
        waiting: usize,
        wanted: usize,
        worlds: Vec<World>,
    ) -> usize {
        self.clients[client].busy = true;
        self.jobs.insert(Job {
            client,
            serial: self.clients[client].serial,
            head: request.head,
            close: request.close,
            work,
            waiting,
            failed: false,
            wanted,
            rows: Rows::new(worlds),
            sum: 0,
        })
    }

    /// Reads each row with a separate SELECT and Sync, except the rows in `known`.
    fn select(&mut self, index: usize, request: Request, work: Work, ids: &[i32], mut known: Vec<World>) {
        if self.database.connection.is_none() {
            return self.respond(index, Status::Unavailable, TEXT, request.head, request.close);
        }
        known.reserve(ids.len());
        let job = self.job(index, request, work, ids.len(), known.len() + ids.len(), known);
        let Some(connection) = &mut self.database.connection else { return };
        for id in ids {
            postgres::select_world(*id, &mut connection.output);
            self.database.waiting.push_back(job);
        }
    }

    fn cached_queries(&mut self, index: usize, request: Request, count: usize) {
        let (mut known, mut missing) = (Vec::with_capacity(count), Vec::new());
        for id in random::rows(count) {
            match self.shared.cached(id) {
                Some(number) => known.push(World { id, number }),
                None => missing.push(id),
            }
        }
        if missing.is_empty() {
            answers::worlds(&known, &mut self.body);
            return self.respond(index, Status::Ok, JSON, request.head, request.close);
        }
        self.select(index, request, Work::CachedQueries, &missing, known);
    }

    fn fortunes(&mut self, index: usize, request: Request) {
        if self.database.connection.is_none() {
            return self.respond(index, Status::Unavailable, TEXT, request.head, request.close);
        }
        let job = self.job(index, request, Work::Fortunes, 1, 0, Vec::new());
        let Some(connection) = &mut self.database.connection else { return };
        postgres::select_fortunes(&mut connection.output);
        self.database.waiting.push_back(job);
    }

    pub(super) fn fire_timers(&mut self) {
        while let Some(Reverse((due, job))) = self.timers.peek().copied() {
            if due > Instant::now() {
                return;
            }
            self.timers.pop();
            self.finish(job);
        }
    }

    // ---- the database --------------------------------------------------------------------------------------------

    pub(super) fn flush_database(&mut self) {
        let Some(connection) = &mut self.database.connection else { return };
        if !connection.pending() {
            return;
        }
        if connection.write().is_err() {
            return self.database_lost();
        }
        let interest = Interest { read: true, write: connection.pending() };
        look_for(&self.epoll, DATABASE, connection, interest);
    }

    pub(super) fn database_ready(&mut self) {
        let Some(connection) = &mut self.database.connection else { return };
        let failed = connection.read(&mut self.scratch).is_err() || connection.ended;
        let mut input = std::mem::take(&mut connection.input);
        let mut used = 0;
        while let Some((kind, body, length)) = postgres::message(&input[used..]) {
            self.answered(kind, body);
            used += length;
        }
        input.drain(..used);
        if failed {
            return self.database_lost();
        }
        if let Some(connection) = &mut self.database.connection {
            connection.input = input;
        }
    }

    /// Handles a message from PostgreSQL. The message belongs to the oldest outstanding statement.
    fn answered(&mut self, kind: u8, body: &[u8]) {
        let Some(&index) = self.database.waiting.front() else { return };
        let job = &mut self.jobs[index];
        match kind {
            b'D' => job.failed |= add_row(job, body, &self.shared).is_none(),
            b'E' => {
                complain(format_args!("a statement failed: {}", postgres::words(body)));
                job.failed = true;
            }
            b'Z' => {
                self.database.waiting.pop_front();
                self.one_less(index);
            }
            _ => {}
        }
    }

    fn database_lost(&mut self) {
        eprintln!("lost the connection to PostgreSQL");
        self.database.connection = None;
        for index in std::mem::take(&mut self.database.waiting) {
            self.jobs[index].failed = true;
            self.one_less(index);
        }
        self.database.connect();
    }

    fn one_less(&mut self, index: usize) {
        let job = &mut self.jobs[index];
        job.waiting -= 1;
        if job.waiting > 0 {
            return;
        }
        job.failed |= job.rows.worlds.len() != job.wanted;
        if job.work == Work::Updates && !job.failed {
            for world in &mut job.rows.worlds {
                world.number = random::other_number(world.number);
            }
            job.work = Work::Written;
            job.waiting = 1;
            if let Some(connection) = &mut self.database.connection {
                postgres::update_worlds(&job.rows.worlds, &mut connection.output);
                self.database.waiting.push_back(index);
                return;
            }
            job.failed = true;
        }
        self.finish(index);
    }

    /// Responds to the client, and continues with the client's requests that arrived while the job was running.
    pub(super) fn finish(&mut self, index: usize) {
        let job = self.jobs.remove(index);
        if self.clients.get(job.client).is_none_or(|client| client.serial != job.serial) {
            return; // the client has disconnected
        }
        self.clients[job.client].busy = false;
        self.body.clear();
        let (status, content_type) = match job.work {
            Work::FanOut(_) if job.failed => (Status::BadGateway, TEXT),
            _ if job.failed => (Status::Unavailable, TEXT),
            Work::Db => {
                answers::world(job.rows.worlds[0], &mut self.body);
                (Status::Ok, JSON)
            }
            Work::Queries | Work::CachedQueries | Work::Updates | Work::Written => {
                answers::worlds(&job.rows.worlds, &mut self.body);
                (Status::Ok, JSON)
            }
            Work::Fortunes => {
                job.rows.page(&mut self.body);
                (Status::Ok, HTML)
            }
            Work::Delay => {
                self.body.extend_from_slice(b"Hello, World!");
                (Status::Ok, TEXT)
            }
            Work::FanOut(calls) => {
                answers::fan_out(calls, job.sum, &mut self.body);
                (Status::Ok, JSON)
            }
        };
        self.respond(job.client, status, content_type, job.head, job.close);
        self.advance(job.client);
    }
}

/// Adds a DataRow to a job. Returns None if the row does not match the job's statement.
fn add_row(job: &mut Job, row: &[u8], shared: &Shared) -> Option<()> {
    if job.work == Work::Fortunes {
        return job.rows.add_fortune(row);
    }
    let world = job.rows.add_world(row)?;
    if job.work == Work::CachedQueries {
        shared.cache(world.id, world.number);
    }
    Some(())
}
