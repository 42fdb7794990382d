package tfb

import io.ktor.http.HttpStatusCode
import io.ktor.serialization.kotlinx.json.json
import io.ktor.server.application.Application
import io.ktor.server.application.ApplicationCallPipeline
import io.ktor.server.application.call
import io.ktor.server.application.install
import io.ktor.server.application.log
import io.ktor.server.html.respondHtml
import io.ktor.server.plugins.autohead.AutoHeadResponse
import io.ktor.server.plugins.contentnegotiation.ContentNegotiation
import io.ktor.server.plugins.defaultheaders.DefaultHeaders
import io.ktor.server.plugins.mutableOriginConnectionPoint
import io.ktor.server.plugins.statuspages.StatusPages
import io.ktor.server.response.respond
import io.ktor.server.response.respondText
import io.ktor.server.routing.RoutingCall
import io.ktor.server.routing.get
import io.ktor.server.routing.routing
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.delay
import kotlinx.html.body
import kotlinx.html.head
import kotlinx.html.table
import kotlinx.html.td
import kotlinx.html.th
import kotlinx.html.title
import kotlinx.html.tr
import kotlinx.serialization.Serializable
import java.sql.SQLException
import java.util.concurrent.atomic.AtomicLong
import kotlin.time.Duration.Companion.milliseconds

private const val HELLO = "Hello, World!"

@Serializable
data class Message(val message: String)

@Serializable
data class FanOut(val calls: Int, val sum: Long)

/** Installs the plugins and the routes. */
fun Application.benchmark(database: Database, upstream: Upstream?) {
    val cache = WorldCache(database)
    install(DefaultHeaders) // Server and Date
    install(AutoHeadResponse)
    install(ContentNegotiation) { json() }
    install(StatusPages) {
        val logged = AtomicLong()
        exception<SQLException> { call, failure ->
            val second = System.nanoTime() / 1_000_000_000
            if (logged.getAndSet(second) != second) this@benchmark.log.error("The database failed: {}", failure.message)
            call.respond(HttpStatusCode.ServiceUnavailable)
        }
    }
    intercept(ApplicationCallPipeline.Setup) {
        val uri = call.request.local.uri
        // Ktor's routing does not match absolute URIs, which HTTP allows as request targets. Keep only the path and the
        // query.
        if (!uri.startsWith("/")) {
            call.mutableOriginConnectionPoint.uri = "/" + uri.substringAfter("://").substringAfter("/", "")
        }
    }
    routing {
        get("/json") { call.respond(Message(HELLO)) }

        get("/plaintext") { call.respondText(HELLO) }

        get("/db") { call.respond(database.worlds(randomIds(1)).single()) }

        get("/queries") { call.respond(database.worlds(randomIds(call.rows("queries")))) }

        get("/cached-queries") { call.respond(cache.worlds(randomIds(call.rows("count")))) }

        get("/updates") { call.respond(database.updateWorlds(distinctIds(call.rows("queries")))) }

        get("/fortunes") {
            val fortunes = database.fortunes() + Fortune(0, "Additional fortune added at request time.")
            call.respondFortunes(fortunes.sortedBy(Fortune::message))
        }

        get("/delay") {
            delay(call.clamped("ms", 0..1000, otherwise = 0).milliseconds)
            call.respondText(HELLO)
        }

        get("/fan-out") {
            if (upstream == null) return@get call.respond(HttpStatusCode.ServiceUnavailable)
            val calls = call.clamped("calls", 1..100, otherwise = 1)
            val sum = try {
                upstream.sum(calls)
            } catch (cancelled: CancellationException) {
                throw cancelled
            } catch (failure: Exception) {
                this@benchmark.log.error("The upstream failed: {}", failure.message)
                return@get call.respond(HttpStatusCode.BadGateway)
            }
            call.respond(FanOut(calls, sum))
        }
    }
}

private suspend fun RoutingCall.respondFortunes(fortunes: List<Fortune>) = respondHtml {
    head { title { +"Fortunes" } }
    body {
        table {
            tr {
                th { +"id" }
                th { +"message" }
            }
            for ((id, message) in fortunes) {
                tr {
                    td { +id.toString() }
                    td { +message }
                }
            }
        }
    }
}

/** Returns the number of rows that the parameter [name] requests, clamped to 1..500. */
private fun RoutingCall.rows(name: String) = clamped(name, 1..500, otherwise = 1)

/** Returns a parameter as an integer clamped to [range], or [otherwise] if it is missing or not an integer. */
private fun RoutingCall.clamped(name: String, range: IntRange, otherwise: Int): Int {
    val text = request.queryParameters[name]?.takeIf(INTEGER::matches) ?: return otherwise
    // A number that overflows 64 bits is also outside the range.
    val number = text.toLongOrNull() ?: return if (text.startsWith('-')) range.first else range.last
    return number.coerceIn(range.first.toLong(), range.last.toLong()).toInt()
}

private val INTEGER = Regex("-?[0-9]+")
