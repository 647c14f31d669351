// Package flowcontrol has the kinds of flowcontrol.apiserver.k8s.io/v1: which request
// belongs to which priority level, and what share of the server a level has.
//
// The list of kinds (apiserver/kinds) calls Kinds, nobody else calls anything. The
// objects that every cluster has are upstream's, published in
// k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap. Functions are pure and behave as
// the parent package promises. Golden files stand in testdata.
package flowcontrol
