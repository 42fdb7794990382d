<?php

declare(strict_types=1);

// The cache of /cached-queries: rows in APCu's shared memory, which all PHP-FPM processes use.

/** Reads rows from the cache, and missing rows from the database. */
function cached_worlds(array $ids): array
{
    $key = fn (int $id): string => "world:$id";
    $worlds = apcu_fetch(array_map($key, $ids));
    $missing = array_filter(array_unique($ids), fn (int $id): bool => !isset($worlds[$key($id)]));
    if ($missing) {
        $read = (new Database())->worlds($missing);
        $read = array_combine(array_map($key, array_column($read, 'id')), $read);
        apcu_store($read);
        $worlds += $read;
    }
    return array_map(fn (int $id): array => $worlds[$key($id)], $ids);
}
