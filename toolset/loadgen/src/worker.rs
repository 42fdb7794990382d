//! One thread of the load: its connections, its share of the rate, its tallies.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io::{ErrorKind, Read};
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};

use crate::arguments::Plan;
use crate::arrivals::{Arrivals, Random};
use crate::clock::{MILLISECOND, SECOND, now, timespec};
use crate::connection::{Connection, Link, Slot, Written};
use crate::control::{CANCELLED, Event, Reports, Times};
use crate::request::{Judge, Judgement};
use crate::response::{HeadCache, Response};
use crate::sample::{Sample, Samples};
use crate::tally::{Fault, Tally};

/// Bytes read at once.
const BUFFER: usize = 256 * 1024;
/// Handshakes under way at once in one thread: more would overflow the server's queue and be repeated a second later.
const HANDSHAKES: usize = 128;
/// Until a refused connection is tried again.
const RETRY: u64 = 100 * MILLISECOND;
/// The name of the wake-up among the connections.
const WAKE: u64 = u64::MAX;

/// A request that is due, but not sent.
#[derive(Clone, Copy, Debug)]
struct Due {
    intended: u64,
    noticed: u64,
}

/// What a worker is given when it is made.
#[derive(Debug)]
pub struct Surroundings {
    /// The load.
    pub plan: Arc<Plan>,
    /// When to start and to stop.
    pub times: Arc<Times>,
    /// Where to tell what happened.
    pub reports: Reports,
    /// Cleared tallies, to be used again.
    pub spare: Arc<Mutex<Vec<Box<Tally>>>>,
    /// Where drawn responses go.
    pub samples: Arc<Samples>,
    /// Wakes this worker.
    pub wake: OwnedFd,
}

/// One thread of the load.
pub struct Worker {
    index: usize,
    plan: Arc<Plan>,
    times: Arc<Times>,
    reports: Reports,
    spare: Arc<Mutex<Vec<Box<Tally>>>>,
    samples: Arc<Samples>,
    wake: OwnedFd,
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
    buffer: Vec<u8>,
    cache: HeadCache,
    connections: Vec<Connection>,
    free: VecDeque<u32>,                   // open loop: connections with room, longest free first
    down: BinaryHeap<Reverse<(u64, u32)>>, // connections to open, by the time of the next try
    handshakes: usize,
    backlog: VecDeque<Due>,
    outstanding: usize,
    sending: bool,
    next_due: u64,
    arrivals: Option<Arrivals>,
    random: Random,
    rotation: usize,
    batch: Vec<u8>, // what a closed loop writes at once; rebuilt only where there are several requests
    tally: Box<Tally>,
    waited_before: Option<u64>, // nanoseconds in the run queue before the load
}

impl Worker {
    /// Worker `index` of the plan's threads, from the first connection to the last answer; runs on its own thread.
    pub fn work(index: usize, given: Surroundings) {
        let reports = given.reports.clone();
        match Self::new(index, given) {
            Ok(worker) => worker.run(),
            Err(error) => reports.send(Event::Failed { message: format!("thread {index} cannot be made: {error}") }),
        }
    }

