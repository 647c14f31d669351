package trust

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/internal/trust/secretfile"
	"github.com/setpoint-io/setpoint/internal/trust/tokens"
)

const (
	// fileJoining is in the folder of a server that has the cluster's keys and is no member yet.
	fileJoining = "joining"
	// adoptFolder is where a folder grows before it has its name.
	adoptFolder = ".joining"
)

// ErrOccupied says that a folder has other keys already.
var ErrOccupied = errors.New("there are keys already, of a node or of a server: name another folder with --trust-dir")

// Adopt makes dir the trust folder of a server that joins the cluster whose authority has the hash pin: with what all servers share, and
// with keys of its own. Its folder pki appears as a whole, durably: before a crash it is there or not. It fails with ErrOccupied
// if there is one. Joining says from then on that the server is to be made a member.
func Adopt(dir string, shared Shared, pin string, self Server, now time.Time) error {
	if err := shared.validate(pin); err != nil {
		return err
	}
	final, staged := filepath.Join(dir, folderPKI), filepath.Join(dir, adoptFolder)
	if err := free(final); err != nil {
		return err
	}
	if err := os.RemoveAll(staged); err != nil {
		return err
	}
	if err := stage(staged, shared, self, now); err != nil {
		return errors.Join(err, os.RemoveAll(staged))
	}
	if err := os.Rename(filepath.Join(staged, folderPKI), final); err != nil {
		return errors.Join(err, os.RemoveAll(staged))
	}
	secretfile.SyncFolder(dir)
	return os.RemoveAll(staged)
}

// CanAdopt fails with ErrOccupied where Adopt would.
func CanAdopt(dir string) error { return free(filepath.Join(dir, folderPKI)) }

// Outdated reports whether dir is the folder of a server that was never made a member, and has not heard of the authority that a token of
// now names: those who replaced it waited for no such server. It has nothing that the cluster knows, so it may adopt again.
func Outdated(dir string, token tokens.Token) bool {
	cluster, err := LoadCluster(dir)
	return err == nil && cluster.Joining() && token.Role == tokens.RoleServer && !cluster.CA.Holds(token.Pin) && !cluster.CA.Dropped(token.Pin)
}

// AdoptAgain is Adopt in a folder that is Outdated.
func AdoptAgain(dir string, shared Shared, pin string, self Server, now time.Time) error {
	if err := shared.validate(pin); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(dir, folderPKI)); err != nil {
		return err
	}
	return Adopt(dir, shared, pin, self, now)
}

func free(folder string) error {
	entries, err := os.ReadDir(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && len(entries) == 0:
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("%s: %w", folder, ErrOccupied)
}

// stage writes a whole trust folder.
func stage(dir string, shared Shared, self Server, now time.Time) error {
	pki := filepath.Join(dir, folderPKI)
	if err := os.MkdirAll(pki, secretfile.Folder); err != nil {
		return err
	}
	for name, text := range shared {
		if err := secretfile.Write(filepath.Join(pki, name), text, secretfile.Secret); err != nil {
			return err
		}
	}
	if err := secretfile.Write(filepath.Join(pki, fileJoining), []byte(self.Name+"\n"), secretfile.Secret); err != nil {
		return err
	}
	ca, err := loadCA(pki)
	if err != nil {
		return err
	}
	cluster := &Cluster{CA: ca, dir: dir}
	if err := cluster.loadSecrets(false); err != nil { // a secret of its own would be one that nobody else knows
		return err
	}
	return cluster.issue([]Server{self}, now)
}

// Joining reports whether the server is to be made a member of the cluster that it has the keys of.
func (c *Cluster) Joining() bool {
	_, err := os.Stat(c.path(fileJoining))
	return err == nil
}

// JoiningAs is what the server is called that is to be made a member with the trust folder dir, "" if there is none.
func JoiningAs(dir string) string {
	name, err := os.ReadFile(filepath.Join(dir, folderPKI, fileJoining))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(name))
}

// Joined says that it is one.
func (c *Cluster) Joined() error {
	err := os.Remove(c.path(fileJoining))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	secretfile.SyncFolder(filepath.Dir(c.path(fileJoining)))
	return err
}

// EnsureKubeconfigs writes the kubeconfigs of a server that has joined if they are missing: its own first, those of others behind it.
func (c *Cluster) EnsureKubeconfigs(self Server, others []Server) error {
	all := append([]Server{self}, slices.DeleteFunc(slices.Clone(others), func(s Server) bool { return s.Name == self.Name })...)
	for name, servers := range map[string][]Server{self.Name + ".kubeconfig": {self}, AdminKubeconfig: all} {
		path := filepath.Join(c.dir, name)
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := WriteKubeconfig(path, c.Admin, servers); err != nil {
			return err
		}
	}
	return nil
}
