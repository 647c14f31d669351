package main

import (
	"math"
	"strings"
	"testing"
)

func TestPowerFindsTheExponent(t *testing.T) {
	sizes := []float64{125, 250, 500, 1000}
	for want, b := range map[string]float64{"0.00": 0, "0.50": 0.5, "1.00": 1, "2.00": 2} {
		costs := make([]float64, len(sizes))
		for i, x := range sizes {
			costs[i] = 3 * math.Pow(x, b)
		}
		if got := power(sizes, costs); got != want {
			t.Errorf("power = %v, want %v", got, want)
		}
	}
}

// TestPowerOfOneSize: one size has no slope, and neither have two that are the same.
func TestPowerOfOneSize(t *testing.T) {
	for _, sizes := range [][]float64{{}, {125}, {125, 125}} {
		if got := power(sizes, sizes); got != "-" {
			t.Errorf("power of %v = %v", sizes, got)
		}
	}
}

func TestGrowthKeepsStepsInOrder(t *testing.T) {
	steps, err := readGrowth(strings.NewReader(`{"bench":"scale","case":"pods","params":{"nodes":10},"metrics":{"server_cpu_s":1,"things":100}}
{"bench":"idle","case":"x","params":{},"metrics":{}}
{"bench":"scale","case":"end","params":{"nodes":10},"metrics":{"server_cpu_s":2,"things":1}}
{"bench":"scale","case":"pods","params":{"nodes":20},"metrics":{"server_cpu_s":4,"things":200}}
`))
	if err != nil || len(steps) != 2 || steps[0].step != "pods" || steps[0].costs[1] != 4 || steps[0].nodes[1] != 20 || steps[1].step != "end" {
		t.Errorf("steps = %+v, %v", steps, err)
	}
}
