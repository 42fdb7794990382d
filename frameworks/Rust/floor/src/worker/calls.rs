//! Calls to the upstream for `/fan-out` requests.

use std::cmp::Reverse;
use std::time::Instant;

use rustix::event::epoll;

use super::jobs::Work;
use super::{Call, UPSTREAM, Worker, look_for};
use crate::connection::{Connection, Interest};
use crate::http::{Request, Status, TEXT};
use crate::shared::complain;
use crate::upstream;

impl Worker {
    pub(super) fn fan_out(&mut self, index: usize, request: Request, calls: usize) {
        if self.shared.upstream.is_none() {
            return self.respond(index, Status::Unavailable, TEXT, request.head, request.close);
        }
        let job = self.job(index, request, Work::FanOut(calls), calls, 0, Vec::new());
        // An immediate failure must not end the job before all calls have started.
        let mut failed = 0;
        for _ in 0..calls {
            failed += usize::from(!self.call(job));
        }
        for _ in 0..failed {
            self.jobs[job].failed = true;
            self.jobs[job].waiting -= 1;
        }
        if self.jobs[job].waiting == 0 {
            // The caller is still handling this client's requests, so let a timer finish the job.
            self.timers.push(Reverse((Instant::now(), job)));
        }
    }

    /// Sends a request on an idle or a new connection. If the maximum number of connections is in use, queues the call.
    /// Returns false if the call fails immediately.
    fn call(&mut self, job: usize) -> bool {
        let Some(target) = &self.shared.upstream else { return false };
        let index = match self.idle_calls.pop() {
            Some(index) => index,
            None if self.calls.len() >= self.shared.upstream_connections => {
                self.queued_calls.push_back(job);
                return true;
            }
            None => {
                let Ok(stream) = target.connect() else { return false };
                let entry = self.calls.vacant_entry();
                let (index, token) = (entry.key(), epoll::EventData::new_u64(UPSTREAM | entry.key() as u64));
                if epoll::add(&self.epoll, &stream, token, epoll::EventFlags::IN).is_err() {
                    return false;
                }
                entry.insert(Call { connection: Connection::new(stream), job: None });
                index
            }
        };
        let call = &mut self.calls[index];
        call.connection.output.extend_from_slice(&target.request);
        if call.connection.write().is_err() {
            self.calls.remove(index);
            return false;
        }
        call.job = Some(job);
        let interest = Interest { read: true, write: call.connection.pending() };
        look_for(&self.epoll, UPSTREAM | index as u64, &mut call.connection, interest);
        true
    }

    pub(super) fn call_ready(&mut self, index: usize, flags: epoll::EventFlags) {
        let Some(call) = self.calls.get_mut(index) else { return };
        let broken = flags.contains(epoll::EventFlags::ERR)
            || call.connection.write().is_err()
            || call.connection.read(&mut self.scratch).is_err();
        let answer =
            if broken { Some(Err("the connection failed".into())) } else { upstream::answer(&call.connection.input) };
        let answer = match answer {
            None if call.connection.ended => Err("the upstream closed the connection".into()),
            None => {
                let interest = Interest { read: true, write: call.connection.pending() };
                return look_for(&self.epoll, UPSTREAM | index as u64, &mut call.connection, interest);
            }
            Some(answer) => answer,
        };
        let job = call.job.take();
        call.connection.input.clear();
        if matches!(&answer, Ok(answer) if answer.keep) && job.is_some() && !call.connection.ended {
            let interest = Interest { read: true, write: false };
            look_for(&self.epoll, UPSTREAM | index as u64, &mut call.connection, interest);
            self.idle_calls.push(index);
        } else {
            self.idle_calls.retain(|idle| *idle != index);
            self.calls.remove(index);
        }
        self.start_queued_calls();
        let Some(job) = job else { return }; // an idle connection was closed
        let answer: Result<_, String> = answer;
        if let Err(error) = &answer {
            complain(format_args!("upstream call failed: {error}"));
        }
        self.end_call(job, answer.ok().map(|answer| answer.value));
    }

    /// Starts queued calls while connections are available.
    fn start_queued_calls(&mut self) {
        while !self.idle_calls.is_empty() || self.calls.len() < self.shared.upstream_connections {
            let Some(job) = self.queued_calls.pop_front() else { return };
            if !self.call(job) {
                self.end_call(job, None);
            }
        }
    }

    /// Adds a call's value to the job, or marks the job as failed. Finishes the job after the last call.
    fn end_call(&mut self, job: usize, value: Option<i64>) {
        self.jobs[job].failed |= value.is_none();
        self.jobs[job].sum += value.unwrap_or_default();
        self.jobs[job].waiting -= 1;
        if self.jobs[job].waiting == 0 {
            self.finish(job);
        }
    }
}
