//! The PostgreSQL protocol: a blocking handshake on a separate thread, hand-written messages for the three statements,
//! and a parser for the results.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::authentication::{md5_hash, sasl};
use postgres_protocol::message::backend::Message;
use postgres_protocol::message::frontend;

use crate::settings::Database;

const PATIENCE: Duration = Duration::from_secs(3);
const INT4: u32 = 23;

const SELECT_WORLD: &str = "SELECT id, randomnumber FROM world WHERE id = $1";
const SELECT_FORTUNES: &str = "SELECT id, message FROM fortune";
const UPDATE_WORLDS: &str = "UPDATE world SET randomnumber = new.randomnumber \
     FROM unnest($1::int[], $2::int[]) AS new (id, randomnumber) WHERE world.id = new.id";

#[derive(Clone, Copy)]
pub struct World {
    pub id: i32,
    pub number: i32,
}

/// Opens a connection and prepares the three statements as `w`, `f` and `u`.
pub fn connect(database: &Database) -> io::Result<TcpStream> {
    let address = (database.host.as_str(), database.port)
        .to_socket_addrs()?
        .next()
        .ok_or_else(|| io::Error::other("DBHOST has no address"))?;
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut handshake = Handshake { stream: &mut stream, input: BytesMut::new(), output: BytesMut::new() };
    handshake.authenticate(database)?;
    handshake.prepare()?;
    stream.set_read_timeout(None)?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

struct Handshake<'a> {
    stream: &'a mut TcpStream,
    input: BytesMut,
    output: BytesMut,
}

impl Handshake<'_> {
    fn send(&mut self) -> io::Result<()> {
        self.stream.write_all(&self.output)?;
        self.output.clear();
        Ok(())
    }

    /// Returns the next message. An ErrorResponse becomes an error with PostgreSQL's error message.
    fn receive(&mut self) -> io::Result<Message> {
        loop {
            match Message::parse(&mut self.input)? {
                Some(Message::ErrorResponse(body)) => {
                    let mut words = Vec::new();
                    let mut fields = body.fields();
                    while let Some(field) = fields.next()? {
                        if field.type_() == b'M' {
                            words.push(String::from_utf8_lossy(field.value_bytes()).into_owned());
                        }
                    }
                    return Err(io::Error::other(words.join(" ")));
                }
                Some(message) => return Ok(message),
                None => {
                    let mut chunk = [0; 4096];
                    match self.stream.read(&mut chunk)? {
                        0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                        length => self.input.extend_from_slice(&chunk[..length]),
                    }
                }
            }
        }
    }

    fn authenticate(&mut self, database: &Database) -> io::Result<()> {
        let parameters = [("user", &*database.user), ("database", &*database.name), ("client_encoding", "UTF8")];
        frontend::startup_message(parameters, &mut self.output)?;
        self.send()?;
        let password = database.password.as_bytes();
        let mut scram = sasl::ScramSha256::new(password, sasl::ChannelBinding::unsupported());
        loop {
            match self.receive()? {
                Message::AuthenticationCleartextPassword => frontend::password_message(password, &mut self.output)?,
                Message::AuthenticationMd5Password(body) => {
                    let hash = md5_hash(database.user.as_bytes(), password, body.salt());
                    frontend::password_message(hash.as_bytes(), &mut self.output)?;
                }
                Message::AuthenticationSasl(_) => {
                    frontend::sasl_initial_response(sasl::SCRAM_SHA_256, scram.message(), &mut self.output)?;
                }
                Message::AuthenticationSaslContinue(body) => {
                    scram.update(body.data())?;
                    frontend::sasl_response(scram.message(), &mut self.output)?;
                }
                Message::AuthenticationSaslFinal(body) => scram.finish(body.data())?,
                Message::ReadyForQuery(_) => return Ok(()),
                _ => {}
            }
            self.send()?;
        }
    }

    fn prepare(&mut self) -> io::Result<()> {
        frontend::parse("w", SELECT_WORLD, [INT4], &mut self.output)?;
        frontend::parse("f", SELECT_FORTUNES, [], &mut self.output)?;
        frontend::parse("u", UPDATE_WORLDS, [], &mut self.output)?;
        frontend::sync(&mut self.output);
        self.send()?;
        while !matches!(self.receive()?, Message::ReadyForQuery(_)) {}
        Ok(())
    }
}

