package main

import (
	"log"
	"sync/atomic"
	"time"
)

// outageLog logs at most once per second why requests fail with 503.
type outageLog struct{ last atomic.Int64 }

var outages outageLog

func (o *outageLog) report(err error) {
	now := time.Now().Unix()
	if last := o.last.Load(); last != now && o.last.CompareAndSwap(last, now) {
		log.Printf("unavailable: %v", err)
	}
}
