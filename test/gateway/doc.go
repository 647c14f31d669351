// Package gateway judges the Gateway API as it is served here by upstream's own conformance suite.
//
// `make gateway` (root) runs it: run.sh starts a cluster with one real node in a network namespace of its own, with the images
// of the suite packed from its own Go programs (images), and the suite writes report.yaml. What is examined follows from the
// supportedFeatures of the class setpoint: a feature that is named there and fails, fails.
package gateway
