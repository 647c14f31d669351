// Package flowcontrol has the kinds of flowcontrol.apiserver.k8s.io/v1: FlowSchemas and
// PriorityLevelConfigurations.
//
// Only the list of kinds (apiserver/kinds) calls this package (Kinds). The objects that every cluster has are
// upstream's, published in k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap. Functions are pure and behave as
// the parent package promises. Golden files stand in testdata.
package flowcontrol
