// The WebSocket echo.
import { WebSocketServer } from 'ws';

/** Echoes each message on WebSocket connections to /ws. ws itself replies to pings and close frames. */
export function echoMessages(server) {
  const sockets = new WebSocketServer({ server, path: '/ws' });
  sockets.on('connection', (socket) => {
    socket.on('error', console.error);
    socket.on('message', (message, isBinary) => socket.send(message, { binary: isBinary }));
  });
  return sockets;
}
