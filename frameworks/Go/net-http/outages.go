package main

import (
	"log"
	"sync/atomic"
	"time"
)

// outageLog says at most once a second why requests are refused, however many they are.
type outageLog struct{ last atomic.Int64 }

var outages outageLog

func (o *outageLog) report(err error) {
	now := time.Now().Unix()
	if last := o.last.Load(); last != now && o.last.CompareAndSwap(last, now) {
		log.Printf("unavailable: %v", err)
	}
}
