package tfb;

import io.netty.channel.ChannelOption;
import org.springframework.boot.reactor.netty.NettyReactiveWebServerFactory;
import org.springframework.boot.web.server.WebServerFactoryCustomizer;
import org.springframework.stereotype.Component;

/** Enlarges the accept backlog, so a thousand clients can connect at the same time. */
@Component
class Backlog implements WebServerFactoryCustomizer<NettyReactiveWebServerFactory> {

    private static final int CONNECTIONS = 4096;

    @Override
    public void customize(NettyReactiveWebServerFactory factory) {
        factory.addServerCustomizers(server -> server.option(ChannelOption.SO_BACKLOG, CONNECTIONS));
    }
}
