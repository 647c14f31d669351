package profile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestProfiles(t *testing.T) {
	config := parsed(t, `
leaderElection: {leaderElect: true}
percentageOfNodesToScore: 30
podInitialBackoffSeconds: 3
podMaxBackoffSeconds: 3
profiles:
- schedulerName: default-scheduler
- schedulerName: packer
  percentageOfNodesToScore: 0
  plugins: {score: {disabled: [{name: ImageLocality}]}}
  pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated}}}]
`)
	if len(config.Profiles) != 2 || config.BackoffMin != 3*time.Second || config.BackoffMax != 3*time.Second {
		t.Fatalf("%+v", config)
	}
	first, packer := config.Profiles[0], config.Profiles[1]
	if first.Name != "default-scheduler" || first.NodesToScore != 30 || listed(first) != upstreamProfile {
		t.Errorf("%s: %s", first.Name, listed(first))
	}
	if packer.Name != "packer" || packer.NodesToScore != 0 || listed(packer) != strings.Replace(upstreamProfile, "ImageLocality:s1 ", "", 1) {
		t.Errorf("%s: %s", packer.Name, listed(packer))
	}
	if alone := parsed(t, "profiles: [{percentageOfNodesToScore: 5}]").Profiles[0]; alone.Name != "default-scheduler" || alone.NodesToScore != 5 {
		t.Errorf("a single profile has the name %s", alone.Name)
	}
	if json, err := Parse([]byte(`{"apiVersion":"kubescheduler.config.k8s.io/v1","kind":"KubeSchedulerConfiguration","profiles":[{"schedulerName":"a"}]}`)); err != nil ||
		json.Profiles[0].Name != "a" {
		t.Errorf("JSON: %v", err)
	}
	if _, err := Parse([]byte("# mine\n---\n" + header)); err != nil {
		t.Errorf("a comment before the document: %v", err)
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	const outside = ": not supported: the scheduler is part of the server, and calls no API over the network; remove it"
	const elects = ": not supported: the server that leads the cluster schedules; remove it"
	for _, tt := range []struct{ text, want string }{
		{"parallelism: 16", "parallelism: not supported: one pod is placed at a time; what plugins say of a node is kept for pods like it"},
		{"extenders: [{urlPrefix: 'http://a'}]", "extenders[0]: not supported: the scheduler calls no other programs"},
		{"delayCacheUntilActive: true", "delayCacheUntilActive: not supported: every server has its caches filled"},
		{"enableProfiling: false", "enableProfiling: not supported: profiling is not a matter of the scheduler"},
		{"enableContentionProfiling: true", "enableContentionProfiling: not supported: profiling is not a matter of the scheduler"},
		{"leaderElection: {leaderElect: false}", "leaderElection.leaderElect" + elects},
		{"leaderElection: {leaseDuration: 15s}", "leaderElection.leaseDuration" + elects},
		{"leaderElection: {renewDeadline: 15s}", "leaderElection.renewDeadline" + elects},
		{"leaderElection: {retryPeriod: 15s}", "leaderElection.retryPeriod" + elects},
		{"leaderElection: {resourceLock: leases}", "leaderElection.resourceLock" + elects},
		{"leaderElection: {resourceName: a}", "leaderElection.resourceName" + elects},
		{"leaderElection: {resourceNamespace: a}", "leaderElection.resourceNamespace" + elects},
		{"clientConnection: {kubeconfig: /etc/a}", "clientConnection.kubeconfig" + outside},
		{"clientConnection: {acceptContentTypes: a}", "clientConnection.acceptContentTypes" + outside},
		{"clientConnection: {contentType: a}", "clientConnection.contentType" + outside},
		{"clientConnection: {qps: 50}", "clientConnection.qps" + outside},
		{"clientConnection: {burst: 100}", "clientConnection.burst" + outside},
		{"percentageOfNodesToScore: 101", "percentageOfNodesToScore: Invalid value: 101: must be 0 to 100"},
		{"profiles: [{percentageOfNodesToScore: -1}]", "profiles[0].percentageOfNodesToScore: Invalid value: -1: must be 0 to 100"},
		{"podInitialBackoffSeconds: 0", "podInitialBackoffSeconds: Invalid value: 0: must be 1 to 86400"},
		{"podInitialBackoffSeconds: 11", "podMaxBackoffSeconds: Invalid value: 10: must be from podInitialBackoffSeconds (11) to 86400"},
		{"podMaxBackoffSeconds: 86401", "podMaxBackoffSeconds: Invalid value: 86401: must be from podInitialBackoffSeconds (1) to 86400"},
		{"profiles: [{schedulerName: a}, {}]", "profiles[1].schedulerName: Required value: every profile needs one"},
		{"profiles: [{schedulerName: ''}]", "profiles[0].schedulerName: Required value: every profile needs one"},
		{"profiles: [{schedulerName: a}, {schedulerName: a}]", `profiles[1].schedulerName: Duplicate value: "a"`},
		{"profiles: [{pluginConfig: [{name: InterPodAffinity, args: {}}, {name: InterPodAffinity, args: {}}]}]",
			`profiles[0].pluginConfig[1].name: Duplicate value: "InterPodAffinity"`},
		{"profile: []", `strict decoding error: unknown field "profile"`},
		{"profiles: [{plugins: {filters: {}}}]", `strict decoding error: unknown field "profiles[0].plugins.filters"`},
		{"profiles: []\nprofiles: []", `strict decoding error: yaml: unmarshal errors: line 4: key "profiles" already set in map`},
		{"---\n" + header, "want one YAML document"},
	} {
		if _, err := Parse([]byte(header + tt.text)); err == nil || err.Error() != tt.want {
			t.Errorf("%s:\ngot  %v\nwant %s", tt.text, err, tt.want)
		}
	}
	for text, want := range map[string]string{
		"":                               "Object 'Kind' is missing",
		"{":                              "unexpected end of JSON input",
		"kind: Pod":                      "Object 'apiVersion' is missing",
		"a: b":                           "Object 'Kind' is missing",
		strings.Repeat("#", 1<<20) + "#": "longer than 1048576 bytes",
		strings.Replace(header, "/v1", "/v1beta3", 1):                                `no kind "KubeSchedulerConfiguration" is registered for version "kubescheduler.config.k8s.io/v1beta3"`,
		strings.Replace(header, "KubeSchedulerConfiguration", "NodeAffinityArgs", 1): `kind: Unsupported value: "NodeAffinityArgs": supported values: "KubeSchedulerConfiguration"`,
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.80q: %v, want %s", text, err, want)
		}
	}
}

func TestRead(t *testing.T) {
	if config, err := Read(""); err != nil || config.Profiles[0].Name != "default-scheduler" {
		t.Errorf("no file: %v", err)
	}
	path := filepath.Join(t.TempDir(), "scheduler.yaml")
	if _, err := Read(path); err == nil || !strings.HasPrefix(err.Error(), "--scheduler-config: open "+path) {
		t.Errorf("no such file: %v", err)
	}
	if err := os.WriteFile(path, []byte(header+"parallelism: 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); err == nil || !strings.HasPrefix(err.Error(), "--scheduler-config "+path+": parallelism: not supported") {
		t.Errorf("a file that is refused: %v", err)
	}
	if err := os.WriteFile(path, []byte(header+"percentageOfNodesToScore: 7"), 0o600); err != nil {
		t.Fatal(err)
	}
	if config, err := Read(path); err != nil || config.Profiles[0].NodesToScore != 7 {
		t.Errorf("a file: %v", err)
	}
}
