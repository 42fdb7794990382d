//! The rows that a request has read from PostgreSQL.

use crate::answers;
use crate::postgres::{self, World};

#[derive(Default)]
pub struct Rows {
    pub worlds: Vec<World>,
    /// Each fortune's id, and the end of its message in `text`.
    fortunes: Vec<(i32, usize)>,
    text: Vec<u8>,
}

impl Rows {
    pub fn new(worlds: Vec<World>) -> Self {
        Self { worlds, ..Self::default() }
    }

    /// Adds a DataRow of a world, and returns the world. Returns None if the row is malformed.
    pub fn add_world(&mut self, row: &[u8]) -> Option<World> {
        let (id, number) = postgres::columns(row)?;
        let world = World { id: postgres::integer(id)?, number: postgres::integer(number)? };
        self.worlds.push(world);
        Some(world)
    }

    /// Adds a DataRow of a fortune. Returns None if the row is malformed.
    pub fn add_fortune(&mut self, row: &[u8]) -> Option<()> {
        let (id, message) = postgres::columns(row)?;
        let id = postgres::integer(id)?;
        self.text.extend_from_slice(message);
        self.fortunes.push((id, self.text.len()));
        Some(())
    }

    /// Appends the fortunes page to `body`, with the additional fortune.
    pub fn page(&self, body: &mut Vec<u8>) {
        let mut fortunes: Vec<(i32, &[u8])> = Vec::with_capacity(self.fortunes.len() + 1);
        let mut start = 0;
        for (id, end) in &self.fortunes {
            fortunes.push((*id, &self.text[start..*end]));
            start = *end;
        }
        fortunes.push((0, b"Additional fortune added at request time."));
        answers::page(&mut fortunes, body);
    }
}
