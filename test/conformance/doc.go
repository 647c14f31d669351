// Command conformance runs the upstream conformance suite of Kubernetes against a
// cluster and says what passed, what failed and what was not run, by class and sig.
//
// The suite is upstream's own e2e.test, built by run.sh from the module
// k8s.io/kubernetes, which nothing else here may import: this folder is a module of
// its own. cases.tsv lists the 462 conformance cases with what they need:
//
//	A  the API alone
//	B  controllers and scheduler too; pods need only be reported as running
//	C  real containers with test images
//	D  networking, DNS or storage of nodes
//
// passing.txt is a ratchet: the cases that must pass. A listed case that is run and
// does not pass makes the command exit 1. `-update` adds what passed newly; nothing
// is ever taken off by it. `-whole-list` runs a list of which every case must be run, too:
// that of the short suite, which `make test` runs (package short). missing.tsv says why the others do not
// pass, and RESULTS.md, written with the list, shows both.
// `-dir` is where these files are: further has those of cases that are no part of conformance, and test/csi others.
//
// Tests cover the selection of cases, the reading of a report, the ratchet, and that RESULTS.md is true.
package main
