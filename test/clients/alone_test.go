package clients

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// insideEnv tells a test that it runs in namespaces of its own.
const insideEnv = "CLIENTS_INSIDE"

// aloneTimeout bounds a test there.
const aloneTimeout = 15 * time.Minute

// aloneAddress is that of the machine beyond loopback there: test/alone.sh gives it.
const aloneAddress = "192.0.2.10"

// alone runs the test (root) in namespaces of its own, as a process that this one waits for, and reports whether this is
// that process. What the test leaves running ends with it.
func alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv(insideEnv) != "" {
		mustf(t, ownFolders(), "making folders of the test's own")
		return true
	}
	// The shell is the first process there, and takes care of those that lose their parent.
	cmd := exec.Command("../alone.sh", "unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c", `"$@"; exit $?`, "inside",
		os.Args[0], "-test.run=^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$", "-test.v", "-test.timeout="+aloneTimeout.String())
	cmd.Env = append(os.Environ(), insideEnv+"=1")
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	mustf(t, cmd.Run(), "%s in namespaces of its own", t.Name())
	return false
}

// kernelSettings are what a kubelet wants, and would otherwise set for the whole machine.
var kernelSettings = map[string]string{
	"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
	"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
}

// ownFolders hides the folders of the machine to which a kubelet writes whatever its flags say, and shows it the settings
// of the kernel that it wants. In user namespaces the kernel mounts no other /proc than one that is there in full somewhere.
func ownFolders() error {
	const settings, whole = "/run/settings", "/run/proc"
	var errs []error
	for _, dir := range []string{"/run", "/var/lib", "/var/log", "/usr/libexec", "/etc/cdi"} {
		if err := unix.Mount("kubelet", dir, "tmpfs", 0, "mode=755"); !errors.Is(err, unix.ENOENT) { // what is missing hides nothing
			errs = append(errs, err)
		}
	}
	errs = append(errs, os.Mkdir(settings, 0o755), os.Mkdir(whole, 0o755), unix.Mount("proc", whole, "proc", 0, ""))
	for name, value := range kernelSettings {
		file := filepath.Join(settings, filepath.Base(name))
		errs = append(errs, os.WriteFile(file, []byte(value+"\n"), 0o644), unix.Mount(file, filepath.Join("/proc/sys", name), "", unix.MS_BIND, ""))
	}
	return errors.Join(errs...)
}
