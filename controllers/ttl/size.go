package ttl

import (
	"math"
	"sync"
)

// step is a range of numbers of nodes. Ranges overlap.
type step struct{ nodesMin, nodesMax, ttlSeconds int }

var steps = []step{
	{nodesMin: 0, nodesMax: 100, ttlSeconds: 0},
	{nodesMin: 90, nodesMax: 500, ttlSeconds: 15},
	{nodesMin: 450, nodesMax: 1000, ttlSeconds: 30},
	{nodesMin: 900, nodesMax: 2000, ttlSeconds: 60},
	{nodesMin: 1800, nodesMax: math.MaxInt, ttlSeconds: 300},
}

// size follows the number of nodes.
type size struct {
	mu    sync.Mutex
	nodes int
	step  int // the index in steps; it is left only beyond its ends
}

// add counts nodes that came or, if negative, went; changed says that the seconds are others now.
func (s *size) add(nodes int) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes += nodes
	was := s.step
	for s.nodes > steps[s.step].nodesMax {
		s.step++
	}
	for s.nodes < steps[s.step].nodesMin && s.step > 0 {
		s.step--
	}
	return s.step != was
}

func (s *size) ttlSeconds() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return steps[s.step].ttlSeconds
}
