package boot

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// identity is a resolved User.
type identity struct {
	uid, gid uint32
	groups   []uint32
	home     string
}

// resolveUser looks names up in root's own /etc/passwd and /etc/group. Images without these files may use numbers only.
func resolveUser(user User, root string) (identity, error) {
	name, group, _ := strings.Cut(user.Name, ":")
	if user.UID != nil {
		name, group = strconv.FormatInt(*user.UID, 10), ""
	}
	if name == "" {
		name = "0"
	}
	account, err := findAccount(name, root)
	if err != nil {
		return identity{}, err
	}
	result := identity{uid: account.uid, gid: account.gid, home: account.home}
	if group != "" {
		if result.gid, err = findGroup(group, root); err != nil {
			return identity{}, err
		}
	}
	if user.GID != nil {
		result.gid = uint32(*user.GID)
	}
	result.groups = []uint32{result.gid}
	if !user.Strict && account.name != "" && group == "" {
		result.groups = append(result.groups, memberships(account.name, root)...)
	}
	for _, extra := range user.Groups {
		result.groups = append(result.groups, uint32(extra))
	}
	slices.Sort(result.groups)
	result.groups = slices.Compact(result.groups)
	return result, nil
}

type account struct {
	name, home string
	uid, gid   uint32
}

// findAccount accepts a name or a number; a number need not be listed.
func findAccount(name, root string) (account, error) {
	number, numeric := parseID(name)
	for fields := range records(filepath.Join(root, "etc/passwd"), 6) {
		uid, okUID := parseID(fields[2])
		gid, okGID := parseID(fields[3])
		if !okUID || !okGID {
			continue
		}
		if fields[0] == name || (numeric && uid == number) {
			return account{name: fields[0], home: fields[5], uid: uid, gid: gid}, nil
		}
	}
	if !numeric {
		return account{}, fmt.Errorf("unable to find user %s: no matching entries in passwd file", name)
	}
	return account{home: "/", uid: number}, nil
}

func findGroup(name, root string) (uint32, error) {
	number, numeric := parseID(name)
	for fields := range records(filepath.Join(root, "etc/group"), 3) {
		if gid, ok := parseID(fields[2]); ok && fields[0] == name {
			return gid, nil
		}
	}
	if !numeric {
		return 0, fmt.Errorf("unable to find group %s: no matching entries in group file", name)
	}
	return number, nil
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

// records yields the colon-separated lines of a file that have at least fieldsMin fields; none when it cannot be read.
func records(name string, fieldsMin int) func(yield func([]string) bool) {
	return func(yield func([]string) bool) {
		file, err := os.Open(name)
		if err != nil {
			return
		}
		defer file.Close()
		for lines := bufio.NewScanner(file); lines.Scan(); {
			fields := strings.Split(lines.Text(), ":")
			if len(fields) >= fieldsMin && !yield(fields) {
				return
			}
		}
	}
}

func parseID(text string) (uint32, bool) {
	id, err := strconv.ParseUint(text, 10, 31)
	return uint32(id), err == nil
}
