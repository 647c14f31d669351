package trust

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/internal/trust/tokens"
)

// TestRenewedWhileItRuns: two configurations that are made once serve and call for three
// years, if their identities are renewed when they ask for it.
func TestRenewedWhileItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		cluster := must[*Cluster](t)(InitCluster(dir, []Server{testServer}, time.Now()))
		serving := must[*CA](t)(cluster.CA.NodeServing())
		server := must[*Live](t)(NewLive(must[*Identity](t)(cluster.Server(testServer, time.Now()))))
		node := must[*Live](t)(NewLive(must[*Identity](t)(cluster.CA.IssueNode("a", time.Now()))))
		kubelet := must[*Live](t)(NewLive(must[*Identity](t)(serving.IssueNodeServing("a", cluster.CA, time.Now()))))

		api, agent := must[*tls.Config](t)(server.ServerConfig()), must[*tls.Config](t)(kubelet.AgentConfig(cluster.CA.CertPEM()))
		toAPI, toAgent := must[*tls.Config](t)(node.ClientConfig()), must[*tls.Config](t)(server.NodeClientConfig("a", serving))
		toAPI.ServerName = "server-1"
		for month := range 36 {
			now := time.Now()
			if server.Identity().NeedsRenewal(now) {
				renew(t, server, must[*Identity](t)(cluster.Server(testServer, now)))
			}
			if node.Identity().NeedsRenewal(now) {
				renew(t, node, must[*Identity](t)(cluster.CA.IssueNode("a", now)))
			}
			if kubelet.Identity().NeedsRenewal(now) {
				renew(t, kubelet, must[*Identity](t)(serving.IssueNodeServing("a", cluster.CA, now)))
			}
			for name, ends := range map[string][2]*tls.Config{"API": {api, toAPI}, "agent": {agent, toAgent}} {
				if serverErr, clientErr := handshake(ends[0], ends[1]); serverErr != nil || clientErr != nil {
					t.Fatalf("month %d: %s: %v, %v", month, name, serverErr, clientErr)
				}
			}
			time.Sleep(30 * 24 * time.Hour)
		}
	})
}

func renew(t *testing.T, live *Live, id *Identity) {
	t.Helper()
	if err := live.Renew(id); err != nil {
		t.Fatal(err)
	}
}

// TestRenewAdmin: the kubeconfigs get the new certificate and keep what people wrote.
func TestRenewAdmin(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	cluster := must[*Cluster](t)(InitCluster(dir, twoServers, now))
	elsewhere := []Server{{Name: "balancer", Endpoint: "lb.example:443"}}
	file := filepath.Join(dir, AdminKubeconfig)
	if err := WriteKubeconfig(file, cluster.Admin, elsewhere); err != nil {
		t.Fatal(err)
	}
	before := string(must[[]byte](t)(os.ReadFile(file)))
	if err := cluster.RenewAdmin(now.Add(leafValidity / 2)); err != nil {
		t.Fatal(err)
	}
	if got := string(must[[]byte](t)(os.ReadFile(file))); got != before {
		t.Error("it was renewed with half of its life left")
	}
	later := now.Add(leafValidity * 3 / 4)
	if err := cluster.RenewAdmin(later); err != nil {
		t.Fatal(err)
	}
	if want := string(must[[]byte](t)(Kubeconfig(cluster.Admin, elsewhere))); string(must[[]byte](t)(os.ReadFile(file))) != want {
		t.Error("the kubeconfig has another certificate or other servers")
	}
	if end := cluster.AdminExpires(); end.Before(later.Add(leafValidity - time.Minute)) {
		t.Errorf("the administrator's certificate ends at %s", end)
	}
	if loaded := must[*Cluster](t)(LoadCluster(dir)); loaded.Admin.NeedsRenewal(later) {
		t.Error("the one in the folder was not renewed")
	}
}

// TestNodeTokenMayBeGone: it is good for a day, so its file may be deleted.
func TestNodeTokenMayBeGone(t *testing.T) {
	dir := t.TempDir()
	cluster := must[*Cluster](t)(InitCluster(dir, twoServers, time.Now()))
	if err := os.Remove(cluster.path(fileNodeToken)); err != nil {
		t.Fatal(err)
	}
	if loaded := must[*Cluster](t)(LoadCluster(dir)); loaded.NodeToken != (tokens.Token{}) {
		t.Errorf("%s", loaded.NodeToken)
	}
}
