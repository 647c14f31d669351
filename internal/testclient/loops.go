package testclient

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

func makesAccounts(l Loops) bool {
	return !l.apiOnly && (l.only == nil || slices.Contains(l.only, accountsLoop))
}

// Chosen are those that run, and whether it is none of those that can be left out. It is no method: tests see those of Loops.
func Chosen(l Loops) (only []string, apiOnly bool) { return l.only, l.apiOnly }

// DisabledAdmission are the admission plugins that a Config disables, and the one that needs a loop which does not run.
func DisabledAdmission(l Loops, disabled []string) []string {
	if makesAccounts(l) || slices.Contains(disabled, accountsPlugin) {
		return disabled
	}
	return append(slices.Clone(disabled), accountsPlugin)
}
