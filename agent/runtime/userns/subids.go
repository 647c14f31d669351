package userns

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

const (
	// owner is the user whose subordinate ids are the pods', as a kubelet has it.
	owner = "kubelet"
	// subIDsBytesMax bounds what is read of /etc/subuid and /etc/subgid.
	subIDsBytesMax = 1 << 20
)

// everyone is what pods share on a machine that says nothing: all users above those of the machine itself.
var everyone = Range{First: UsersUnit, Length: 1<<32 - 2*UsersUnit}

var errSubIDs = errors.New("/etc/subuid and /etc/subgid: want one range for the user kubelet, the same in both")

// HostRange is what the machine has for user namespaces of pods.
func HostRange() (Range, error) {
	uids, err := readSubIDs("/etc/subuid")
	if err != nil {
		return Range{}, err
	}
	gids, err := readSubIDs("/etc/subgid")
	if err != nil {
		return Range{}, err
	}
	return choose(uids, gids)
}

func choose(uids, gids []Range) (Range, error) {
	switch {
	case len(uids) == 0 && len(gids) == 0:
		return everyone, nil
	case len(uids) != 1 || len(gids) != 1 || uids[0] != gids[0]:
		return Range{}, errSubIDs
	}
	return uids[0], nil
}

func readSubIDs(path string) ([]Range, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	found, err := subIDs(io.LimitReader(file, subIDsBytesMax))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return found, nil
}

// subIDs finds the owner's lines: name:first:length.
func subIDs(from io.Reader) (found []Range, err error) {
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		fields := strings.Split(strings.TrimSpace(lines.Text()), ":")
		if len(fields) != 3 || fields[0] != owner {
			continue
		}
		first, err := strconv.ParseUint(fields[1], 10, 32)
		if err != nil {
			return nil, err
		}
		length, err := strconv.ParseUint(fields[2], 10, 32)
		if err != nil {
			return nil, err
		}
		if first+length > uint64(everyone.First)+uint64(everyone.Length) {
			return nil, fmt.Errorf("%w: %s", errSubIDs, lines.Text())
		}
		found = append(found, Range{First: uint32(first), Length: uint32(length)})
	}
	return found, lines.Err()
}
