package tfb

import io.ktor.client.HttpClient
import io.ktor.client.engine.cio.CIO
import io.ktor.client.request.get
import io.ktor.client.statement.bodyAsText
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.coroutineScope

/** Maximum number of connections to the upstream per process, which is the same in all implementations. */
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
