package kubectl_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/setpointtest"
	"github.com/setpoint-io/setpoint/setpointtest/kubectl"
)

// TestKubectl: kubectl acts as a part of the test.
func TestKubectl(t *testing.T) {
	c := setpointtest.Start(t, setpointtest.Config{Nodes: 1})
	kubectl.Run(t, c, "create", "namespace", "shop")
	shop := c.In("shop")
	kubectl.Run(t, shop, "create", "deployment", "web", "--image=web", "--replicas=2")
	kubectl.Run(t, shop, "wait", "--for=condition=Available", "deployment/web", "--timeout=30s")
	if out := kubectl.Run(t, shop, "get", "deployments"); !strings.Contains(out, "web") || !strings.Contains(out, "2/2") {
		t.Error(out)
	}
	if out := kubectl.Run(t, shop, "get", "pods", "-o", "name"); strings.Count(out, "pod/web-") != 2 {
		t.Error(out)
	}
}

func TestUsers(t *testing.T) {
	c := setpointtest.Start(t, setpointtest.Config{Loops: setpointtest.APIOnly})
	for name, try := range map[string]func() (string, string, error){
		"of the cluster": func() (string, string, error) { return kubectl.Try(t, c.As("eve"), "get", "secrets") },
		"--as":           func() (string, string, error) { return kubectl.Try(t, c, "get", "secrets", "--as=eve") },
	} {
		if _, _, err := try(); err == nil || !strings.Contains(err.Error(), `exit code 1: Error from server (Forbidden): secrets is forbidden: User "eve" cannot list`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestBubble: kubectl waits in the bubble's time, and reads manifests.
func TestBubble(t *testing.T) {
	manifest := filepath.Join(t.TempDir(), "map.yaml")
	if err := os.WriteFile(manifest, []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {b: c}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		c := setpointtest.Start(t, setpointtest.Config{Loops: setpointtest.APIOnly})
		kubectl.Run(t, c, "apply", "-f", manifest)
		if out := kubectl.Run(t, c, "apply", "-f", manifest); out != "configmap/a unchanged\n" {
			t.Error(out)
		}
		begin := time.Now()
		deleted := make(chan struct{}) // kubectl may see it before Delete returns
		time.AfterFunc(5*time.Minute, func() {
			defer close(deleted)
			c.Delete("configmap/a")
		})
		kubectl.Run(t, c, "wait", "--for=delete", "configmap/a", "--timeout=10m")
		<-deleted
		if waited := time.Since(begin); waited < 5*time.Minute {
			t.Errorf("it waited %v", waited)
		}
	})
}

// TestFailures: what kubectl refuses is an error, and the process goes on.
func TestFailures(t *testing.T) {
	c := setpointtest.Start(t, setpointtest.Config{Loops: setpointtest.APIOnly})
	for _, tc := range []struct{ command, says string }{
		{"get nothing", `the server doesn't have a resource type "nothing"`},
		{"fly", `unknown command "fly"`},
		{"get pods --wings", "unknown flag: --wings"},
	} {
		_, _, err := kubectl.Try(t, c, strings.Fields(tc.command)...)
		if err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v", tc.command, err)
		}
	}
}
