package tfb

import io.ktor.server.engine.connector
import io.ktor.server.engine.embeddedServer
import io.ktor.server.netty.Netty
import io.netty.channel.ChannelOption

private const val BACKLOG = 4096

/** Starts the server on Netty, whose number of event loops depends on the number of CPUs. */
fun main() {
    val database = Database()
    val upstream = environment("UPSTREAM_URL")?.let(::Upstream)
    embeddedServer(Netty, configure = {
        connector {
            host = environment("HOST") ?: "0.0.0.0"
            port = environment("PORT")?.toInt() ?: 8080
        }
        shutdownGracePeriod = 500
        shutdownTimeout = 3000
        configureBootstrap = { option(ChannelOption.SO_BACKLOG, BACKLOG) }
    }) {
        benchmark(database, upstream)
    }.start(wait = true)
}

/** Returns the value of an environment variable, or null if it is unset or empty. */
fun environment(name: String): String? = System.getenv(name)?.ifEmpty { null }
