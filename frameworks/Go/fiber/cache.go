package main

import (
	"context"

	"github.com/maypok86/otter/v2"
)

// cachedWorlds caches rows for /cached-queries.
type cachedWorlds struct {
	cache  *otter.Cache[int32, world]
	loader otter.LoaderFunc[int32, world]
}

func newCachedWorlds(database *database) (*cachedWorlds, error) {
	cache, err := otter.New(&otter.Options[int32, world]{MaximumSize: rows})
	if err != nil {
		return nil, err
	}
	return &cachedWorlds{cache: cache, loader: database.world}, nil
}

func (c *cachedWorlds) worlds(ctx context.Context, ids []int32) ([]world, error) {
	worlds := make([]world, len(ids))
	for i, id := range ids {
		w, err := c.cache.Get(ctx, id, c.loader)
		if err != nil {
			return nil, err
		}
		worlds[i] = w
	}
	return worlds, nil
}
