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

// clamped is the integer that a parameter holds, within low..high; absent or not an integer, it is otherwise.
func clamped(parameter string, low, high, otherwise int) int {
	if !integer.MatchString(parameter) { // strconv.Atoi takes "+5", too
		return otherwise
	}
	number, _ := strconv.Atoi(parameter) // beyond 64 bits: the largest or smallest
	return min(max(number, low), high)
}

// randomRow is uniform over 1..10000: an id, or a number.
func randomRow() int32 { return rand.Int32N(rows) + 1 }

func randomRows(count int) []int32 {
	ids := make([]int32, count)
	for i := range ids {
		ids[i] = randomRow()
	}
	return ids
}

// distinctIDs are ascending, the order in which rows are locked: concurrent updates can't deadlock.
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

// otherNumber is uniform over 1..10000 without old, so that a write always changes the row.
func otherNumber(old int32) int32 {
	drawn := rand.Int32N(rows-1) + 1
	if drawn < old {
		return drawn
	}
	return drawn + 1
}
