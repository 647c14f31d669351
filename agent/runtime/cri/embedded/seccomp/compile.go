package seccomp

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// instructionsMax is the kernel's limit for one program.
const instructionsMax = 4096

// Offsets in struct seccomp_data, in bytes, on a little-endian machine.
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16
	wordBytes    = 4
)

// Return values of a filter; the low 16 bits of returnErrno carry the error.
const (
	returnKillProcess = 0x80000000
	returnKillThread  = 0x00000000
	returnTrap        = 0x00030000
	returnErrno       = 0x00050000
	returnLog         = 0x7ffc0000
	returnAllow       = 0x7fff0000
)

// ErrUnsupported says that a profile wants what this compiler, or this machine, cannot do.
var ErrUnsupported = errors.New("unsupported seccomp profile")

// Compile compiles a profile in its JSON form.
func Compile(profile []byte, capabilities []string) ([]byte, error) {
	loaded, err := seccomp.LoadProfile(string(profile), specFor(capabilities))
	if err != nil {
		return nil, fmt.Errorf("seccomp profile: %w", err)
	}
	if loaded == nil {
		return nil, nil
	}
	return assemble(loaded)
}

func specFor(capabilities []string) *specs.Spec {
	return &specs.Spec{Process: &specs.Process{Capabilities: &specs.LinuxCapabilities{Bounding: capabilities}}}
}

func assemble(profile *specs.LinuxSeccomp) ([]byte, error) {
	program, err := build(profile)
	if err != nil {
		return nil, err
	}
	raw, err := bpf.Assemble(program)
	if err != nil {
		return nil, fmt.Errorf("seccomp profile: %w", err)
	}
	var out []byte
	for _, instruction := range raw {
		out = binary.NativeEndian.AppendUint16(out, instruction.Op)
		out = append(out, instruction.Jt, instruction.Jf)
		out = binary.NativeEndian.AppendUint32(out, instruction.K)
	}
	return out, nil
}

// build lays the program out as: check the architecture; then for each system call "if it is this one: its rules, in
// order, else the default". It is linear: kernels since 5.11 remember calls that are always allowed and skip the
// program for them.
func build(profile *specs.LinuxSeccomp) ([]bpf.Instruction, error) {
	fallback, err := actionOf(profile.DefaultAction, profile.DefaultErrnoRet)
	if err != nil {
		return nil, err
	}
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offsetArch, Size: wordBytes},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: nativeArch, SkipTrue: 1},
		bpf.RetConstant{Val: returnErrno | uint32(unix.ENOSYS)},
		bpf.LoadAbsolute{Off: offsetNumber, Size: wordBytes},
	}
	rules, order, err := rulesByNumber(profile)
	if err != nil {
		return nil, err
	}
	for _, number := range order {
		body, err := blockOf(rules[number], fallback)
		if err != nil {
			return nil, err
		}
		program = append(program, bpf.JumpIf{Cond: bpf.JumpEqual, Val: number, SkipFalse: uint8(len(body))})
		program = append(program, body...)
	}
	program = append(program, bpf.RetConstant{Val: fallback})
	if len(program) > instructionsMax {
		return nil, fmt.Errorf("%w: %d instructions", ErrUnsupported, len(program))
	}
	return program, nil
}

// rule is one way for a system call to be judged; without conditions it always is.
type rule struct {
	action     uint32
	conditions []specs.LinuxSeccompArg
}

func rulesByNumber(profile *specs.LinuxSeccomp) (map[uint32][]rule, []uint32, error) {
	numbers := systemCalls()
	rules := map[uint32][]rule{}
	var order []uint32
	for _, entry := range profile.Syscalls {
		action, err := actionOf(entry.Action, entry.ErrnoRet)
		if err != nil {
			return nil, nil, err
		}
		for _, name := range entry.Names {
			number, known := numbers[name]
			if !known {
				continue
			}
			if _, seen := rules[number]; !seen {
				order = append(order, number)
			}
			rules[number] = append(rules[number], rule{action, entry.Args})
		}
	}
	return rules, order, nil
}

func blockOf(rules []rule, fallback uint32) ([]bpf.Instruction, error) {
	var block []bpf.Instruction
	for _, rule := range rules {
		judged, err := conditionsOf(rule.conditions)
		if err != nil {
			return nil, err
		}
		block = append(block, judged...)
		block = append(block, bpf.RetConstant{Val: rule.action})
		if len(rule.conditions) == 0 {
			return block, nil // whatever follows cannot be reached
		}
	}
	block = append(block, bpf.RetConstant{Val: fallback})
	if len(block) > 255 {
		return nil, fmt.Errorf("%w: too many rules for one system call", ErrUnsupported)
	}
	return block, nil
}

func actionOf(action specs.LinuxSeccompAction, errno *uint) (uint32, error) {
	switch action {
	case specs.ActAllow:
		return returnAllow, nil
	case specs.ActLog:
		return returnLog, nil
	case specs.ActTrap:
		return returnTrap, nil
	case specs.ActKill, specs.ActKillThread:
		return returnKillThread, nil
	case specs.ActKillProcess:
		return returnKillProcess, nil
	case specs.ActErrno:
		value := uint32(unix.EPERM)
		if errno != nil {
			value = uint32(*errno)
		}
		return returnErrno | value&0xffff, nil
	default:
		return 0, fmt.Errorf("%w: action %s", ErrUnsupported, action)
	}
}
