package setpointtest

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint"
)

// Trace tells who wrote what because of what since the test began, oldest first, without heartbeats.
func (c *Cluster) Trace() []string {
	c.t.Helper()
	c.alive()
	return c.trace()
}

func (w *world) trace() []string {
	changes, _ := w.current.Load().Changes(w.start) // the newest, if more was written than is remembered
	names := map[string]string{}
	var lines []string
	for _, change := range changes {
		names[change.UID] = nameOf(change)
		if isHeartbeat(change) || isHousekeeping(change) {
			continue
		}
		line := fmt.Sprintf("%d %s %s by %s", change.Revision, change.Verb, nameOf(change), who(change))
		if cause, ok := names[change.CauseUID]; ok && change.CauseUID != "" {
			line += fmt.Sprintf(", because of %s at %d", cause, change.CauseRevision)
		}
		lines = append(lines, line)
	}
	return lines
}

func who(change setpoint.Change) string {
	if change.FieldManager == "" || strings.Contains(change.User, change.FieldManager) {
		return change.User
	}
	return change.User + " (" + change.FieldManager + ")"
}

func nameOf(change setpoint.Change) string {
	if change.Namespace == "" {
		return change.Resource.String() + " " + change.Name
	}
	return change.Resource.String() + " " + change.Namespace + "/" + change.Name
}

var heartbeats = map[schema.GroupResource]bool{
	{Group: "coordination.k8s.io", Resource: "leases"}: true, {Resource: "events"}: true, {Group: "events.k8s.io", Resource: "events"}: true,
}

func isHeartbeat(change setpoint.Change) bool { return heartbeats[change.Resource] }

const controllerPrefix = "system:serviceaccount:kube-system:"

// housekeepers write what every cluster and every namespace has. A test is not about it.
var housekeepers = map[string]bool{
	"system:setpoint":                                       true,
	controllerPrefix + "apiservice-controller":              true,
	controllerPrefix + "bootstrap-signer":                   true,
	controllerPrefix + "cluster-objects-controller":         true,
	controllerPrefix + "clusterrole-aggregation-controller": true,
	controllerPrefix + "flow-schema-controller":             true,
	controllerPrefix + "root-ca-certificate-publisher":      true,
	controllerPrefix + "service-account-controller":         true,
}

func isHousekeeping(change setpoint.Change) bool { return housekeepers[change.User] }

// made are the uids of the objects that somebody else than housekeepers has written since the test began.
func (w *world) made() map[string]bool {
	changes, _ := w.current.Load().Changes(w.start)
	made := map[string]bool{}
	for _, change := range changes {
		if !isHousekeeping(change) {
			made[change.UID] = true
		}
	}
	return made
}
