package house

import (
	"os"
	"testing"
)

// TestMain goes to the root of the repository, from which the rules name folders and files.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
