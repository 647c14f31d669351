package process

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// gcHeadroomBytes is how much garbage a server may hold beside a small live heap
	// before it collects. Go's default of as much as is live makes a server with few
	// objects collect many times a second under load.
	gcHeadroomBytes = 192 << 20
	// gcPercentMin and Max bound the garbage in percent of what is live: with a large
	// heap it is Go's default, and an idle server stays small.
	gcPercentMin, gcPercentMax = 100, 300
	// gcPercentStep is the least change worth stopping the world for a moment.
	gcPercentStep = 20
)

// GC sets the garbage collector's percentage after each collection for the
// rest of the process's life. The environment variable GOGC, if set, wins.
func GC() {
	if os.Getenv("GOGC") != "" {
		return
	}
	pacer := &gcPacer{percent: gcPercentMin, live: []metrics.Sample{{Name: "/gc/heap/live:bytes"}}}
	pacer.collected()
}

// agentGCPercent is the garbage that an agent may hold in percent of what is live, half of Go's default: it allocates little once its
// pods run, and the memory of a node is for its pods.
const agentGCPercent = 50

// AgentGC sets the garbage collector's percentage for an agent that has a process of its own. The environment variable GOGC, if set,
// wins.
func AgentGC() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(agentGCPercent)
	}
}

type gcPacer struct {
	percent int
	live    []metrics.Sample
}

// collected runs after each collection: the pacer is garbage until it returns.
func (p *gcPacer) collected() {
	metrics.Read(p.live)
	percent := gcPercent(p.live[0].Value.Uint64())
	if percent >= p.percent+gcPercentStep || percent <= p.percent-gcPercentStep {
		debug.SetGCPercent(percent)
		p.percent = percent
	}
	runtime.SetFinalizer(p, (*gcPacer).collected)
}

// gcPercent is the headroom in percent of the live heap.
func gcPercent(liveBytes uint64) int {
	return int(min(max(gcHeadroomBytes*100/max(liveBytes, 1), gcPercentMin), gcPercentMax))
}
