package tfb;

import java.net.InetAddress;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.reactor.netty.NettyReactiveWebServerFactory;
import org.springframework.boot.web.server.Http2;
import org.springframework.boot.web.server.Ssl;
import org.springframework.boot.web.server.WebServer;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.http.server.reactive.HttpHandler;

/** Serves the routes on HTTPS_PORT and H2C_PORT too, because Spring Boot itself listens on only one port. */
@Configuration
class MorePorts {

    private final HttpHandler routes;
    private final Backlog backlog;
    private final InetAddress address;

    MorePorts(HttpHandler routes, Backlog backlog, @Value("${server.address}") InetAddress address) {
        this.routes = routes;
        this.backlog = backlog;
        this.address = address;
    }

    @Bean(initMethod = "start", destroyMethod = "stop")
    @ConditionalOnProperty("HTTPS_PORT")
    WebServer encrypted(
            @Value("${HTTPS_PORT}") int port,
            @Value("${TLS_CERT}") String certificate,
            @Value("${TLS_KEY}") String key) {
        Ssl ssl = new Ssl();
        ssl.setCertificate(certificate);
        ssl.setCertificatePrivateKey(key);
        NettyReactiveWebServerFactory factory = http2(port);
        factory.setSsl(ssl);
        return factory.getWebServer(routes);
    }

    @Bean(initMethod = "start", destroyMethod = "stop")
    @ConditionalOnProperty("H2C_PORT")
    WebServer cleartext(@Value("${H2C_PORT}") int port) {
        return http2(port).getWebServer(routes);
    }

    private NettyReactiveWebServerFactory http2(int port) {
        Http2 http2 = new Http2();
        http2.setEnabled(true);
        NettyReactiveWebServerFactory factory = new NettyReactiveWebServerFactory(port);
        factory.setAddress(address);
        factory.setHttp2(http2);
        backlog.customize(factory);
        return factory;
    }
}
