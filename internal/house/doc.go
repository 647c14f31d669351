// Package house owns the rules of the house, as tests of the source itself: which package may import which, sizes, sleeps, skips, globals,
// clocks, links and names in texts. All are named TestHouse.
//
// It promises that each failure says why the rule is there and what to do, that an exception or a pattern that matches nothing any more
// fails, and that it links nothing of the product, so that the rules are judged in seconds: go test ./internal/house.
//
// Its tests are mutations_test.go: for each rule files that break it and files that do not.
package house
