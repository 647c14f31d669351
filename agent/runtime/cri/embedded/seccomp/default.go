package seccomp

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/moby/profiles/seccomp"
)

// keptMax bounds how many compiled default profiles are kept; with one more, all are forgotten. Pods choose capabilities, and most
// choose none.
const keptMax = 16

var kept struct {
	sync.Mutex
	programs map[string][]byte // by capabilities
}

// Default is the profile that Docker and containerd use, compiled, as far as the capabilities ("CAP_...") let it widen. Compiling
// takes most of a millisecond, and nearly all containers have the same, so it is kept. Any number of goroutines may call it.
func Default(capabilities []string) ([]byte, error) {
	key := strings.Join(slices.Sorted(slices.Values(capabilities)), " ")
	kept.Lock()
	defer kept.Unlock()
	if program, ok := kept.programs[key]; ok {
		return slices.Clone(program), nil
	}
	program, err := compileDefault(capabilities)
	if err != nil {
		return nil, err
	}
	if kept.programs == nil || len(kept.programs) >= keptMax {
		kept.programs = map[string][]byte{}
	}
	kept.programs[key] = program
	return slices.Clone(program), nil
}

func compileDefault(capabilities []string) ([]byte, error) {
	profile, err := seccomp.GetDefaultProfile(specFor(capabilities))
	if err != nil {
		return nil, fmt.Errorf("default seccomp profile: %w", err)
	}
	return assemble(profile)
}
