package tfb;

import io.quarkus.websockets.next.OnBinaryMessage;
import io.quarkus.websockets.next.OnTextMessage;
import io.quarkus.websockets.next.WebSocket;
import io.smallrye.common.annotation.Blocking;
import io.vertx.core.buffer.Buffer;

/** Echoes each WebSocket message, on a worker thread. */
@WebSocket(path = "/ws")
@Blocking
public class EchoSocket {

    @OnTextMessage
    String echo(String text) {
        return text;
    }

    @OnBinaryMessage
    Buffer echo(Buffer data) {
        return data;
    }
}
