package main

import (
	"cmp"
	"slices"
)

// judgesMax is how many packages' tests run against one mutant at most.
const judgesMax = 3

// Judges orders the packages that have tests and need the package: itself, then whoever imports it, the nearest first, and of those that
// are as near the quickest.
func Judges(of *Package, all []*Package, seconds func(*Package) float64) []*Package {
	distance := map[string]int{of.Path: 0}
	for queue := []string{of.Path}; len(queue) > 0; queue = queue[1:] {
		for _, p := range all {
			if _, known := distance[p.Path]; !known && slices.Contains(p.Imports, queue[0]) {
				distance[p.Path] = distance[queue[0]] + 1
				queue = append(queue, p.Path)
			}
		}
	}
	judges := slices.DeleteFunc(slices.Clone(all), func(p *Package) bool {
		_, needs := distance[p.Path]
		return !needs || !p.HasTests
	})
	slices.SortStableFunc(judges, func(a, b *Package) int {
		return cmp.Or(cmp.Compare(distance[a.Path], distance[b.Path]), cmp.Compare(seconds(a), seconds(b)))
	})
	return judges
}
