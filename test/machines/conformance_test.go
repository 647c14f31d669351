//go:build conformance

package machines

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestConformance runs upstream's suite on three machines; `make conformance NODES=3` calls it, and test/conformance/run.sh says what it
// reads of the environment. IMAGES is the archive of the images that the cases run.
func TestConformance(t *testing.T) {
	binary, err := filepath.Abs("../../bin/setpoint")
	if err != nil {
		t.Fatal(err)
	}
	if err := loopbackUp(); err != nil { // the suite's processes meet there
		t.Fatal(err)
	}
	c := NewWithImages(t, binary, os.Getenv("IMAGES"))
	Until(t, patience, c.nodesNotReady)
	suite := exec.Command("../conformance/run.sh")
	suite.Env = append(os.Environ(), "KUBECONFIG_OF="+c.Kubeconfig(), "NODES=")
	suite.Stdout, suite.Stderr = os.Stdout, os.Stderr
	if err := suite.Run(); err != nil {
		t.Error(err)
	}
}
