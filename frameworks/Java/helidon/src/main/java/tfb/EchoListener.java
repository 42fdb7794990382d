package tfb;

import io.helidon.common.buffers.BufferData;
import io.helidon.websocket.WsListener;
import io.helidon.websocket.WsSession;

/** Echoes each WebSocket message, fragment by fragment. Replies to pings; Helidon itself replies to close frames. */
final class EchoListener implements WsListener {

    @Override
    public void onMessage(WsSession session, String text, boolean last) {
        session.send(text, last);
    }

    @Override
    public void onMessage(WsSession session, BufferData buffer, boolean last) {
        session.send(buffer, last);
    }

    @Override
    public void onPing(WsSession session, BufferData buffer) {
        session.pong(buffer);
    }
}
