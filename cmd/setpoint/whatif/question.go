package whatif

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// forDefault is how much time passes for a fork that does not become quiet, forMax the most.
	forDefault = 30 * time.Minute
	forMax     = 24 * time.Hour
)

// Question is what is to happen.
type Question struct {
	// File is a manifest to apply, "-" standard input; Drain a node; Lose nodes; Scale KIND/NAME=N; Delete KIND/NAME.
	File   string   `json:"-"`
	Drain  string   `json:"drain,omitempty"`
	Lose   []string `json:"lose,omitempty"`
	Scale  string   `json:"scale,omitempty"`
	Delete string   `json:"delete,omitempty"`
	// Namespace is that of objects without one.
	Namespace string `json:"namespace,omitempty"`
	// For is how much time passes at most.
	For time.Duration `json:"-"`
	// States wants Answer.States.
	States bool `json:"-"`
}

var (
	errOneAct  = errors.New("say one thing that is to happen: --file, --drain, --lose, --scale or --delete")
	errFetched = errors.New("--file takes a file: what is elsewhere is not fetched")
	errFor     = fmt.Errorf("--for must be more than nothing, and at most %v", forMax)
	errScale   = errors.New("--scale takes KIND/NAME=N, as deployment/web=5")
	errDelete  = errors.New("--delete takes KIND/NAME, as deployment/web")
	errLose    = errors.New("--lose takes names of nodes, separated by commas")
)

// Validate says what is wrong with the question.
func (q *Question) Validate() error {
	said := 0
	for _, act := range []string{q.File, q.Drain, strings.Join(q.Lose, ","), q.Scale, q.Delete} {
		if act != "" {
			said++
		}
	}
	switch {
	case said != 1:
		return errOneAct
	case strings.HasPrefix(q.File, "http://") || strings.HasPrefix(q.File, "https://"):
		return errFetched
	case q.For <= 0 || q.For > forMax:
		return errFor
	case slices.Contains(q.Lose, ""):
		return errLose
	case q.Delete != "" && !isTarget(q.Delete):
		return errDelete
	case q.Scale != "":
		_, _, err := q.scale()
		return err
	}
	return nil
}

func (q *Question) scale() (target string, replicas int, err error) {
	target, number, found := strings.Cut(q.Scale, "=")
	n, err := strconv.ParseUint(number, 10, 31)
	if !found || err != nil || !isTarget(target) {
		return "", 0, errScale
	}
	return target, int(n), nil
}

func isTarget(of string) bool {
	kind, name, found := strings.Cut(of, "/")
	return found && kind != "" && name != "" && !strings.Contains(name, "/")
}

// String says it in words.
func (q *Question) String() string {
	switch {
	case q.Drain != "":
		return "node/" + q.Drain + " is drained"
	case len(q.Lose) > 0:
		return "lost: node/" + strings.Join(q.Lose, ", node/")
	case q.Scale != "":
		target, n, _ := q.scale() // Validate has read it
		return fmt.Sprintf("%s has %d replicas", target, n)
	case q.Delete != "":
		return q.Delete + " is deleted"
	}
	return q.File + " is applied"
}
