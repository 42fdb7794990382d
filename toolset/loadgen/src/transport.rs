//! The byte stream of a connection: TCP or a Unix socket, with or without TLS. No operation blocks.

use std::fmt::{self, Display, Formatter};
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv, send, socket_with,
    sockopt,
};
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::version::TLS13;
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, HandshakeKind, SignatureScheme};

/// ALPN name of HTTP/2 (RFC 7301).
pub const H2: &[u8] = b"h2";
/// TLS records are read only while the read buffer has at least this many free bytes.
const RECORD_SPACE: usize = 64 * 1024;

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    Tcp(SocketAddr),
    Unix(SocketAddrUnix),
}

impl Address {
    /// Return the address of a Unix socket.
    pub fn unix(path: &Path) -> Result<Self, String> {
        let address = SocketAddrUnix::new(path);
        address.map(Self::Unix).map_err(|error| format!("{}: not a valid Unix socket path: {error}", path.display()))
    }
}

impl Display for Address {
    fn fmt(&self, formatter: &mut Formatter) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(formatter),
            Self::Unix(address) => {
                write!(formatter, "unix:{}", address.path().unwrap_or_default().to_string_lossy())
            }
        }
    }
}

/// The address of a server, and the TLS configuration if the server uses TLS.
#[derive(Clone, Debug)]
pub struct Peer {
    pub address: Address,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

impl Peer {
    /// Create a peer without TLS.
    pub fn plain(address: Address) -> Self {
        Self { address, tls: None }
    }

    /// Create a peer with TLS. Certificates are not verified, because they are often self-signed.
    ///
    /// If `alpn` is HTTP/2, the server must select it. HTTP/1.1 needs no selection.
    ///
    /// With `fixed`, all servers negotiate the same parameters: TLS 1.3, a single cipher suite and group, and no
    /// resumption.
    pub fn with_tls(address: Address, host: &str, alpn: &[u8], fixed: bool) -> Result<Self, String> {
        let mut provider = ring::default_provider();
        if fixed {
            provider.cipher_suites = vec![ring::cipher_suite::TLS13_AES_128_GCM_SHA256];
            provider.kx_groups = vec![ring::kx_group::X25519];
        }
        let provider = Arc::new(provider);
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
        let builder = if fixed {
            builder.with_protocol_versions(&[&TLS13])
        } else {
            builder.with_safe_default_protocol_versions()
        };
        let mut config = builder
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
            .with_no_client_auth();
        config.alpn_protocols = vec![alpn.to_vec()];
        if fixed {
            config.resumption = Resumption::disabled();
        }
        let name = host.trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(name).map_err(|error| format!("{host}: {error}"))?;
        Ok(Self { address, tls: Some((Arc::new(config), name)) })
    }
}

/// A non-blocking socket.
#[derive(Debug)]
struct Socket(OwnedFd);

impl Read for Socket {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(recv(&self.0, buffer, RecvFlags::empty())?.0)
    }
}