// ---- messages to PostgreSQL: Bind, Execute and Sync ----------------------------------------------------------------

const EXECUTE_AND_SYNC: [u8; 15] = [b'E', 0, 0, 0, 9, 0, 0, 0, 0, 0, b'S', 0, 0, 0, 4];
// A Bind message consists of an empty portal name, statement name, parameter formats, parameters and result formats.
// Format 1 is binary.
const BIND_WORLD: [u8; 18] = [b'B', 0, 0, 0, 25, 0, b'w', 0, 0, 1, 0, 1, 0, 1, 0, 0, 0, 4];
const BIND_FORTUNES: [u8; 16] = [b'B', 0, 0, 0, 15, 0, b'f', 0, 0, 0, 0, 0, 0, 1, 0, 1];
const BINARY_RESULTS: [u8; 4] = [0, 1, 0, 1];

pub fn select_world(id: i32, output: &mut Vec<u8>) {
    output.extend_from_slice(&BIND_WORLD);
    output.extend_from_slice(&id.to_be_bytes());
    output.extend_from_slice(&BINARY_RESULTS);
    output.extend_from_slice(&EXECUTE_AND_SYNC);
}

pub fn select_fortunes(output: &mut Vec<u8>) {
    output.extend_from_slice(&BIND_FORTUNES);
    output.extend_from_slice(&EXECUTE_AND_SYNC);
}

/// Appends a single UPDATE for all rows, which locks them in the given order.
pub fn update_worlds(worlds: &[World], output: &mut Vec<u8>) {
    let array = 20 + 8 * worlds.len() as i32;
    output.push(b'B');
    output.extend_from_slice(&(4 + 1 + 2 + 4 + 2 + 2 * (4 + array) + 4).to_be_bytes());
    output.extend_from_slice(&[0, b'u', 0, 0, 1, 0, 1, 0, 2]);
    let values: [fn(&World) -> i32; 2] = [|world| world.id, |world| world.number];
    for value in values {
        // Array header: length, number of dimensions, no NULLs, element type, number of elements, lower bound.
        for word in [array, 1, 0, INT4 as i32, worlds.len() as i32, 1] {
            output.extend_from_slice(&word.to_be_bytes());
        }
        for world in worlds {
            output.extend_from_slice(&4_i32.to_be_bytes());
            output.extend_from_slice(&value(world).to_be_bytes());
        }
    }
    output.extend_from_slice(&BINARY_RESULTS);
    output.extend_from_slice(&EXECUTE_AND_SYNC);
}

// ---- messages from PostgreSQL --------------------------------------------------------------------------------------

/// Returns the type, body and total length of the first message in `bytes`, or None if the message is incomplete.
pub fn message(bytes: &[u8]) -> Option<(u8, &[u8], usize)> {
    let (kind, rest) = bytes.split_first()?;
    let length = i32::from_be_bytes(*rest.first_chunk()?) as usize;
    Some((*kind, rest.get(4..length)?, length + 1))
}

/// Returns the first two columns of a DataRow, or None if the row is malformed or a column is NULL.
pub fn columns(row: &[u8]) -> Option<(&[u8], &[u8])> {
    let (first, rest) = column(row.get(2..)?)?;
    let (second, _) = column(rest)?;
    Some((first, second))
}

fn column(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(usize::try_from(i32::from_be_bytes(*length)).ok()?)
}

pub fn integer(column: &[u8]) -> Option<i32> {
    Some(i32::from_be_bytes(*column.first_chunk()?))
}

/// Returns the error message (field M) of an ErrorResponse.
pub fn words(error: &[u8]) -> String {
    let field = error.split(|byte| *byte == 0).find(|field| field.first() == Some(&b'M'));
    String::from_utf8_lossy(field.map_or(b"", |field| &field[1..])).into_owned()
}
