package tfb;

import io.jstach.jstachio.Output.EncodedOutput;
import io.vertx.core.buffer.Buffer;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;

/** Lets JStachio write UTF-8 directly to a Vert.x buffer. */
final class BufferOutput implements EncodedOutput<RuntimeException> {

    private static final int PAGE_BYTES = 2048;

    private final Buffer buffer = Buffer.buffer(PAGE_BYTES);

    Buffer buffer() {
        return buffer;
    }

    @Override
    public void write(byte[] bytes) {
        buffer.appendBytes(bytes);
    }

    @Override
    public void write(byte[] bytes, int offset, int length) {
        buffer.appendBytes(bytes, offset, length);
    }

    @Override
    public void append(String text) {
        buffer.appendString(text);
    }

    @Override
    public void append(CharSequence text) {
        buffer.appendString(text.toString());
    }

    @Override
    public Charset charset() {
        return StandardCharsets.UTF_8;
    }
}
