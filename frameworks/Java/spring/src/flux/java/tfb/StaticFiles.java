package tfb;

import java.nio.file.Path;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.context.annotation.Configuration;
import org.springframework.web.reactive.config.ResourceHandlerRegistry;
import org.springframework.web.reactive.config.WebFluxConfigurer;
import org.springframework.web.reactive.resource.EncodedResourceResolver;

/** Serves the files in STATIC_DIR, or the .br or .gz file beside a file if the client accepts that encoding. */
@Configuration
@ConditionalOnProperty("STATIC_DIR")
class StaticFiles implements WebFluxConfigurer {

    private final Path folder;

    StaticFiles(@Value("${STATIC_DIR}") Path folder) {
        this.folder = folder;
    }

    @Override
    public void addResourceHandlers(ResourceHandlerRegistry registry) {
        registry.addResourceHandler("/static/**")
                .addResourceLocations(folder.toUri().toString())
                .resourceChain(false)
                .addResolver(new EncodedResourceResolver());
    }
}
