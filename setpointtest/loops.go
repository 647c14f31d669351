package setpointtest

import "slices"

// Loops are which control loops run. The zero value is All.
type Loops struct {
	apiOnly bool
	only    []string
}

var (
	// All are those of kube-controller-manager, the scheduler and the API server.
	All = Loops{}
	// APIOnly are those of upstream's API server alone, as in envtest: nothing acts on Deployments, owners that are
	// gone, or namespaces that end.
	APIOnly = Loops{apiOnly: true}
)

// Only are those of upstream's API server and these, by the names that their events and logs bear, such
// as "garbage-collector-controller", and "scheduler".
func Only(names ...string) Loops { return Loops{only: append([]string{}, names...)} }

// The loop that makes service accounts, and the plugin that wants them.
const (
	accountsLoop   = "serviceaccount-controller"
	accountsPlugin = "ServiceAccount"
)

func (l Loops) makesAccounts() bool {
	return !l.apiOnly && (l.only == nil || slices.Contains(l.only, accountsLoop))
}

func (c *Config) disabledAdmission() []string {
	if c.Loops.makesAccounts() || slices.Contains(c.DisabledAdmission, accountsPlugin) {
		return c.DisabledAdmission
	}
	return append(slices.Clone(c.DisabledAdmission), accountsPlugin)
}
