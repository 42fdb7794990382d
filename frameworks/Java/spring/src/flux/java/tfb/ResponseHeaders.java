package tfb;

import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.Locale;
import org.springframework.core.Ordered;
import org.springframework.core.annotation.Order;
import org.springframework.http.HttpHeaders;
import org.springframework.scheduling.annotation.EnableScheduling;
import org.springframework.scheduling.annotation.Scheduled;
import org.springframework.stereotype.Component;
import org.springframework.web.server.ServerWebExchange;
import org.springframework.web.server.WebFilter;
import org.springframework.web.server.WebFilterChain;
import reactor.core.publisher.Mono;

/** Adds the Server and Date headers, which Reactor Netty does not set. The date is formatted once per second. */
@Component
@EnableScheduling
@Order(Ordered.HIGHEST_PRECEDENCE)
class ResponseHeaders implements WebFilter {

    private static final DateTimeFormatter HTTP_DATE =
            DateTimeFormatter.ofPattern("EEE, dd MMM yyyy HH:mm:ss 'GMT'", Locale.ENGLISH);

    private volatile String date = now();

    @Override
    public Mono<Void> filter(ServerWebExchange exchange, WebFilterChain chain) {
        HttpHeaders headers = exchange.getResponse().getHeaders();
        headers.set(HttpHeaders.SERVER, "Reactor-Netty");
        headers.set(HttpHeaders.DATE, date);
        return chain.filter(exchange);
    }

    @Scheduled(fixedRate = 1000)
    void refreshDate() {
        date = now();
    }

    private static String now() {
        return HTTP_DATE.format(ZonedDateTime.now(ZoneOffset.UTC));
    }
}
