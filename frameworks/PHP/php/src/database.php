<?php

declare(strict_types=1);

/** Queries PostgreSQL through PDO. Each PHP-FPM process keeps its connection between requests. */
final class Database
{
    private const UPDATE = 'UPDATE world SET randomnumber = new.randomnumber
        FROM unnest(?::int[], ?::int[]) AS new (id, randomnumber) WHERE world.id = new.id';

    private PDO $connection;

    public function __construct()
    {
        $setting = fn (string $name, string $fallback): string => getenv($name) ?: $fallback;
        $this->connection = new PDO(
            sprintf(
                'pgsql:host=%s;port=%s;dbname=%s;connect_timeout=3',
                $setting('DBHOST', 'tfb-database'),
                $setting('DBPORT', '5432'),
                $setting('DBNAME', 'hello_world'),
            ),
            $setting('DBUSER', 'benchmarkdbuser'),
            $setting('DBPASS', 'benchmarkdbpass'),
            [PDO::ATTR_PERSISTENT => true, PDO::ATTR_DEFAULT_FETCH_MODE => PDO::FETCH_ASSOC],
        );
    }

    /** Reads each row with a separate SELECT. */
    public function worlds(array $ids): array
    {
        $select = $this->connection->prepare('SELECT id, randomnumber AS "randomNumber" FROM world WHERE id = ?');
        $worlds = [];
        foreach ($ids as $id) {
            $select->execute([$id]);
            $worlds[] = $select->fetch();
        }
        return $worlds;
    }

    /** Writes all rows with a single statement, which locks them in the given order. */
    public function update(array $worlds): void
    {
        $array = fn (string $column): string => '{' . implode(',', array_column($worlds, $column)) . '}';
        $this->connection->prepare(self::UPDATE)->execute([$array('id'), $array('randomNumber')]);
    }

    public function fortunes(): array
    {
        return $this->connection->query('SELECT id, message FROM fortune')->fetchAll();
    }
}
