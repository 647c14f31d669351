package machine

import (
	"log/slog"
	"os"
)

// oomScore is a kubelet's: with all memory used up, the kernel ends containers before who looks after them.
const oomScore = "-999"

// SpareFromOOM is for this process and what it starts; containers get scores of their own. Without the privilege for it
// (CAP_SYS_RESOURCE) nothing changes.
func SpareFromOOM(logger *slog.Logger) {
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte(oomScore), 0); err != nil {
		logger.Debug("the kernel may end this process when memory is short", "err", err)
	}
}
