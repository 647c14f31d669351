package main

import (
	"strings"
	"testing"
)

func TestRatiosPairRunsOfTheSameRound(t *testing.T) {
	in := `{"bench":"write","case":"create","target":"old","run":1,"params":{"clients":1},"metrics":{"ops_per_s":100}}
{"bench":"write","case":"create","target":"new","run":1,"params":{"clients":1},"metrics":{"ops_per_s":150}}
{"bench":"write","case":"create","target":"new","run":1,"params":{"clients":1},"metrics":{"ops_per_s":400}}
{"bench":"write","case":"create","target":"old","run":1,"params":{"clients":1},"metrics":{"ops_per_s":200}}
{"bench":"write","case":"create","target":"old","run":1,"params":{"clients":1},"metrics":{"ops_per_s":50}}
{"bench":"write","case":"create","target":"new","run":1,"params":{"clients":1},"metrics":{"ops_per_s":50}}
{"bench":"write","case":"create","target":"old","run":"summary","params":{"clients":1},"metrics":{"ops_per_s":{"min":1,"median":2,"max":3}}}`
	byTarget, err := readTargets(strings.NewReader(in))
	if err != nil {
		t.Fatal(err)
	}
	line, measured := ratios[0].line(byTarget["old"], byTarget["new"])
	if want := "create, 1 client\t100 /s\t150 /s\t1.50\t1.00 to 2.00"; line != want || !measured {
		t.Errorf("got %q, want %q", line, want)
	}
	if line, measured := ratios[0].line(byTarget["old"], nil); measured {
		t.Errorf("one build alone was compared: %q", line)
	}
	if _, err := readTargets(strings.NewReader("noise")); err == nil {
		t.Error("noise was taken for a result")
	}
}

func TestPairRatiosLeavesOutWhatHasNoPartner(t *testing.T) {
	if got := pairRatios([]float64{0, 2, 4}, []float64{1, 1}); len(got) != 1 || got[0] != 0.5 {
		t.Errorf("%v", got)
	}
	if got := middle([]float64{1, 2, 4, 8}); got != 3 {
		t.Errorf("the middle of four is %v", got)
	}
}
