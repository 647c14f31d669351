package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/admission"

	"github.com/setpoint-io/setpoint/apiserver/auth"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// countingAdmission counts how often it is asked.
type countingAdmission struct{ asked int }

func (a *countingAdmission) Handles(admission.Operation) bool {
	a.asked++
	return true
}

// TestRequestsDoNotAddUp: the hundredth request must cost what the first did.
// Upstream's writing handlers wrap their admission once more at each request.
func TestRequestsDoNotAddUp(t *testing.T) {
	counting := &countingAdmission{}
	config := serverConfig(t, raftstoretest.NewLocal(state.Options{}))
	config.Admission = counting
	server, _ := startServer(t, config)
	for name, request := range map[string]func(i int) call{
		"create": func(i int) call { return call{method: "POST", path: podPath, body: podBody(fmt.Sprint("p", i))} },
		"update": func(int) call { return call{method: "PUT", path: leasePath + "/l", body: `{"metadata":{"name":"l"}}`} },
		"patch": func(i int) call {
			return call{method: "PATCH", path: "/api/v1/namespaces/default", contentType: patchTypeOf["merge"], body: fmt.Sprintf(`{"metadata":{"labels":{"n":"%d"}}}`, i)}
		},
		"delete":           func(int) call { return call{method: "DELETE", path: cmPath + "/none"} },
		"deletecollection": func(int) call { return call{method: "DELETE", path: cmPath} },
		"binding": func(int) call {
			return call{method: "POST", path: podPath + "/none/binding", body: `{"metadata":{"name":"none"},"target":{"name":"n"}}`}
		},
	} {
		var costs []int
		for i := range 4 {
			before := counting.asked
			request(i).do(t, server)
			costs = append(costs, counting.asked-before)
		}
		if costs[3] > costs[1] {
			t.Errorf("%s: admission was asked %v times", name, costs)
		}
	}
}

// clientTeller refuses ConfigMaps and says from where it was asked.
type clientTeller struct{}

func (clientTeller) Handles(admission.Operation) bool { return true }

func (clientTeller) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().Resource != "configmaps" {
		return nil
	}
	from, remote := auth.ClientAddress(ctx)
	return admission.NewForbidden(a, fmt.Errorf("asked from %s, %t", from, remote))
}

// TestAdmissionKnowsTheClientsAddress: of a request over a connection, and that it came over none.
func TestAdmissionKnowsTheClientsAddress(t *testing.T) {
	config := serverConfig(t, raftstoretest.NewLocal(state.Options{}))
	config.Admission = clientTeller{}
	server, _ := startServer(t, config)
	for address, want := range map[string]string{
		"192.0.2.5:4711": "asked from 192.0.2.5, true", "[::ffff:192.0.2.5]:1": "asked from 192.0.2.5, true", "": "asked from invalid IP, false",
	} {
		for _, target := range []string{cmPath, cmPath + "?timeout=5s"} {
			r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(`{"metadata":{"name":"a"}}`))
			r.Header.Set("Content-Type", "application/json")
			r.RemoteAddr = address
			w := httptest.NewRecorder()
			server.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, admin)))
			if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), want) {
				t.Errorf("from %q: %d %s", address, w.Code, w.Body)
			}
		}
	}
}
