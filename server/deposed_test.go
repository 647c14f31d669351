package server

import (
	"bytes"
	"fmt"
	"net/http"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/server/admin"
	"github.com/setpoint-io/setpoint/server/inprocess"
)

// TestADeposedLeaderTellsOfNoPasses: it remembers them, and whoever took it for the leader would show them as the new one's.
func TestADeposedLeaderTellsOfNoPasses(t *testing.T) {
	_, _, servers, _ := startThree(t)
	former, _ := leaderAndFollower(t, servers)
	config := former.RESTConfig(inprocess.Server)
	soon(t, func() string {
		report, err := admin.FetchPasses(t.Context(), config, 0)
		return unless(err == nil && report.Server == former.config.Name && len(report.Passes) > 0, fmt.Sprintf("%+v, %v", report, err))
	})
	if code := askHere(t, config); code != http.StatusOK {
		t.Fatalf("the leader answers another server %d", code)
	}
	if err := former.log.TransferLeadership(t.Context()); err != nil {
		t.Fatal(err)
	}
	soon(t, func() string {
		return unless(former.Status().Leader != former.config.Name, "the leader leads on")
	})
	if code := askHere(t, config); code != http.StatusServiceUnavailable && former.Status().Leader != former.config.Name {
		t.Errorf("a deposed leader answers another server %d", code)
	}
	soon(t, func() string { // whom others ask, it sends to the new one
		report, err := admin.FetchPasses(t.Context(), config, 0)
		return unless(err == nil && report.Server != "" && report.Server == former.Status().Leader, fmt.Sprintf("%+v, %v", report, err))
	})
}

// askHere asks a server for its own passes, as a server does that takes it for the leader.
func askHere(t *testing.T, config *rest.Config) (code int) {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	question := bytes.NewReader([]byte(`{"here": true, "passesFrom": 0}`))
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, config.Host+"/setpoint.v1.ClusterService/Loops", question)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}
