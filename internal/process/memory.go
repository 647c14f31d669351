package process

import (
	"log/slog"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// memoryPart of what a control group allows is for Go's heap; the rest is for stacks, mapped files and page tables.
const memoryPart = 0.85

// MemoryLimit has the garbage collector work harder before this process reaches the limit of its control group (MemoryMax of its systemd
// unit, a container's limit), which would end it. Without a limit nothing changes. The environment variable GOMEMLIMIT, if set, wins.
func MemoryLimit(log *slog.Logger) { limitMemory(log, memlimit.FromCgroup) }

func limitMemory(log *slog.Logger, limitBytes memlimit.Provider) {
	if _, err := memlimit.Set(memlimit.WithRatio(memoryPart), memlimit.WithProvider(limitBytes)); err != nil {
		log.Debug("the memory limit of this process is not known", "error", err)
	}
}
