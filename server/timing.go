package server

import (
	"time"

	"github.com/setpoint-io/setpoint/raftstore"
)

// patienceOfOneProcess is how long replicas that share a process wait for a silent leader. Where the process has too little of the
// processors, all of them are slow together, and to replace the leader costs them more: the loops of the next one begin with a look at
// every object, which makes it silent too. One that was killed is replaced at once all the same, since its connections end, and the first
// leader of a new cluster need not be waited for. Replicas that start again together wait for one as long as this, and up to twice.
const patienceOfOneProcess = 1500 * time.Millisecond

// timingOf is when the log's servers take their leader for dead.
func timingOf(oneProcess bool) raftstore.Timing {
	if !oneProcess {
		return raftstore.Timing{}
	}
	return raftstore.Timing{HeartbeatTimeout: patienceOfOneProcess, ElectionTimeout: patienceOfOneProcess, FirstStands: true}
}
