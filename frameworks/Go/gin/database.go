package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	selectWorld    = "SELECT id, randomnumber FROM world WHERE id = $1"
	selectFortunes = "SELECT id, message FROM fortune"
	updateWorlds   = "UPDATE world SET randomnumber = new.randomnumber " +
		"FROM unnest($1::int[], $2::int[]) AS new (id, randomnumber) WHERE world.id = new.id"

	worldStatement = "world" // prepared explicitly, because pipelines bypass pgx's statement cache

	connectionsPerCPU = 8               // as in most implementations with a pool
	patience          = 5 * time.Second // limit on a request's database work, including the wait for a connection
)

type world struct {
	ID           int32 `json:"id"`
	RandomNumber int32 `json:"randomNumber"`
}

type fortune struct {
	ID      int32
	Message string
}

// database is a pool of connections, which are opened on demand and replaced if lost.
type database struct{ pool *pgxpool.Pool }

func newDatabase(url string) (*database, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.MaxConns = int32(runtime.GOMAXPROCS(0) * connectionsPerCPU)
	config.AfterConnect = func(ctx context.Context, connection *pgx.Conn) error {
		_, err := connection.Prepare(ctx, worldStatement, selectWorld)
		return err
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, err
	}
	return &database{pool: pool}, nil
}

func (d *database) close() { d.pool.Close() }

// patient returns a context for a request's queries. The context does not derive from the request's context. Otherwise,
// a client that disconnects would cancel its query, and pgx would then close the pooled connection.
func patient() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}

func (d *database) world(ctx context.Context, id int32) (world, error) {
	var w world
	err := d.pool.QueryRow(ctx, worldStatement, id).Scan(&w.ID, &w.RandomNumber)
	return w, err
}

// worlds reads each row with a separate SELECT. The SELECTs are pipelined, each followed by a Sync. (pgx.Batch would
// send a single Sync for all of them.)
func (d *database) worlds(ctx context.Context, ids []int32) ([]world, error) {
	connection, err := d.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer connection.Release()
	pipeline := connection.Conn().PgConn().StartPipeline(ctx)
	worlds, err := readWorlds(pipeline, connection.Conn().TypeMap(), ids)
	if closed := pipeline.Close(); err == nil {
		err = closed
	}
	return worlds, err
}

func readWorlds(pipeline *pgconn.Pipeline, types *pgtype.Map, ids []int32) ([]world, error) {
	binary := []int16{pgx.BinaryFormatCode}
	for _, id := range ids {
		parameter, err := types.Encode(pgtype.Int4OID, pgx.BinaryFormatCode, id, nil)
		if err != nil {
			return nil, err
		}
		pipeline.SendQueryPrepared(worldStatement, [][]byte{parameter}, binary, binary)
		pipeline.SendPipelineSync()
	}
	if err := pipeline.Flush(); err != nil {
		return nil, err
	}
	worlds := make([]world, 0, len(ids))
	for synced := 0; synced < len(ids); {
		result, err := pipeline.GetResults()
		if err != nil {
			return nil, err
		}
		switch result := result.(type) {
		case *pgconn.ResultReader:
			read, err := pgx.CollectExactlyOneRow(pgx.RowsFromResultReader(types, result), pgx.RowToStructByPos[world])
			if err != nil {
				return nil, err
			}
			worlds = append(worlds, read)
		case *pgconn.PipelineSync:
			synced++
		default:
			return nil, fmt.Errorf("unexpected response to a SELECT: %T", result)
		}
	}
	return worlds, nil
}

// update writes all rows with a single statement, which locks them in the given order.
func (d *database) update(ctx context.Context, worlds []world) error {
	ids, numbers := make([]int32, len(worlds)), make([]int32, len(worlds))
	for i, w := range worlds {
		ids[i], numbers[i] = w.ID, w.RandomNumber
	}
	_, err := d.pool.Exec(ctx, updateWorlds, ids, numbers)
	return err
}

func (d *database) fortunes(ctx context.Context) ([]fortune, error) {
	rows, err := d.pool.Query(ctx, selectFortunes)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[fortune])
}
