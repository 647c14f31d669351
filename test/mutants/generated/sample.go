package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Sample chooses n of the mutants. Each has a rank of its own, by the seed: a larger sample has the smaller one in it, and code that
// changes elsewhere leaves it as it is.
func Sample(all []*Mutant, seed uint64, n int) []*Mutant {
	ranked := slices.Clone(all)
	slices.SortStableFunc(ranked, func(a, b *Mutant) int { return cmp.Compare(rank(seed, a), rank(seed, b)) })
	return ranked[:min(n, len(ranked))]
}

func rank(seed uint64, m *Mutant) uint64 {
	sum := sha256.Sum256([]byte(strconv.FormatUint(seed, 10) + "\t" + m.Key()))
	return binary.BigEndian.Uint64(sum[:])
}

// matching keeps the mutants whose lines match a regular expression.
func matching(all []*Mutant, expression string) ([]*Mutant, error) {
	wanted, err := regexp.Compile(expression)
	if err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	return slices.DeleteFunc(all, func(m *Mutant) bool { return !wanted.MatchString(m.String()) }), nil
}

// Focus keeps the packages at a path below the module and under it; the empty path keeps all.
func Focus(packages []*Package, path string) []*Package {
	return slices.DeleteFunc(packages, func(p *Package) bool {
		return path != "" && p.Name != path && !strings.HasPrefix(p.Name, path+"/")
	})
}
