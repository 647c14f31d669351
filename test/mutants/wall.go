package mutants

import "slices"

// Wall is a wall between a pod and its node, taken away: the attack of a page of test/escape must then succeed.
type Wall struct {
	// Name is a few words with dashes, unique among walls and mutants.
	Name string
	// Bug says in one line what is no longer so.
	Bug string
	// Page is test/escape/testdata/PAGE.txtar, which must fail.
	Page string
	// Changes are one, or several if more than one wall stops the attack.
	Changes []Change
}

// Walls returns every wall.
func Walls() []Wall {
	return slices.Concat(ofMounts, ofKernelTrees, ofPrivileges, ofDevices, ofSharing, ofRequests)
}
