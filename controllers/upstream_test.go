package controllers

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/internal/pagetest"
)

// upstream are the controllers of kube-controller-manager 1.37 (cmd/kube-controller-manager/names).
var upstream = strings.Fields(`
	bootstrap-signer-controller certificatesigningrequest-approving-controller certificatesigningrequest-cleaner-controller
	certificatesigningrequest-signing-controller clusterrole-aggregation-controller cronjob-controller daemonset-controller
	deployment-controller device-taint-eviction-controller disruption-controller endpoints-controller endpointslice-controller
	endpointslice-mirroring-controller ephemeral-volume-controller garbage-collector-controller
	horizontal-pod-autoscaler-controller job-controller kube-apiserver-serving-clustertrustbundle-publisher-controller
	legacy-serviceaccount-token-cleaner-controller namespace-controller node-ipam-controller node-lifecycle-controller
	persistentvolume-attach-detach-controller persistentvolume-binder-controller persistentvolume-expander-controller
	persistentvolume-protection-controller persistentvolumeclaim-protection-controller pod-garbage-collector-controller
	podcertificaterequest-cleaner-controller podgroup-protection-controller replicaset-controller replicationcontroller-controller
	resourceclaim-controller resourcepoolstatusrequest-controller resourcequota-controller root-ca-certificate-publisher-controller
	selinux-warning-controller service-cidr-controller serviceaccount-controller serviceaccount-token-controller
	statefulset-controller storage-version-migrator-controller storageversion-garbage-collector-controller
	taint-eviction-controller token-cleaner-controller ttl-after-finished-controller ttl-controller
	validatingadmissionpolicy-status-controller volumeattributesclass-protection-controller`)

// ours are folders of the list that are no controllers of upstream's manager: parts of its API server, of other programs, or of
// Setpoint alone.
var ours = []string{
	"addressrepair",
	"apiservice",
	"clusterobjects",
	"crdstatus",
	"dnsservice",
	"eventttl",
	"flowschema",
	"gateway",
	"ingress",
	"loadbalancer",
	"localvolume",
	"unattended",
}

// documented reads the table of docs/compatibility.md: what stands there for each controller.
func documented(t *testing.T) map[string]string {
	t.Helper()
	table := pagetest.Table(t, filepath.Join("..", "docs", "compatibility.md"), "controllers")
	here := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]*)` \\| (.*) \\|$").FindAllStringSubmatch(table, -1) {
		if _, twice := here[row[1]]; twice {
			t.Errorf("%s stands twice in the table", row[1])
		}
		here[row[1]] = row[2]
	}
	return here
}

var folderPattern = regexp.MustCompile("`controllers/([a-z/]+)`")

// listed are the folders that all.go imports to list their controllers.
func listed(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("all.go")
	if err != nil {
		t.Fatal(err)
	}
	var folders []string
	for _, match := range regexp.MustCompile(`(?m)^\t\t([a-z]+)\.New`).FindAllStringSubmatch(string(text), -1) {
		folders = append(folders, match[1])
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}

// TestUpstreamsControllersAreAccountedFor: docs/compatibility.md says of each where it is, and that is true.
func TestUpstreamsControllersAreAccountedFor(t *testing.T) {
	here, folders := documented(t), listed(t)
	for name := range here {
		if !slices.Contains(upstream, name) {
			t.Errorf("the table names %s, which upstream has not", name)
		}
	}
	var named []string
	for _, name := range upstream {
		text, found := here[name]
		if !found {
			t.Errorf("the table lacks %s", name)
			continue
		}
		folder := folderPattern.FindStringSubmatch(text)
		if folder == nil {
			if text != "not yet" && !strings.HasPrefix(text, "left out: ") {
				t.Errorf("%s: %q says neither where it is nor why it is not", name, text)
			}
			expectAbsent(t, name)
			continue
		}
		named = append(named, folder[1])
		if !slices.Contains(folders, folder[1]) {
			t.Errorf("%s is to be in controllers/%s, which all.go does not list", name, folder[1])
		}
	}
	for _, folder := range folders {
		if own := slices.Contains(ours, folder); own == slices.Contains(named, folder) {
			t.Errorf("controllers/%s: name it in the table of docs/compatibility.md, or as one of ours in this test", folder)
		}
	}
}

// expectAbsent: what the table does not name is not there under its name.
func expectAbsent(t *testing.T, name string) {
	t.Helper()
	for _, c := range all(Config{}) {
		if c.Name == name {
			t.Errorf("%s runs: say in the table of docs/compatibility.md where it is", name)
		}
	}
}
