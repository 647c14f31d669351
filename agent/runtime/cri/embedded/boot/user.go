package boot

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

var errIDRange = errors.New("not in the range 0 to 2147483647")

// identify returns as whom the process runs.
func identify(process *Process) (Identity, error) {
	if process.Identity != nil {
		return *process.Identity, nil
	}
	return resolveUser(process.User, "/")
}

// resolveUser looks names up in root's own /etc/passwd and /etc/group. Images without these files may use numbers only.
func resolveUser(user User, root string) (Identity, error) {
	name, group, _ := strings.Cut(user.Name, ":")
	if user.UID != nil {
		name, group = strconv.FormatInt(*user.UID, 10), ""
	}
	if name == "" {
		name = "0"
	}
	account, err := findAccount(name, root)
	if err != nil {
		return Identity{}, err
	}
	result := Identity{UID: account.uid, GID: account.gid, Home: account.home}
	if group != "" {
		if result.GID, err = findGroup(group, root); err != nil {
			return Identity{}, err
		}
	}
	if user.GID != nil {
		result.GID = uint32(*user.GID)
	}
	result.Groups = []uint32{result.GID}
	if !user.Strict && account.name != "" && group == "" {
		result.Groups = append(result.Groups, memberships(account.name, root)...)
	}
	for _, extra := range user.Groups {
		result.Groups = append(result.Groups, uint32(extra))
	}
	slices.Sort(result.Groups)
	result.Groups = slices.Compact(result.Groups)
	return result, nil
}

type account struct {
	name, home string
	uid, gid   uint32
}

// findAccount accepts a name or a number; a number need not be listed. A number is never compared with names: the
// image's own passwd could call root by the number that the pod asks for.
func findAccount(name, root string) (account, error) {
	number, isNumber, err := numberOf(name)
	if err != nil {
		return account{}, fmt.Errorf("unable to find user %s: %w", name, err)
	}
	for fields := range records(filepath.Join(root, "etc/passwd"), 6) {
		uid, okUID := parseID(fields[2])
		gid, okGID := parseID(fields[3])
		if !okUID || !okGID {
			continue
		}
		if (isNumber && uid == number) || (!isNumber && fields[0] == name) {
			return account{name: fields[0], home: fields[5], uid: uid, gid: gid}, nil
		}
	}
	if !isNumber {
		return account{}, fmt.Errorf("unable to find user %s: no matching entries in passwd file", name)
	}
	return account{home: "/", uid: number}, nil
}

// findGroup takes a number as it is.
func findGroup(name, root string) (uint32, error) {
	number, isNumber, err := numberOf(name)
	if err != nil {
		return 0, fmt.Errorf("unable to find group %s: %w", name, err)
	}
	if isNumber {
		return number, nil
	}
	for fields := range records(filepath.Join(root, "etc/group"), 3) {
		if gid, ok := parseID(fields[2]); ok && fields[0] == name {
			return gid, nil
		}
	}
	return 0, fmt.Errorf("unable to find group %s: no matching entries in group file", name)
}

func memberships(user, root string) []uint32 {
	var groups []uint32
	for fields := range records(filepath.Join(root, "etc/group"), 4) {
		if gid, ok := parseID(fields[2]); ok && slices.Contains(strings.Split(fields[3], ","), user) {
			groups = append(groups, gid)
		}
	}
	return groups
}

// accountsBytesMax is how much is read of a container's passwd and group files; what follows does not count.
const accountsBytesMax = 1 << 20

// records yields the colon-separated lines of a file that have at least fieldsMin fields; none when it cannot be read. The
// file is the container's: it may have become a pipe that nobody writes to.
func records(name string, fieldsMin int) func(yield func([]string) bool) {
	return func(yield func([]string) bool) {
		file, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
		if err != nil {
			return
		}
		defer file.Close()
		if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
			return
		}
		for lines := bufio.NewScanner(io.LimitReader(file, accountsBytesMax)); lines.Scan(); {
			fields := strings.Split(lines.Text(), ":")
			if len(fields) >= fieldsMin && !yield(fields) {
				return
			}
		}
	}
}

// numberOf tells a number from a name. Digits alone are a number, or an error when no user can have it.
func numberOf(text string) (number uint32, isNumber bool, err error) {
	if strings.Trim(text, "0123456789") != "" {
		return 0, false, nil
	}
	number, ok := parseID(text)
	if !ok {
		return 0, false, errIDRange
	}
	return number, true, nil
}

func parseID(text string) (uint32, bool) {
	id, err := strconv.ParseUint(text, 10, 31)
	return uint32(id), err == nil
}
