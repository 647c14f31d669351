package seccomp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// judge runs the program on one system call. The interpreter reads big-endian words where the kernel reads native ones.
func judge(t *testing.T, program []bpf.Instruction, arch, number uint32, args ...uint64) uint32 {
	t.Helper()
	machine, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 64)
	binary.BigEndian.PutUint32(data[offsetNumber:], number)
	binary.BigEndian.PutUint32(data[offsetArch:], arch)
	for i, arg := range args {
		binary.BigEndian.PutUint32(data[offsetArgs+8*i:], uint32(arg))
		binary.BigEndian.PutUint32(data[offsetArgs+8*i+4:], uint32(arg>>32))
	}
	verdict, err := machine.Run(data)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(verdict)
}

const refused = returnErrno | uint32(unix.EPERM)

func TestDefaultProfile(t *testing.T) {
	profile, err := seccomp.GetDefaultProfile(specFor([]string{"CAP_CHOWN"}))
	if err != nil {
		t.Fatal(err)
	}
	program, err := build(profile)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d instructions", len(program))
	tests := map[string]struct {
		number uint32
		args   []uint64
		want   uint32
	}{
		"read":                 {unix.SYS_READ, nil, returnAllow},
		"mount":                {unix.SYS_MOUNT, nil, refused},
		"clone of a thread":    {unix.SYS_CLONE, []uint64{unix.CLONE_VM | unix.CLONE_THREAD}, returnAllow},
		"clone of a namespace": {unix.SYS_CLONE, []uint64{unix.CLONE_NEWUSER}, refused},
		"clone3":               {unix.SYS_CLONE3, nil, returnErrno | uint32(unix.ENOSYS)},
		"personality 0":        {unix.SYS_PERSONALITY, []uint64{0}, returnAllow},
		"personality odd":      {unix.SYS_PERSONALITY, []uint64{0x1234}, refused},
		"unknown number":       {99999, nil, refused},
	}
	for name, test := range tests {
		if got := judge(t, program, nativeArch, test.number, test.args...); got != test.want {
			t.Errorf("%s: %#x, want %#x", name, got, test.want)
		}
	}
	if got := judge(t, program, 0x40000003, unix.SYS_READ); got != returnErrno|uint32(unix.ENOSYS) {
		t.Errorf("32-bit call: %#x", got)
	}
}

func TestConditions(t *testing.T) {
	const big = 1<<40 | 7
	tests := map[string]struct {
		condition specs.LinuxSeccompArg
		match     []uint64
		miss      []uint64
	}{
		"equal":            {specs.LinuxSeccompArg{Op: specs.OpEqualTo, Value: big}, []uint64{big}, []uint64{7, 1 << 40, big + 1}},
		"not equal":        {specs.LinuxSeccompArg{Op: specs.OpNotEqual, Value: big}, []uint64{7, 1 << 40, big + 1}, []uint64{big}},
		"greater":          {specs.LinuxSeccompArg{Op: specs.OpGreaterThan, Value: big}, []uint64{big + 1, 2 << 40}, []uint64{big, 8, 0}},
		"greater or equal": {specs.LinuxSeccompArg{Op: specs.OpGreaterEqual, Value: big}, []uint64{big, big + 1, 2 << 40}, []uint64{big - 1, 8}},
		"less":             {specs.LinuxSeccompArg{Op: specs.OpLessThan, Value: big}, []uint64{8, big - 1}, []uint64{big, big + 1, 2 << 40}},
		"less or equal":    {specs.LinuxSeccompArg{Op: specs.OpLessEqual, Value: big}, []uint64{8, big}, []uint64{big + 1, 2 << 40}},
		"masked":           {specs.LinuxSeccompArg{Op: specs.OpMaskedEqual, Value: 0xf0, ValueTwo: 0x10}, []uint64{0x10, 0x1f}, []uint64{0x20, 0}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			// Behind another condition, before another rule: the jumps must stay within their own rule.
			test.condition.Index = 1
			first := specs.LinuxSeccompArg{Index: 0, Op: specs.OpEqualTo, Value: 1}
			program, err := build(&specs.LinuxSeccomp{DefaultAction: specs.ActErrno, Syscalls: []specs.LinuxSyscall{
				{Names: []string{"read"}, Action: specs.ActAllow, Args: []specs.LinuxSeccompArg{first, test.condition}},
				{Names: []string{"read"}, Action: specs.ActLog, Args: []specs.LinuxSeccompArg{{Index: 0, Op: specs.OpEqualTo, Value: 2}}},
			}})
			if err != nil {
				t.Fatal(err)
			}
			for _, value := range test.match {
				if got := judge(t, program, nativeArch, unix.SYS_READ, 1, value); got != returnAllow {
					t.Errorf("%#x does not match: %#x", value, got)
				}
			}
			for _, value := range test.miss {
				if got := judge(t, program, nativeArch, unix.SYS_READ, 1, value); got != refused {
					t.Errorf("%#x matches: %#x", value, got)
				}
			}
			if got := judge(t, program, nativeArch, unix.SYS_READ, 2, test.match[0]); got != returnLog {
				t.Errorf("second rule: %#x", got)
			}
		})
	}
}

func TestCompileRefusesWhatItCannotDo(t *testing.T) {
	for name, profile := range map[string]string{
		"action":   `{"defaultAction":"SCMP_ACT_NOTIFY","syscalls":[{"names":["read"],"action":"SCMP_ACT_ALLOW"}]}`,
		"argument": `{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[{"names":["read"],"action":"SCMP_ACT_ALLOW","args":[{"index":9,"op":"SCMP_CMP_EQ"}]}]}`,
	} {
		if _, err := Compile([]byte(profile), nil); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Compile([]byte("{"), nil); err == nil {
		t.Error("compiled half a profile")
	}
}

// TestDefaultsAreKept, each for its capabilities, and nobody's change reaches the next caller.
func TestDefaultsAreKept(t *testing.T) {
	plain, err := Default([]string{"CAP_KILL", "CAP_CHOWN"})
	if err != nil {
		t.Fatal(err)
	}
	want := slices.Clone(plain)
	clear(plain)
	if again, err := Default([]string{"CAP_CHOWN", "CAP_KILL"}); err != nil || !slices.Equal(again, want) {
		t.Errorf("not the same again: %v", err)
	}
	if wide, err := Default([]string{"CAP_CHOWN", "CAP_KILL", "CAP_SYS_ADMIN"}); err != nil || slices.Equal(wide, want) {
		t.Errorf("SYS_ADMIN widens nothing: %v", err)
	}
	for i := range 3 * keptMax {
		if _, err := Default([]string{fmt.Sprint("CAP_", i)}); err != nil {
			t.Fatal(err)
		}
	}
	if len(kept.programs) > keptMax {
		t.Errorf("%d are kept", len(kept.programs))
	}
}
