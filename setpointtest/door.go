package setpointtest

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// errEnded is what clients are told after the end of the test.
var errEnded = errors.New("the cluster has ended with its test")

// door leads the requests of a test's clients to the cluster, and through the faults that the test wants.
type door struct {
	world *world
	user  *user.DefaultInfo
	life  *life
}

// RoundTrip implements http.RoundTripper.
func (d door) RoundTrip(r *http.Request) (*http.Response, error) {
	d.world.mu.Lock()
	ended := d.world.ended
	d.world.mu.Unlock()
	if ended {
		return nil, errEnded
	}
	if d.life.gone() {
		return nil, errCrashed
	}
	next := d.world.current.Load().ClientConfig(d.user).Transport
	info, err := parser.NewRequestInfo(r)
	if err != nil || !info.IsResourceRequest {
		return d.world.refused.See(r.URL.Path)(next.RoundTrip(r))
	}
	ask := askOf(r, info, d.user.Name)
	ask.ofProgram = d.life != nil
	if ask.writes() {
		d.world.asked.add(ask)
	}
	if ask.Verb == "list" || ask.Verb == "watch" {
		return d.world.refused.See(ask.String())(d.world.faults.send(r, ask, next))
	}
	return d.world.faults.send(r, ask, next)
}

// CloseIdleConnections is for http.Client: there are none.
func (door) CloseIdleConnections() {}

// Who asks in place of loops that have no account of their own.
var loopUsers = map[string]string{"system:kube-scheduler": "scheduler", "system:setpoint": "setpoint"}

// ofLoop leads the requests of a control loop through the faults that the test wants.
func (w *world) ofLoop(user string, r *http.Request, next http.RoundTripper) (*http.Response, error) {
	info, err := parser.NewRequestInfo(r)
	if err != nil || !info.IsResourceRequest {
		return next.RoundTrip(r)
	}
	ask := askOf(r, info, user)
	ask.loop = strings.TrimPrefix(user, controllerPrefix)
	if name, known := loopUsers[user]; known {
		ask.loop = name
	}
	return w.faults.send(r, ask, next)
}

var parser = &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// Ask is one request of the test's clients.
type Ask struct {
	// Verb is get, list, watch, create, update, patch, delete or deletecollection.
	Verb string
	// Kind is the resource with its group and subresource, such as pods, deployments.apps or pods/status.
	Kind            string
	Namespace, Name string
	// User asks, with the User-Agent Agent.
	User, Agent string

	at     time.Time
	dryRun bool
	// ofProgram: it is asked by the program that Explore crashes.
	ofProgram bool
	// loop is the control loop that asks, "" for everybody else.
	loop string
}

func askOf(r *http.Request, info *request.RequestInfo, user string) Ask {
	a := Ask{
		Verb: info.Verb, Kind: info.Resource, Namespace: info.Namespace, Name: info.Name,
		User: user, Agent: r.UserAgent(), at: time.Now(), dryRun: r.URL.Query().Has("dryRun"),
	}
	if info.APIGroup != "" {
		a.Kind += "." + info.APIGroup
	}
	if info.Subresource != "" {
		a.Kind += "/" + info.Subresource
	}
	return a
}

// answersOnly are kinds that are created to be answered, not stored.
var answersOnly = sets.New("tokenreviews.authentication.k8s.io", "selfsubjectreviews.authentication.k8s.io", "subjectaccessreviews.authorization.k8s.io",
	"selfsubjectaccessreviews.authorization.k8s.io", "localsubjectaccessreviews.authorization.k8s.io", "selfsubjectrulesreviews.authorization.k8s.io")

func (a Ask) writes() bool {
	switch a.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return !a.dryRun && !answersOnly.Has(a.Kind)
	}
	return false
}

// heartbeat: it says that somebody lives, or tells a story, and changes nothing that anybody acts on.
func (a Ask) heartbeat() bool {
	return a.Kind == "leases.coordination.k8s.io" || a.Kind == "events" || a.Kind == "events.events.k8s.io"
}

func (a Ask) String() string {
	text := a.Verb + " " + a.Kind
	switch {
	case a.Namespace != "" && a.Name != "":
		text += " " + a.Namespace + "/" + a.Name
	case a.Name != "":
		text += " " + a.Name
	case a.Namespace != "":
		text += " in " + a.Namespace
	}
	return text + " by " + a.User
}

// askedLimit is how many writes are remembered.
const askedLimit = 10_000

// asked are the writes of the test's clients, the newest askedLimit of them.
type asked struct {
	mu   sync.Mutex
	asks []Ask
}

func (a *asked) add(ask Ask) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.asks) == askedLimit {
		a.asks = slices.Delete(a.asks, 0, askedLimit/2)
	}
	a.asks = append(a.asks, ask)
}

// since returns the writes from a time on that are no heartbeats.
func (a *asked) since(t time.Time) (found []Ask) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, ask := range a.asks {
		if !ask.at.Before(t) && !ask.heartbeat() {
			found = append(found, ask)
		}
	}
	return found
}

// byProgram are the writes of the program that are no heartbeats.
func (a *asked) byProgram() (found []Ask) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, ask := range a.asks {
		if ask.ofProgram && !ask.heartbeat() {
			found = append(found, ask)
		}
	}
	return found
}

// own leads the requests of the test's own helpers to the cluster.
type own struct {
	world *world
	user  *user.DefaultInfo
}

// RoundTrip implements http.RoundTripper.
func (o own) RoundTrip(r *http.Request) (*http.Response, error) {
	return o.world.current.Load().ClientConfig(o.user).Transport.RoundTrip(r)
}
