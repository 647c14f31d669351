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
		g.Pause()
		passes := 0
		for range 3 {
			go func() {
				if _, ok := g.Enter(t.Context()); ok {
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
		if passes != 3 || p.Held("deployment") {
			t.Errorf("%d passes after it went on", passes)
		}
	})
}

// TestNothingBeginsAtTheEnd: who asks again and again, as the scheduler does while no pod waits, learns that it is over.
func TestNothingBeginsAtTheEnd(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	p := &Pace{}
	for name, g := range map[string]*Gate{"none": nil, "open": p.Gate("open"), "with a step": p.Gate("held")} {
		if name == "with a step" {
			g.Pause()
			if err := g.Step(); err != nil {
				t.Fatal(err)
			}
		}
		if _, ok := g.Enter(ended); ok {
			t.Errorf("a pass begins at a gate (%s) after the end", name)
		}
	}
}

// TestAStepIsGivenBack by who took it and had no work, and is void in the next pause.
func TestAStepIsGivenBack(t *testing.T) {
	p := &Pace{}
	g := p.Gate("q")
	g.Pause()
	if err := g.Step(); err != nil {
		t.Fatal(err)
	}
	turn, _ := g.Enter(t.Context())
	g.Return(turn)
	if _, steps := p.State("q"); steps != 1 {
		t.Errorf("%d steps after it was given back", steps)
	}
	turn, _ = g.Enter(t.Context())
	g.Resume()
	g.Return(turn)
	g.Pause()
	g.Return(turn)
	if _, steps := p.State("q"); steps != 0 {
		t.Error("a step of the pause before lets a pass begin")
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

// TestAnOrderIsForOneTerm: one that comes late holds nothing in the next.
func TestAnOrderIsForOneTerm(t *testing.T) {
	p := &Pace{}
	pause := func(g *Gate) error { g.Pause(); return nil }
	p.Begin(5)
	if err := p.Order(5, "q", pause); err != nil || !p.Held("q") {
		t.Errorf("in its term: %v, held %t", err, p.Held("q"))
	}
	p.End()
	if err := p.Order(5, "q", pause); !errors.Is(err, ErrTerm) || p.Held("q") {
		t.Errorf("after its term: %v, held %t", err, p.Held("q"))
	}
	p.Begin(7)
	if err := p.Order(5, "q", pause); !errors.Is(err, ErrTerm) || p.Held("q") {
		t.Errorf("in the next term: %v, held %t", err, p.Held("q"))
	}
}

// TestALoopWithAStepIsNotHeld: who lets time pass waits for its pass.
func TestALoopWithAStepIsNotHeld(t *testing.T) {
	p := &Pace{}
	p.Gate("q").Pause()
	before := p.Held("q")
	if err := p.Gate("q").Step(); err != nil || !before || p.Held("q") {
		t.Errorf("%v, held %t, then %t", err, before, p.Held("q"))
	}
}

func TestNobodyNeedsAPace(t *testing.T) {
	var p *Pace
	p.End()
	ended, cancel := context.WithCancel(t.Context())
	turn, ok := p.Gate("q").Enter(ended)
	if !ok || p.Held("q") {
		t.Error("without a Pace a loop is held")
	}
	p.Gate("q").Return(turn)
	cancel()
	if _, ok := p.Gate("q").Enter(ended); ok {
		t.Error("entered after the end")
	}
}
