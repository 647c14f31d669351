package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// TestWritesOfClientsAreTold: what they read, try out or say all the time is not, nor what the loops of this process do.
func TestWritesOfClientsAreTold(t *testing.T) {
	var told []string
	config := serverConfig(t, raftstoretest.NewLocal(state.Options{}))
	config.Written = func(who user.Info, _ string, info *request.RequestInfo, code int, _ time.Duration) {
		told = append(told, fmt.Sprint(who.GetName(), " ", info.Verb, " ", info.Resource, " ", info.Name, " ", code))
	}
	server, _ := startServer(t, config) // whose client is in this process
	const maps, body = "/api/v1/namespaces/default/configmaps", `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c"}}`
	for _, c := range []struct{ method, path, body string }{
		{http.MethodPost, maps, body},
		{http.MethodPost, maps, body},
		{http.MethodPost, maps + "?dryRun=All", strings.Replace(body, `"c"`, `"d"`, 1)},
		{http.MethodGet, maps, ""},
		{http.MethodPost, "/apis/coordination.k8s.io/v1/namespaces/default/leases", `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"l"}}`},
		{http.MethodDelete, maps + "/c", ""},
	} {
		r := httptest.NewRequestWithContext(t.Context(), c.method, c.path, strings.NewReader(c.body))
		r.Header.Set("Content-Type", "application/json")
		r = r.WithContext(request.WithUser(context.WithoutCancel(r.Context()), admin))
		info, err := newResolver().NewRequestInfo(r)
		if err != nil {
			t.Fatal(err)
		}
		r = r.WithContext(request.WithRequestInfo(r.Context(), info))
		server.withWritten(http.HandlerFunc(server.route)).ServeHTTP(httptest.NewRecorder(), r)
	}
	want := []string{"admin create configmaps  201", "admin create configmaps  409", "admin delete configmaps c 200"}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
}
