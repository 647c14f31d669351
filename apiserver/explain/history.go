package explain

import (
	"slices"
	"strconv"
)

const (
	// stepsMax is how many steps of a history are told, writesMax how many writes are looked at for them.
	stepsMax  = 12
	writesMax = 1000
)

// Step is a write that led to an object's present state, or several by one writer.
type Step struct {
	Object Object `json:"object"`
	// Did is what the write did: created, changed or deleted. It is empty if older writes are no longer kept, which ends a history.
	Did string `json:"did,omitempty"`
	// By is the user, Manager its field manager where the user told one.
	By      string `json:"by,omitempty"`
	Manager string `json:"manager,omitempty"`
	// Revision is that of the newest write of the step, Writes how many there are.
	Revision uint64 `json:"revision,omitempty"`
	Writes   int    `json:"writes,omitempty"`
}

// Write is one change, as the log has it.
type Write struct {
	Object Object
	UID    string
	// Did, By and Manager are those of a Step.
	Did, By, Manager string
	// CauseUID and CauseRevision are the object to whose change the writer reacted; 0: the write was made on somebody's own account.
	CauseUID      string
	CauseRevision uint64
}

// history follows the causes of the object's last write, the newest first, to the write that nobody else's caused. Each step is because of
// the next.
func history(w World, name Object, resourceVersion string) (steps []Step) {
	revision, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return nil
	}
	uid := ""
	for range writesMax {
		write, ok := w.Write(revision)
		if !ok || uid != "" && write.UID != uid {
			return append(steps, Step{Object: name})
		}
		steps = lengthen(steps, write, revision)
		if len(steps) > stepsMax {
			return steps[:stepsMax]
		}
		if write.CauseRevision == 0 || write.CauseRevision >= revision {
			return steps
		}
		revision, uid, name = write.CauseRevision, write.CauseUID, Object{}
	}
	return steps
}

// lengthen adds an older write: to the last step, if that is the same writer's who changed the same object.
func lengthen(steps []Step, w Write, revision uint64) []Step {
	step := Step{Object: w.Object, Did: w.Did, By: w.By, Manager: w.Manager, Revision: revision, Writes: 1}
	if n := len(steps); n > 0 {
		last := &steps[n-1]
		if last.Object == step.Object && last.Did == step.Did && last.By == step.By && last.Manager == step.Manager {
			last.Writes++
			return steps
		}
	}
	return append(steps, step)
}

// visibleSteps hides the objects that a caller may not get, and who wrote them.
func visibleSteps(steps []Step, mayGet func(Object) bool) []Step {
	visible := slices.Clone(steps)
	for i, s := range visible {
		if s.Object.Name != "" && !mayGet(s.Object) {
			visible[i] = Step{Object: Object{Kind: s.Object.Kind, Group: s.Object.Group, Resource: s.Object.Resource}, Did: s.Did, Writes: s.Writes}
		}
	}
	return visible
}
