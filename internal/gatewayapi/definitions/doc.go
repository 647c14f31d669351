// Package definitions has the CustomResourceDefinitions of the Gateway API that the cluster brings along.
//
// It owns the bundle: the kinds that are served, of the standard channel of the version in go.mod. Generated from the module
// sigs.k8s.io/gateway-api, by generate; of each description the first paragraph is kept. A term of leadership hands them to
// controllers/clusterobjects. It imports API types only.
//
// Promises: nothing is parsed before All is called, and each call makes its own objects.
//
// Tested by comparing the bundle with go.mod.
package definitions

//go:generate go run ./generate
