package tfb;

import org.springframework.boot.cache.autoconfigure.CacheManagerCustomizer;
import org.springframework.cache.caffeine.CaffeineCacheManager;
import org.springframework.stereotype.Component;

/** Selects Caffeine's asynchronous cache, which {@code @Cacheable} requires for methods that return a Mono. */
@Component
class ReactiveCache implements CacheManagerCustomizer<CaffeineCacheManager> {

    @Override
    public void customize(CaffeineCacheManager manager) {
        manager.setAsyncCacheMode(true);
    }
}
