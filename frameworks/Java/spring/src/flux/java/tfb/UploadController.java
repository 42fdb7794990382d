package tfb;

import org.springframework.core.io.buffer.DataBuffer;
import org.springframework.core.io.buffer.DataBufferUtils;
import org.springframework.http.MediaType;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RestController;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Counts the body's bytes as they arrive. */
@RestController
class UploadController {

    @PostMapping(path = "/upload", produces = MediaType.TEXT_PLAIN_VALUE)
    Mono<String> upload(@RequestBody(required = false) Flux<DataBuffer> body) {
        return body.map(UploadController::size).reduce(0L, Long::sum).map(String::valueOf);
    }

    private static long size(DataBuffer buffer) {
        int bytes = buffer.readableByteCount();
        DataBufferUtils.release(buffer);
        return bytes;
    }
}
