package mutants

import (
	"fmt"
	"os"
	"testing"
)

// TestMain is also how a process enters the cage.
func TestMain(m *testing.M) {
	if os.Getenv(cageEnv) != "" {
		fmt.Fprintln(os.Stderr, "cage:", EnterCage(os.Args[1:]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}
