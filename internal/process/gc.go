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
	// gcScannedTimes is how much garbage there may be for each byte that a collection has to look through. What has no
	// pointers, such as stored values and long texts, costs a collection next to nothing, so it earns no garbage.
	gcScannedTimes = 2
	// gcPercentLarge is the most garbage in percent of what is live where that is more than gcHeadroomBytes, which is
	// Go's default; gcPercentMax is the most of a small heap, so that an idle server stays small.
	gcPercentLarge, gcPercentMax = 100, 300
	// gcPercentMin is for a heap that is nearly all values: allocations during a collection need some room.
	gcPercentMin = 10
	// gcStepPart of the present percentage is the least change worth stopping the world for a moment.
	gcStepPart = 5
)

// GC sets the garbage collector's percentage after each collection for the
// rest of the process's life. The environment variable GOGC, if set, wins.
func GC() {
	if os.Getenv("GOGC") != "" {
		return
	}
	pacer := &gcPacer{percent: gcPercentLarge, heap: []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/heap:bytes"}}}
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
	heap    []metrics.Sample
}

// collected runs after each collection: the pacer is garbage until it returns.
func (p *gcPacer) collected() {
	metrics.Read(p.heap)
	percent := gcPercent(p.heap[0].Value.Uint64(), p.heap[1].Value.Uint64())
	if change := max(percent-p.percent, p.percent-percent); change*gcStepPart >= p.percent {
		debug.SetGCPercent(percent)
		p.percent = percent
	}
	runtime.SetFinalizer(p, (*gcPacer).collected)
}

// gcPercent is the garbage that a heap may hold, in percent of its live bytes, of which a collection looks through those scanned.
func gcPercent(liveBytes, scannedBytes uint64) int {
	live := max(liveBytes, 1)
	headroom := min(gcHeadroomBytes*100/live, gcPercentMax)
	earned := min(scannedBytes*gcScannedTimes*100/live, gcPercentLarge)
	return int(max(headroom, earned, gcPercentMin))
}
