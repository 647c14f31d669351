package setpointtest

import "github.com/setpoint-io/setpoint/internal/testclient"

// Loops are which control loops run. The zero value is All.
type Loops = testclient.Loops

var (
	// All are those of kube-controller-manager, the scheduler and the API server.
	All = testclient.All
	// APIOnly are those of upstream's API server alone, as in envtest: nothing acts on Deployments, owners that are
	// gone, or namespaces that end.
	APIOnly = testclient.APIOnly
)

// Only are those of upstream's API server and these, by the names that their events and logs bear, such
// as "garbage-collector-controller", and "scheduler".
func Only(names ...string) Loops { return testclient.Only(names...) }
