package main

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
)

const (
	rows       = 10_000
	maxQueries = 500
)

var integer = regexp.MustCompile(`^-?[0-9]+$`)

// clamped parses parameter as an integer and clamps it to low..high. If parameter is not an integer, clamped returns
// fallback.
func clamped(parameter string, low, high, fallback int) int {
	if !integer.MatchString(parameter) { // strconv.Atoi would also accept "+5"
		return fallback
	}
	number, _ := strconv.Atoi(parameter) // on overflow, Atoi returns the nearest int
	return min(max(number, low), high)
}

// randomRow returns a uniformly distributed integer from 1 to 10000, for use as an id or a random number.
func randomRow() int32 { return rand.Int32N(rows) + 1 }

func randomRows(count int) []int32 {
	ids := make([]int32, count)
	for i := range ids {
		ids[i] = randomRow()
	}
	return ids
}

// distinctIDs returns distinct ids in ascending order, so concurrent updates lock rows in the same order and cannot
// deadlock.
func distinctIDs(count int) []int32 {
	ids := make([]int32, 0, count)
	for len(ids) < count {
		for len(ids) < count {
			ids = append(ids, randomRow())
		}
		slices.Sort(ids)
		ids = slices.Compact(ids)
	}
	return ids
}

// otherNumber returns a random number from 1 to 10000 that differs from old, so every update changes the row.
func otherNumber(old int32) int32 {
	drawn := rand.Int32N(rows-1) + 1
	if drawn < old {
		return drawn
	}
	return drawn + 1
}
