package tfb

import io.ktor.client.HttpClient
import io.ktor.client.engine.cio.CIO
import io.ktor.client.request.get
import io.ktor.client.statement.bodyAsText
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.coroutineScope

/** Connections to the upstream. The limit is the same in all implementations: 256 in total per process. */
private const val MAX_CONNECTIONS = 256

/** The service that /fan-out calls. */
class Upstream(private val url: String) {
    private val client = HttpClient(CIO) {
        expectSuccess = true
        engine {
            maxConnectionsCount = MAX_CONNECTIONS
            endpoint.maxConnectionsPerRoute = MAX_CONNECTIONS
        }
    }

    /** Calls the upstream concurrently and returns the sum of the results. */
    suspend fun sum(calls: Int): Long = coroutineScope {
        List(calls) { async { client.get(url).bodyAsText().trim().toLong() } }.awaitAll().sum()
    }
}
