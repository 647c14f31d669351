package boot

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// defaultPath is used when the image sets none, as every other runtime does.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// lookPath finds command in the PATH of env, inside the root this process is in. A name with a slash is taken as it
// is, relative to the working directory.
func lookPath(command string, env []string) (string, error) {
	if command == "" {
		return "", fmt.Errorf("exec: no command: %w", exec.ErrNotFound)
	}
	if strings.Contains(command, "/") {
		if err := executable(command); err != nil {
			return "", fmt.Errorf("exec: %q: %w", command, err)
		}
		return command, nil
	}
	for _, dir := range filepath.SplitList(pathOf(env)) {
		if dir == "" {
			continue // an empty element means the working directory: not a place to trust
		}
		if name := filepath.Join(dir, command); executable(name) == nil {
			return name, nil
		}
	}
	return "", fmt.Errorf("exec: %q: %w", command, exec.ErrNotFound)
}

func executable(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if info.IsDir() || info.Mode()&0o111 == 0 {
		return os.ErrPermission
	}
	return nil
}

func pathOf(env []string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(env[i], "PATH="); ok {
			return value
		}
	}
	return defaultPath
}
