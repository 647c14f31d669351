package discovery_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/apiserver/discovery"
)

// TestKubectl asks with the real client, where there is one.
func TestKubectl(t *testing.T) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Log("no kubectl on this machine; the other tests ask with client-go")
		return
	}
	home := t.TempDir()
	host := newServer(t, newHandler(t, discovery.Config{})).Host
	for _, c := range []struct{ arguments, want string }{
		{"version", "Server Version: v1.37.2+setpoint.0.1.0"},
		{"api-versions", "apps/v1\ncoordination.k8s.io/v1\nv1\n"},
		{"api-resources --no-headers", "deployments   deploy   apps/v1                  true    Deployment"},
		{"api-resources --no-headers -o wide", "create,delete,deletecollection,get,list,patch,update,watch"},
		{"api-resources --categories=all -o name", "pods\ndeployments.apps\n"},
		{"explain deployment.spec.strategy", "KIND:       Deployment"},
		{"explain pod.spec.containers.resources", "Limits describes the maximum amount of compute resources"},
		{"explain po --recursive", "terminationGracePeriodSeconds"},
		{"explain deploy --output=plaintext-openapiv2", "Deployment enables declarative updates"},
		{"get --raw /readyz?verbose", "[+]ping ok\nreadyz check passed"},
	} {
		t.Run(c.arguments, func(t *testing.T) {
			command := exec.Command(kubectl, append([]string{"--server", host}, strings.Fields(c.arguments)...)...)
			command.Env = append(os.Environ(), "HOME="+home, "KUBECONFIG="+filepath.Join(home, "none"))
			output, err := command.CombinedOutput()
			if err != nil || !strings.Contains(string(output), c.want) {
				t.Errorf("%v\n%s\nwant %q", err, output, c.want)
			}
		})
	}
}
