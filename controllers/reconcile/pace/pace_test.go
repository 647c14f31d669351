package pace

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

func TestAPausedLoopBeginsWhatStepsAllow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Pace{}
		g := p.Gate("deployment")
		if err := g.Step(); !errors.Is(err, ErrNotPaused) {
			t.Errorf("a step of a loop that runs: %v", err)
		}
		before, _ := g.Enter(t.Context(), Turn{})
		g.Pause()
		if g.Begin(before) {
			t.Error("who entered before the pause began within it")
		}
		passes := 0
		for range 3 {
			go func() {
				if turn, ok := g.Enter(t.Context(), Turn{}); ok && g.Begin(turn) {
					passes++
				}
			}()
		}
		for step := 1; step <= 2; step++ {
			if err := g.Step(); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if passes != step {
				t.Errorf("%d passes after %d steps", passes, step)
			}
		}
		g.Resume()
		synctest.Wait()
		if passes != 3 || p.Paused("deployment") {
			t.Errorf("%d passes after it went on", passes)
		}
	})
}

// TestAStepBelongsToItsPause: who took one and had no work begins nothing in the next pause.
func TestAStepBelongsToItsPause(t *testing.T) {
	g := (&Pace{}).Gate("q")
	g.Pause()
	if err := g.Step(); err != nil {
		t.Fatal(err)
	}
	turn, _ := g.Enter(t.Context(), Turn{})
	if again, ok := g.Enter(t.Context(), turn); !ok || again != turn {
		t.Error("who has a step needs another one")
	}
	g.Resume()
	if !g.Begin(turn) {
		t.Error("a step holds up a loop that runs")
	}
	g.Pause()
	if g.Begin(turn) {
		t.Error("a step of the pause before let a pass begin")
	}
}

func TestStepsAreBounded(t *testing.T) {
	p := &Pace{}
	g := p.Gate("q")
	g.Pause()
	for range StepsMax {
		if err := g.Step(); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Step(); !errors.Is(err, ErrSteps) {
		t.Errorf("one more: %v", err)
	}
	p.End()
	if paused, steps := p.State("q"); paused || steps != 0 {
		t.Errorf("after the term: paused %t, %d steps", paused, steps)
	}
}

func TestNobodyNeedsAPace(t *testing.T) {
	var p *Pace
	p.End()
	ended, cancel := context.WithCancel(t.Context())
	turn, ok := p.Gate("q").Enter(ended, Turn{})
	if !ok || !p.Gate("q").Begin(turn) || p.Paused("q") {
		t.Error("without a Pace a loop is held")
	}
	cancel()
	if _, ok := p.Gate("q").Enter(ended, Turn{}); ok {
		t.Error("entered after the end")
	}
}
