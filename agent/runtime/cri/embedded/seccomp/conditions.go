package seccomp

import (
	"fmt"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/net/bpf"
)

// target is where a comparison goes on: the next instruction, the next condition, or the end of the rule.
type target int

const (
	next target = iota
	pass
	fail
)

// step is an instruction whose jumps are not resolved yet.
type step struct {
	instruction bpf.Instruction // for anything but a jump
	test        bpf.JumpTest
	value       uint32
	yes, no     target
}

// conditionsOf falls through to the instruction behind it when all conditions hold, and skips that one otherwise.
func conditionsOf(conditions []specs.LinuxSeccompArg) ([]bpf.Instruction, error) {
	var steps []step
	var ends []int // ends[i] is the index behind the condition that step i belongs to
	for _, condition := range conditions {
		own, err := compare(condition)
		if err != nil {
			return nil, err
		}
		steps = append(steps, own...)
		for range own {
			ends = append(ends, len(steps))
		}
	}
	program := make([]bpf.Instruction, len(steps))
	for i, s := range steps {
		if s.instruction != nil {
			program[i] = s.instruction
			continue
		}
		skip := func(to target) uint8 {
			switch to {
			case pass:
				return uint8(ends[i] - i - 1)
			case fail:
				return uint8(len(steps) - i) // over the rule's return too
			default:
				return 0
			}
		}
		program[i] = bpf.JumpIf{Cond: s.test, Val: s.value, SkipTrue: skip(s.yes), SkipFalse: skip(s.no)}
	}
	return program, nil
}

// compare judges one 64-bit argument in two halves, the upper one first.
func compare(condition specs.LinuxSeccompArg) ([]step, error) {
	if condition.Index > 5 {
		return nil, fmt.Errorf("%w: argument %d", ErrUnsupported, condition.Index)
	}
	low := uint32(offsetArgs + 8*condition.Index)
	loadLow := step{instruction: bpf.LoadAbsolute{Off: low, Size: wordBytes}}
	loadHigh := step{instruction: bpf.LoadAbsolute{Off: low + wordBytes, Size: wordBytes}}
	high, value := uint32(condition.Value>>32), uint32(condition.Value)
	is := func(test bpf.JumpTest, value uint32, yes, no target) step {
		return step{test: test, value: value, yes: yes, no: no}
	}
	switch condition.Op {
	case specs.OpEqualTo:
		return []step{loadHigh, is(bpf.JumpEqual, high, next, fail), loadLow, is(bpf.JumpEqual, value, next, fail)}, nil
	case specs.OpNotEqual:
		return []step{loadHigh, is(bpf.JumpEqual, high, next, pass), loadLow, is(bpf.JumpEqual, value, fail, next)}, nil
	case specs.OpMaskedEqual:
		wantHigh, want := uint32(condition.ValueTwo>>32), uint32(condition.ValueTwo)
		return []step{loadHigh, and(high), is(bpf.JumpEqual, wantHigh, next, fail),
			loadLow, and(value), is(bpf.JumpEqual, want, next, fail)}, nil
	case specs.OpGreaterThan, specs.OpGreaterEqual:
		test := bpf.JumpGreaterThan
		if condition.Op == specs.OpGreaterEqual {
			test = bpf.JumpGreaterOrEqual
		}
		return []step{loadHigh, is(bpf.JumpGreaterThan, high, pass, next), is(bpf.JumpEqual, high, next, fail),
			loadLow, is(test, value, next, fail)}, nil
	case specs.OpLessThan, specs.OpLessEqual:
		test := bpf.JumpGreaterOrEqual
		if condition.Op == specs.OpLessEqual {
			test = bpf.JumpGreaterThan
		}
		return []step{loadHigh, is(bpf.JumpGreaterThan, high, fail, next), is(bpf.JumpEqual, high, next, pass),
			loadLow, is(test, value, fail, next)}, nil
	default:
		return nil, fmt.Errorf("%w: operator %s", ErrUnsupported, condition.Op)
	}
}

func and(mask uint32) step { return step{instruction: bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: mask}} }
