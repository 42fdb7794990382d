<?php

declare(strict_types=1);

// Random ids and numbers, and the requested number of rows.

const ROWS = 10_000;
const MAX_QUERIES = 500;

function random_row(): int
{
    return mt_rand(1, ROWS);
}

function random_rows(int $count): array
{
    return array_map(random_row(...), array_fill(0, $count, null));
}

/** Returns distinct ids in ascending order, so that concurrent updates cannot deadlock. */
function distinct_rows(int $count): array
{
    $ids = [];
    while (count($ids) < $count) {
        $ids[random_row()] = true;
    }
    ksort($ids);
    return array_keys($ids);
}

/** Returns a random number that differs from $old, so that every update changes its row. */
function number_other_than(int $old): int
{
    $number = mt_rand(1, ROWS - 1);
    return $number < $old ? $number : $number + 1;
}

/** Returns a query parameter, clamped to 1..500, or 1 if it is not an integer. */
function row_count(string $parameter): int
{
    $text = $_GET[$parameter] ?? null;
    if (!is_string($text) || !preg_match('/^-?[0-9]+\z/', $text)) {
        return 1;
    }
    return min(max((int) $text, 1), MAX_QUERIES); // on overflow, the cast returns the nearest int
}