impl Write for Socket {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(&self.0, bytes, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A connection's byte stream.
#[derive(Debug)]
pub struct Transport {
    socket: Socket,
    tls: Option<Box<ClientConnection>>,
    needs_h2: bool,
}

impl AsFd for Transport {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.0.as_fd()
    }
}

impl Transport {
    /// Start connecting without waiting for the result.
    pub fn open(peer: &Peer) -> Result<Self, Errno> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let family = match &peer.address {
            Address::Tcp(SocketAddr::V4(_)) => AddressFamily::INET,
            Address::Tcp(SocketAddr::V6(_)) => AddressFamily::INET6,
            Address::Unix(_) => AddressFamily::UNIX,
        };
        let socket = socket_with(family, SocketType::STREAM, flags, None)?;
        let connected = match &peer.address {
            Address::Tcp(address) => {
                sockopt::set_tcp_nodelay(&socket, true)?;
                connect(&socket, address)
            }
            Address::Unix(address) => connect(&socket, address),
        };
        match connected {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error),
        }
        let tls = match &peer.tls {
            None => None,
            Some((config, name)) => {
                let client = ClientConnection::new(Arc::clone(config), name.clone());
                let mut client = client.map_err(|_| Errno::PROTO)?;
                client.set_buffer_limit(None); // no limit is needed, because the load bounds the outstanding requests
                Some(Box::new(client))
            }
        };
        let needs_h2 = peer.tls.as_ref().is_some_and(|(config, _)| config.alpn_protocols == [H2]);
        Ok(Self { socket: Socket(socket), tls, needs_h2 })
    }

    /// Continue the handshake after an event. Return the events to wait for, or `None` if the stream is ready.
    pub fn continue_handshake(&mut self) -> io::Result<Option<EventFlags>> {
        match sockopt::socket_error(&self.socket.0)? {
            Ok(()) => {}
            Err(error) => return Err(error.into()),
        }
        let Some(tls) = &mut self.tls else { return Ok(None) };
        while tls.is_handshaking() {
            let progress = if tls.wants_write() {
                tls.write_tls(&mut self.socket)
            } else {
                let read = tls.read_tls(&mut self.socket);
                if matches!(read, Ok(0)) {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
                if read.is_ok() {
                    tls.process_new_packets().map_err(io::Error::other)?;
                }
                read
            };
            match progress {
                Ok(_) => {}
                Err(error) if is_transient(&error) => {
                    return Ok(Some(if tls.wants_write() { EventFlags::OUT } else { EventFlags::IN }));
                }
                Err(error) => return Err(error),
            }
        }
        if tls.alpn_protocol() != Some(H2) && self.needs_h2 {
            return Err(io::Error::other("the server did not select HTTP/2"));
        }
        self.send_records()?;
        Ok(None)
    }

    /// Return the TLS version, cipher suite, group and ALPN protocol, and whether the session was resumed. Return `None`
    /// without TLS.
    pub fn negotiated(&self) -> Option<String> {
        let tls = self.tls.as_ref()?;
        let suite = tls.negotiated_cipher_suite().map(|suite| format!("{:?}", suite.suite()));
        let group = tls.negotiated_key_exchange_group().map(|group| format!("{:?}", group.name()));
        let parts = [
            tls.protocol_version().map(|version| format!("{version:?}")),
            suite,
            group,
            tls.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned()),
            tls.handshake_kind().map(|kind| if kind == HandshakeKind::Resumed { "resumed" } else { "full" }.to_owned()),
        ];
        Some(parts.map(|part| part.unwrap_or_else(|| "none".into())).join(" "))
    }

    /// Read available bytes; 0 means that the peer closed the stream.
    #[inline]
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.tls.is_none() { self.socket.read(buffer) } else { self.read_records(buffer) }
    }

    /// Read TLS records until none is available or the buffer is nearly full. No decrypted bytes remain in `tls`.
    fn read_records(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return Ok(0) };
        let mut count = 0;
        loop {
            match tls.reader().read(&mut buffer[count..]) {
                Ok(0) if count == 0 => return Ok(0),
                Ok(0) => return Ok(count),
                Ok(read) => {
                    count += read;
                    continue;
                }
                Err(error) if is_transient(&error) => {}
                Err(_) if count > 0 => return Ok(count),
                Err(error) => return Err(error),
            }
            if buffer.len() - count < RECORD_SPACE {
                return Ok(count);
            }
            match tls.read_tls(&mut self.socket) {
                Ok(_) => {
                    tls.process_new_packets().map_err(io::Error::other)?;
                }
                Err(error) if is_transient(&error) && count > 0 => return Ok(count),
                Err(error) => return Err(error),
            }
        }
    }

    /// Write as many bytes as possible. TLS buffers all bytes, and `wants_write` returns whether some are still unsent.
    #[inline]
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return self.socket.write(bytes) };
        let taken = tls.writer().write(bytes)?;
        self.send_records()?;
        Ok(taken)
    }

    /// Return whether buffered TLS records are still unsent.
    #[inline]
    pub fn wants_write(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    fn send_records(&mut self) -> io::Result<()> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        while tls.wants_write() {
            match tls.write_tls(&mut self.socket) {
                Ok(_) => {}
                Err(error) if is_transient(&error) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Return whether the operation may succeed if it is repeated later.
pub fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// A verifier that accepts every certificate, but checks that the server owns the certificate's private key.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
