package main

import (
	"crypto/x509"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const (
	bareEnv = "SETPOINT_TEST_BARE"
	// rootsMin is fewer than any browser trusts.
	rootsMin = 80
)

// TestWebRoots: where the machine has no certificate authorities, as in the image, those of the web are trusted all the same. What a
// process knows of its machine it reads once, so a process of its own looks.
func TestWebRoots(t *testing.T) {
	if os.Getenv(bareEnv) != "" {
		countRoots(t)
		return
	}
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWebRoots$", "-test.count=1")
	cmd.Env = append(os.Environ(), bareEnv+"=1", "SSL_CERT_FILE="+nowhere, "SSL_CERT_DIR="+nowhere)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func countRoots(t *testing.T) {
	t.Helper()
	for _, cmd := range []string{"server", "agent", "dev", "cri", "images pull"} {
		found, _, err := newRoot().Find(strings.Fields(cmd))
		if err != nil || found.PreRun == nil {
			t.Errorf("%s does not trust the web: %v", cmd, err)
			continue
		}
		found.PreRun(found, nil)
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(roots.Subjects()); n < rootsMin { // deprecated for the roots of other systems, which load theirs late
		t.Errorf("%d certificate authorities", n)
	}
}
