package install

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/setpoint-io/setpoint/agent/reset"
)

// errNotOurs says that a setting names a folder in which others have files.
var errNotOurs = errors.New("this folder is the machine's and not a cluster's alone: remove what belongs to the cluster there yourself, " +
	"and take the setting that names it out of /etc/setpoint")

// owned is what the roles of this machine have on it.
type owned struct {
	// data are the data directories, folders those with keys and settings.
	data, folders []string
	// server is what the server is called, "" if there is none.
	server string
	// units and settings tell whether there are any.
	units, settings bool
}

// find reads the settings of both roles. Without any, it is what they would have by default.
func (i *installer) find() (*owned, error) {
	own := &owned{folders: []string{configFolder}}
	for _, r := range []role{ofAgent, ofServer} {
		own.units = own.units || exists(i.files.path(unitFolder+"/"+r.unit()))
		file := i.files.path(r.environmentFile())
		env, err := readEnvironment(file)
		if err != nil {
			return nil, err
		}
		if !exists(file) {
			continue
		}
		own.settings = true
		own.data = append(own.data, filepath.Clean(cmp.Or(env.get(keyData), i.dataDir)))
		if r == ofServer {
			own.server = env.get(keyName)
			if i.hasKeys(env) {
				own.folders = append(own.folders, filepath.Clean(i.trustFolder(env)))
			}
		}
	}
	if len(own.data) == 0 {
		own.data = []string{i.dataDir}
	}
	slices.Sort(own.data)
	own.data = slices.Compact(own.data)
	slices.Sort(own.folders)
	own.folders = slices.DeleteFunc(slices.Compact(own.folders), func(dir string) bool { return slices.Contains(own.data, dir) })
	return own, nil
}

// purged says what goes, or why it must not.
func (i *installer) purged(own *owned) (string, error) {
	var pods []string
	for _, dir := range own.data {
		if _, err := i.resolve(dir); err != nil {
			return "", err
		}
		plan, err := reset.LookAhead(i.files.path(dir))
		if err != nil {
			return "", err
		}
		pods = append(pods, plan.Pods...)
	}
	for _, dir := range own.folders {
		if _, err := i.resolve(dir); err != nil {
			return "", err
		}
	}
	var what strings.Builder
	if len(pods) > 0 {
		fmt.Fprintf(&what, "This ends %d pods: %s\n", len(pods), strings.Join(pods, ", "))
	}
	fmt.Fprintf(&what, "This deletes %s, the data of the cluster that this machine has, and %s, its keys and settings.\n",
		strings.Join(own.data, ", "), strings.Join(own.folders, ", "))
	return what.String(), nil
}

// resetMachine ends the pods of a data directory and removes it.
func resetMachine(dataDir string) error {
	_, err := reset.Run(dataDir)
	return err
}

func (i *installer) purge(own *owned) error {
	for _, dir := range own.data {
		if err := i.reset(i.files.path(dir)); err != nil {
			return err
		}
		fmt.Fprintf(i.out, "removed %s\n", dir)
	}
	for _, dir := range own.folders {
		target, err := i.resolve(dir)
		if err != nil {
			return err
		}
		if err := errors.Join(os.RemoveAll(target), os.RemoveAll(i.files.path(dir))); err != nil {
			return err
		}
		fmt.Fprintf(i.out, "removed %s\n", dir)
	}
	return nil
}

// resolve is where a folder is that may be a link. It fails with errNotOurs where others have files.
func (i *installer) resolve(dir string) (string, error) {
	target, err := filepath.EvalSymlinks(i.files.path(dir))
	if errors.Is(err, fs.ErrNotExist) {
		target = i.files.path(dir)
	} else if err != nil {
		return "", err
	}
	below, err := filepath.Rel(string(i.files), target)
	if err != nil {
		return "", err
	}
	if !filepath.IsAbs(dir) || isShared(dir) || isShared("/"+below) {
		return "", fmt.Errorf("%s: %w", dir, errNotOurs)
	}
	return target, nil
}

// shared are folders in which others have files, beside ofMachine and the homes of users.
var shared = strings.Fields("/etc/systemd /usr/bin /usr/lib /usr/local /usr/local/bin /usr/sbin /usr/share " +
	"/var/backups /var/cache /var/lib /var/log /var/run /var/spool /var/tmp")

// ofMachine are the folders directly below "/" that every machine has. Others, such as a disk at /data, may be a cluster's alone.
var ofMachine = strings.Fields("bin boot dev etc home lib lib64 media mnt opt proc root run sbin srv sys tmp usr var")

func isShared(dir string) bool {
	dir = filepath.Clean(dir)
	parent, name := filepath.Split(dir)
	return dir == "/" || parent == "/home/" || slices.Contains(shared, dir) || parent == "/" && slices.Contains(ofMachine, name)
}
