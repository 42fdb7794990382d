package main

import (
	"log"
	"sync/atomic"
	"time"
)

// outageLog logs the cause of 503 responses, at most once per second.
type outageLog struct{ last atomic.Int64 }

var outages outageLog

func (o *outageLog) report(err error) {
	now := time.Now().Unix()
	if last := o.last.Load(); last != now && o.last.CompareAndSwap(last, now) {
		log.Printf("unavailable: %v", err)
	}
}