    fn new(index: usize, given: Surroundings) -> Result<Self, Errno> {
        let plan = given.plan;
        let share = |worker: usize| plan.connections * worker / plan.threads;
        let connections: Vec<Connection> =
            (share(index)..share(index + 1)).map(|number| Connection::new(number as u32, plan.depth)).collect();
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &given.wake, EventData::new_u64(WAKE), EventFlags::IN)?;
        let mut down = BinaryHeap::with_capacity(connections.len());
        down.extend((0..connections.len()).map(|i| Reverse((0, i as u32))));
        Ok(Self {
            index,
            times: given.times,
            reports: given.reports,
            spare: given.spare,
            samples: given.samples,
            wake: given.wake,
            epoll,
            events: Vec::with_capacity(connections.len().clamp(16, 1024) + 1),
            buffer: vec![0; BUFFER],
            cache: HeadCache::default(),
            free: VecDeque::with_capacity(connections.len()),
            down,
            handshakes: 0,
            backlog: VecDeque::with_capacity(1024),
            outstanding: 0,
            sending: false,
            next_due: u64::MAX,
            arrivals: None,
            random: Random::new(plan.seed.wrapping_mul(31).wrapping_add(index as u64)),
            rotation: index,
            batch: if plan.requests.len() == 1 { plan.requests[0].bytes.repeat(plan.depth) } else { Vec::new() },
            tally: Box::default(),
            waited_before: None,
            connections,
            plan,
        })
    }

    /// Connect, wait for the start, make the load, wait for what is under way.
    fn run(mut self) {
        self.settle_in();
        if !self.plan.connect_at_go {
            self.establish();
        }
        let up = self.connections.iter().filter(|connection| connection.link == Link::Up).count();
        self.reports.send(Event::Connected { connections: up });
        if self.await_start() {
            self.load();
            self.drain();
        }
    }

    /// The CPU of this thread, and timers without slack; where the system refuses, the load goes on without.
    fn settle_in(&self) {
        if let Some(&cpu) = self.plan.cpus.get(self.index % self.plan.cpus.len().max(1)) {
            let mut set = CpuSet::new();
            set.set(cpu);
            if let Err(error) = sched_setaffinity(None, &set) {
                eprintln!("loadgen: thread {} is not pinned to CPU {cpu}: {error}", self.index);
            }
        }
        let _ = set_current_timer_slack(NonZeroU64::new(1));
    }

    // ---- phases -----------------------------------------------------------------------------------------------------

    fn establish(&mut self) {
        let deadline = now() + self.plan.connect;
        loop {
            let time = now();
            if time >= deadline || self.connections.iter().all(|connection| connection.link == Link::Up) {
                return;
            }
            if self.times.start() == CANCELLED {
                return;
            }
            self.open_some(time);
            self.wait(time, deadline.min(time + RETRY / 2));
        }
    }

    /// Until the time of the start; false when it is called off.
    fn await_start(&mut self) -> bool {
        loop {
            let time = now();
            match self.times.start() {
                CANCELLED => return false,
                start if start > 0 && time >= start => return true,
                start => {
                    if !self.plan.connect_at_go {
                        self.open_some(time);
                    }
                    let until = if start > 0 { start } else { time + SECOND };
                    self.wait(time, until);
                }
            }
        }
    }

    fn load(&mut self) {
        let start = self.times.start();
        let plan = Arc::clone(&self.plan);
        self.sending = true;
        self.waited_before = run_queue_wait();
        if let Some(rate) = plan.rate {
            let mut arrivals = Arrivals::new(plan.arrivals, rate, start, self.index, plan.threads, plan.seed);
            self.next_due = arrivals.draw();
            self.arrivals = Some(arrivals);
        }
        for i in 0..self.connections.len() as u32 {
            self.refill(i, now());
        }
        let scan = (plan.timeout / 8).clamp(50 * MILLISECOND, SECOND);
        let mut next_scan = start + scan;
        let mut cuts = 0;
        let stop = loop {
            let time = now();
            let stop = self.times.stop.load(Ordering::Acquire); // after the clock: a cut never lies behind the stop
            if time >= stop {
                break stop;
            }
            self.send_due(time, stop);
            if time >= start + (cuts + 1) * plan.interval {
                self.cut(cuts);
                cuts += 1;
                continue;
            }
            if time >= next_scan {
                self.scan(time);
                next_scan = time + scan;
            }
            self.open_some(time);
            let wake = self.next_due.saturating_sub(plan.spin).max(time);
            let retry = self.next_retry();
            self.wait(time, stop.min(start + (cuts + 1) * plan.interval).min(next_scan).min(wake).min(retry));
        };
        self.send_due(now().max(stop), stop);
        self.sending = false;
        self.next_due = u64::MAX;
        while start + cuts * plan.interval < stop {
            self.cut(cuts);
            cuts += 1;
        }
    }

    fn drain(&mut self) {
        let began = now();
        let deadline = began + self.plan.drain;
        let scan = (self.plan.timeout / 8).clamp(50 * MILLISECOND, SECOND);
        let mut next_scan = began;
        let mut time = began;
        while (self.outstanding > 0 || !self.backlog.is_empty()) && time < deadline {
            if time >= next_scan {
                self.scan(time);
                next_scan = time + scan;
            }
            if !self.backlog.is_empty() {
                self.open_some(time);
            }
            self.wait(time, deadline.min(next_scan).min(self.next_retry().max(time + MILLISECOND)));
            time = now();
        }
        let drained = time;
        let unsent = self.backlog.len() as u64;
        self.backlog.clear();
        while time < drained + self.plan.linger {
            self.wait(time, drained + self.plan.linger);
            time = now();
        }
        let (tally, unfinished) = (std::mem::take(&mut self.tally), self.outstanding as u64);
        let waited = run_queue_wait().zip(self.waited_before).map(|(after, before)| after - before);
        let nanoseconds = drained - began;
        self.reports.send(Event::Drained { tally, unsent, unfinished, nanoseconds, run_queue_wait: waited });
    }

    /// Hand this interval over and begin the next.
    fn cut(&mut self, index: u64) {
        let empty = self.spare.lock().ok().and_then(|mut spare| spare.pop()).unwrap_or_default();
        let tally = std::mem::replace(&mut self.tally, empty);
        self.reports.send(Event::Interval { index, tally });
    }

    // ---- events -----------------------------------------------------------------------------------------------------

    /// Sleep until `until` or until something comes, then see to all of it.
    fn wait(&mut self, time: u64, until: u64) {
        self.events.clear();
        let timeout = timespec(until.saturating_sub(time));
        let _ = epoll::wait(&self.epoll, spare_capacity(&mut self.events), Some(&timeout)); // interrupted: no events
        for at in 0..self.events.len() {
            let event = self.events[at];
            let name = { event.data }.u64();
            if name == WAKE {
                let _ = rustix::io::read(&self.wake, &mut [0; 8]);
                continue;
            }
            self.handle(name as u32, event.flags);
        }
    }

    #[inline]
    fn handle(&mut self, i: u32, flags: EventFlags) {
        match self.connections[i as usize].link {
            Link::Up => {
                if flags.contains(EventFlags::OUT) {
                    self.write_more(i);
                }
                if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR | EventFlags::RDHUP) {
                    self.read(i);
                }
            }
            Link::Connecting => self.connected(i),
            Link::Down => {}
        }
    }

    #[inline]
    fn read(&mut self, i: u32) {
        let mut buffer = std::mem::take(&mut self.buffer);
        let connection = &mut self.connections[i as usize];
        let read = match &mut connection.stream {
            Some(stream) => stream.read(&mut buffer),
            None => Ok(0),
        };
        let time = now();
        match read {
            Ok(0) => self.ended(i, time),
            Ok(count) => {
                self.tally.counters.bytes_in += count as u64;
                self.consume(i, &buffer[..count], time);
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => self.ended(i, time),
        }
        self.buffer = buffer;
        if self.next_due <= time {
            self.send_due(time, self.times.stop.load(Ordering::Relaxed));
        }
    }

    /// Read the responses in `data`, then send what may be sent.
    #[inline]
    fn consume(&mut self, i: u32, data: &[u8], time: u64) {
        let mut at = 0;
        while at < data.len() {
            let connection = &mut self.connections[i as usize];
            if connection.reader.idle() {
                connection.unasked = connection.outstanding.is_empty();
            }
            let slot = if connection.unasked { None } else { connection.outstanding.front() };
            let request = slot.map(|slot| &self.plan.requests[slot.request as usize]);
            let capture = slot.filter(|slot| slot.sampled).map(|_| &mut connection.capture);
            let mut judge = Judge::new(request.map(|request| &request.rule), connection.progress, capture);
            let headless = request.is_some_and(|request| request.head);
            let step = connection.reader.advance(&data[at..], headless, &mut self.cache, &mut judge);
            connection.progress = judge.progress();
            let Ok((used, response)) = step else {
                self.lose(i, time, Fault::Framing, Fault::Dropped);
                return;
            };
            at += used;
            if connection.unasked {
                self.tally.counters.unasked_bytes += used as u64;
                self.tally.counters.unasked_responses += u64::from(response.is_some());
            } else if let Some(response) = response {
                self.answered(i, response, time);
            }
            if response.is_some_and(|response| response.close) {
                self.tally.counters.connections_closed_by_peer += 1;
                self.lose(i, time, Fault::Closed, Fault::Closed);
                return;
            }
        }
        self.refill(i, time);
    }

    /// The oldest request of a connection has its answer.
    #[inline]
    fn answered(&mut self, i: u32, response: Response, time: u64) {
        let connection = &mut self.connections[i as usize];
        let Some(slot) = connection.outstanding.pop_front() else { return };
        let request = &self.plan.requests[slot.request as usize];
        let sequence = connection.answers;
        connection.answers += 1;
        self.outstanding -= 1;
        let tally = &mut *self.tally;
        tally.counters.received += 1;
        tally.counters.response_bytes += response.size;
        tally.status(response.status);
        if (200..300).contains(&response.status) {
            match connection.progress.judge(&request.rule, response.body) {
                Judgement::Right => {
                    tally.counters.successes += 1;
                    tally.service.record(time - slot.sent, 1);
                    if self.arrivals.is_some() {
                        tally.latency.record(time - slot.intended, 1);
                    }
                }
                Judgement::WrongLength => tally.fault(Fault::Length, 1),
                Judgement::WrongBytes => tally.fault(Fault::Body, 1),
            }
        } else {
            tally.fault(Fault::Status, 1);
        }
        if slot.sampled {
            let taken = self.samples.put(&Sample {
                connection: connection.number,
                sequence,
                target: &request.target,
                intended: slot.intended,
                sent: slot.sent,
                received: time,
                response,
                capture: &connection.capture,
            });
            tally.counters.sampled += u64::from(taken);
            tally.counters.sampled_over_limit += u64::from(!taken);
        }
    }

    /// The peer has closed or reset the connection.
    fn ended(&mut self, i: u32, time: u64) {
        let connection = &mut self.connections[i as usize];
        if let Some(response) = connection.reader.end() {
            if connection.unasked {
                self.tally.counters.unasked_responses += 1;
            } else {
                self.answered(i, response, time);
            }
        }
        self.tally.counters.connections_closed_by_peer += 1;
        self.lose(i, time, Fault::Closed, Fault::Closed);
    }

    /// Give a connection up: its oldest request has one fault, those behind it the other.
    fn lose(&mut self, i: u32, time: u64, first: Fault, behind: Fault) {
        let connection = &mut self.connections[i as usize];
        let lost = connection.outstanding.len();
        self.outstanding -= lost;
        if connection.link == Link::Connecting {
            self.handshakes -= 1;
        }
        if lost > 0 {
            self.tally.fault(first, 1);
            self.tally.fault(behind, lost as u64 - 1);
        }
        connection.close();
        self.down.push(Reverse((time, i)));
    }

    /// Give up connections that have not answered, and handshakes that have not ended, for too long.
    fn scan(&mut self, time: u64) {
        for i in 0..self.connections.len() as u32 {
            let connection = &self.connections[i as usize];
            match connection.link {
                Link::Up => {
                    let oldest = connection.outstanding.front().map(|slot| slot.sent);
                    if oldest.is_some_and(|sent| sent + self.plan.timeout <= time) {
                        self.tally.counters.connections_hung += 1;
                        self.lose(i, time, Fault::Timeout, Fault::Dropped);
                    }
                }
                Link::Connecting if connection.since + self.plan.timeout <= time => self.refused(i, time),
                _ => {}
            }
        }
    }

    // ---- connecting -------------------------------------------------------------------------------------------------

    fn next_retry(&self) -> u64 {
        if self.handshakes >= HANDSHAKES {
            u64::MAX
        } else {
            self.down.peek().map_or(u64::MAX, |Reverse((time, _))| *time)
        }
    }

    fn open_some(&mut self, time: u64) {
        while self.next_retry() <= time {
            let Some(Reverse((_, i))) = self.down.pop() else { return };
            let connection = &mut self.connections[i as usize];
            let opened = connection.open(&self.plan.address, time).and_then(|()| match &connection.stream {
                Some(stream) => epoll::add(&self.epoll, stream, EventData::new_u64(u64::from(i)), EventFlags::OUT),
                None => Err(Errno::NOTCONN),
            });
            self.handshakes += 1;
            if opened.is_err() {
                self.refused(i, time);
            }
        }
    }

    /// A handshake has ended, one way or the other.
    fn connected(&mut self, i: u32) {
        let time = now();
        let connection = &mut self.connections[i as usize];
        let Some(stream) = &connection.stream else { return };
        let data = EventData::new_u64(u64::from(i));
        let ready = matches!(stream.take_error(), Ok(None))
            && epoll::modify(&self.epoll, stream, data, EventFlags::IN | EventFlags::RDHUP).is_ok();
        if !ready {
            self.refused(i, time);
            return;
        }
        self.handshakes -= 1;
        connection.link = Link::Up;
        self.tally.counters.connections_opened += 1;
        self.tally.counters.reconnects += u64::from(connection.opened);
        connection.opened = true;
        self.refill(i, time);
    }

    fn refused(&mut self, i: u32, time: u64) {
        self.tally.fault(Fault::Connect, 1);
        self.handshakes -= 1;
        self.connections[i as usize].close();
        self.down.push(Reverse((time + RETRY, i)));
    }

    // ---- sending ----------------------------------------------------------------------------------------------------

    /// Send, or put into the backlog, everything that is due by `time` and before `stop`.
    #[inline]
    fn send_due(&mut self, mut time: u64, stop: u64) {
        while self.next_due <= time && self.next_due < stop {
            let due = Due { intended: self.next_due, noticed: time };
            self.next_due = self.arrivals.as_mut().map_or(u64::MAX, Arrivals::draw);
            match if self.backlog.is_empty() { self.free_connection() } else { None } {
                Some(i) => {
                    time = time.max(now());
                    self.send(i, due, 0, time);
                    self.list(i);
                }
                None => self.backlog.push_back(due),
            }
        }
        self.tally.backlog_peak = self.tally.backlog_peak.max(self.backlog.len() as u64);
    }

    fn free_connection(&mut self) -> Option<u32> {
        while let Some(i) = self.free.pop_front() {
            let connection = &mut self.connections[i as usize];
            connection.listed = false;
            if connection.has_room(self.plan.depth) {
                return Some(i);
            }
        }
        None
    }

    /// Among the free ones, if it has room.
    #[inline]
    fn list(&mut self, i: u32) {
        let connection = &mut self.connections[i as usize];
        if !connection.listed && connection.has_room(self.plan.depth) {
            connection.listed = true;
            self.free.push_back(i);
        }
    }

    /// A connection has room since `time`: use it.
    #[inline]
    fn refill(&mut self, i: u32, time: u64) {
        if self.plan.rate.is_some() {
            while !self.backlog.is_empty() && self.connections[i as usize].has_room(self.plan.depth) {
                if let Some(due) = self.backlog.pop_front() {
                    self.send(i, due, time, now());
                }
            }
            self.list(i);
        } else if self.sending
            && self.connections[i as usize].outstanding.is_empty()
            && self.connections[i as usize].has_room(self.plan.depth)
        {
            self.send_batch(i, time);
        }
    }

    /// Send one request of an open loop on a connection that is free since `free`.
    #[inline]
    fn send(&mut self, i: u32, due: Due, free: u64, time: u64) {
        // Waiting for a connection is the server's doing; to notice late and to send late is the generator's.
        let lag = (due.noticed - due.intended) + time.saturating_sub(free.max(due.noticed));
        self.tally.lag.record(lag, 1);
        let request = self.next_request();
        self.ask(i, due.intended, time, request);
        let bytes = &self.plan.requests[request as usize].bytes;
        let wrote = self.connections[i as usize].write(bytes);
        self.wrote(i, wrote);
    }

    /// Send as many requests as a closed loop has under way on a connection.
    #[inline]
    fn send_batch(&mut self, i: u32, time: u64) {
        let mut batch = std::mem::take(&mut self.batch);
        let rebuild = self.plan.requests.len() > 1;
        if rebuild {
            batch.clear();
        }
        for _ in 0..self.plan.depth {
            let request = self.next_request();
            self.ask(i, time, time, request);
            if rebuild {
                batch.extend_from_slice(&self.plan.requests[request as usize].bytes);
            }
        }
        let wrote = self.connections[i as usize].write(&batch);
        self.wrote(i, wrote);
        self.batch = batch;
    }

    #[inline]
    fn next_request(&mut self) -> u32 {
        let count = self.plan.requests.len();
        if count == 1 {
            return 0;
        }
        if self.plan.random_order {
            return self.random.below(count) as u32;
        }
        let this = self.rotation % count;
        self.rotation = this + self.plan.threads; // each worker takes its turns in one rotation
        this as u32
    }

    #[inline]
    fn ask(&mut self, i: u32, intended: u64, sent: u64, request: u32) {
        let share = self.plan.sample_rate;
        let sampled = share > 0.0 && self.random.unit() < share;
        self.connections[i as usize].outstanding.push_back(Slot { intended, sent, request, sampled });
        self.outstanding += 1;
        self.tally.counters.sent += 1;
    }

    #[inline]
    fn wrote(&mut self, i: u32, (written, taken): (Written, usize)) {
        self.tally.counters.bytes_out += taken as u64;
        match written {
            Written::All => {}
            Written::Some => self.listen(i, EventFlags::IN | EventFlags::RDHUP | EventFlags::OUT),
            Written::Broken => self.broken(i),
        }
    }

    fn write_more(&mut self, i: u32) {
        let (written, taken) = self.connections[i as usize].flush();
        self.tally.counters.bytes_out += taken as u64;
        match written {
            Written::All => {
                self.listen(i, EventFlags::IN | EventFlags::RDHUP);
                self.refill(i, now());
            }
            Written::Some => {}
            Written::Broken => self.broken(i),
        }
    }

    fn listen(&mut self, i: u32, flags: EventFlags) {
        if let Some(stream) = &self.connections[i as usize].stream {
            if epoll::modify(&self.epoll, stream, EventData::new_u64(u64::from(i)), flags).is_err() {
                self.broken(i);
            }
        }
    }

    fn broken(&mut self, i: u32) {
        self.tally.counters.connections_closed_by_peer += 1;
        self.lose(i, now(), Fault::Write, Fault::Closed);
    }
}

/// Nanoseconds for which this thread was ready, but another had its CPU: the second field of its schedstat.
fn run_queue_wait() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().nth(1)?.parse().ok()
}
