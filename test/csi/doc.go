// Package csi judges how CSI drivers are used here by upstream's own parts: its provisioner, attacher and resizer, its mock driver, and
// the cases of its suite for drivers of others ("External Storage").
//
// `make csi` (root) runs it: run.sh builds all of them from the Go module proxy and calls test/conformance/run.sh, which builds the
// suite and starts a cluster with one real node, in namespaces of its own (inside.sh, test/alone.sh); beside.sh runs the other parts beside
// that. cases.tsv lists the cases, passing.txt those that must pass, missing.tsv why others do not; RESULTS.md shows all of it.
//
// Class C are the cases that can run here, D those that cannot.
package csi
