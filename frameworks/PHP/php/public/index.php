<?php

declare(strict_types=1);

// The front controller: nginx passes all requests to this script.

require __DIR__ . '/../src/cache.php';
require __DIR__ . '/../src/database.php';
require __DIR__ . '/../src/draws.php';

const HELLO = 'Hello, World!';

function send_json(mixed $value): void
{
    header('Content-Type: application/json');
    echo json_encode($value, JSON_THROW_ON_ERROR);
}

function send_fortunes(array $fortunes): void
{
    $fortunes[] = ['id' => 0, 'message' => 'Additional fortune added at request time.'];
    usort($fortunes, fn (array $a, array $b): int => strcmp($a['message'], $b['message']));
    header('Content-Type: text/html; charset=utf-8');
    require __DIR__ . '/../src/fortunes.phtml';
}

function updated_worlds(Database $database, int $count): array
{
    $worlds = $database->worlds(distinct_rows($count));
    foreach ($worlds as &$world) {
        $world['randomNumber'] = number_other_than($world['randomNumber']);
    }
    $database->update($worlds);
    return $worlds;
}

if (!in_array($_SERVER['REQUEST_METHOD'], ['GET', 'HEAD'], true)) {
    http_response_code(405);
    exit;
}

try {
    switch (parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH)) {
        case '/json':
            send_json(['message' => HELLO]);
            break;
        case '/plaintext':
            header('Content-Type: text/plain');
            echo HELLO;
            break;
        case '/db':
            send_json((new Database())->worlds([random_row()])[0]);
            break;
        case '/queries':
            send_json((new Database())->worlds(random_rows(row_count('queries'))));
            break;
        case '/cached-queries':
            send_json(cached_worlds(random_rows(row_count('count'))));
            break;
        case '/updates':
            send_json(updated_worlds(new Database(), row_count('queries')));
            break;
        case '/fortunes':
            send_fortunes((new Database())->fortunes());
            break;
        default:
            http_response_code(404);
    }
} catch (PDOException $failure) {
    error_log($failure->getMessage());
    http_response_code(503);
}
