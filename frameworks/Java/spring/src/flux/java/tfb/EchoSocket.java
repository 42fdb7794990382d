package tfb;

import java.util.Map;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.Ordered;
import org.springframework.web.reactive.handler.SimpleUrlHandlerMapping;
import org.springframework.web.reactive.socket.WebSocketHandler;
import org.springframework.web.reactive.socket.WebSocketMessage;

/** Echoes each WebSocket message. Reactor Netty itself joins fragments, and replies to pings and close frames. */
@Configuration
class EchoSocket {

    @Bean
    SimpleUrlHandlerMapping sockets() {
        WebSocketHandler echo = session -> session.send(session.receive().doOnNext(WebSocketMessage::retain));
        return new SimpleUrlHandlerMapping(Map.of("/ws", echo), Ordered.HIGHEST_PRECEDENCE);
    }
}
