package userns

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/base/private"
)

const (
	// UsersUnit is the least number of users of a pod, and all numbers are multiples of it, as a kubelet's.
	UsersUnit = 1 << 16
	// fileName is upstream's.
	fileName = "userns"
	// fileBytesMax bounds what is read of one.
	fileBytesMax = 4 << 10
)

var (
	errNoneFree = errors.New("all ranges of users that this node has for user namespaces are in use")
	errForeign  = errors.New("the users are not a range of this node's")
)

// Range is the users of one pod, and the groups of the same numbers: of the host from First on, in the pod from 0 on.
type Range struct{ First, Length uint32 }

// Config of Ranges.
type Config struct {
	// Dir is where the pods' directories are, named by their uids.
	Dir string
	// Users are what pods share; PerPod is how many each gets, 0 a kubelet's number.
	Users  Range
	PerPod uint32
	// Mode is Asked when it is empty.
	Mode   Mode
	Logger *slog.Logger
}

// Ranges are those of one node; nil gives none. mu guards taken and last.
type Ranges struct {
	Config

	mu    sync.Mutex
	taken map[types.UID]Range
	last  uint32 // the first user of the range given last
}

// Open reads which pods have a range.
func Open(config Config) (*Ranges, error) {
	if config.PerPod == 0 {
		config.PerPod = UsersUnit
	}
	users := config.Users
	switch {
	case config.PerPod%UsersUnit != 0:
		return nil, fmt.Errorf("%d users for each pod: want a multiple of %d", config.PerPod, UsersUnit)
	case users.First%UsersUnit != 0 || users.First == 0 || users.Length < config.PerPod:
		return nil, fmt.Errorf("users %d to %d for user namespaces: want at least %d, from a multiple of %d on",
			users.First, uint64(users.First)+uint64(users.Length), config.PerPod, UsersUnit)
	}
	r := &Ranges{Config: config, taken: map[types.UID]Range{}}
	entries, err := os.ReadDir(config.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, entry := range entries {
		r.find(types.UID(entry.Name()))
	}
	return r, nil
}

// find takes note of a pod's range. A damaged file costs its own pod: its next sandbox gets another range.
func (r *Ranges) find(pod types.UID) {
	got, err := r.read(pod)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		r.Logger.Error("the users of a pod are lost", "pod", pod, "err", err)
	default:
		r.taken[pod], r.last = got, max(r.last, got.First)
	}
}

// Of is the pod's range; nil if it has the host's users.
func (r *Ranges) Of(pod types.UID) *Range {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if got, ok := r.taken[pod]; ok {
		return &got
	}
	return nil
}

// For is the range of a pod for which a sandbox will be made; nil if it is to have the host's users. It is on disk before it is used.
// able says whether the runtime makes user namespaces.
func (r *Ranges) For(pod *corev1.Pod, able bool) (*Range, error) {
	if got := r.Of(pod.UID); got != nil || r == nil || !able || !r.Mode.Wants(pod) {
		return got, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	free, err := r.free()
	if err != nil {
		return nil, err
	}
	if err := r.write(pod.UID, free); err != nil {
		return nil, err
	}
	r.taken[pod.UID], r.last = free, free.First
	return &free, nil
}

// Free takes it back. The pod's directory, and with it the file, is gone.
func (r *Ranges) Free(pod types.UID) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.taken, pod)
}

// free is the next range after the last one that nobody has: files that a pod has left somewhere are nobody's for long. A range of
// another length, given under another configuration, may cover several.
func (r *Ranges) free() (Range, error) {
	count := r.Users.Length / r.PerPod
	start := uint32(0)
	if r.last >= r.Users.First {
		start = (r.last-r.Users.First)/r.PerPod + 1
	}
	for i := range count {
		candidate := Range{First: r.Users.First + (start+i)%count*r.PerPod, Length: r.PerPod}
		if !r.inUse(candidate) {
			return candidate, nil
		}
	}
	return Range{}, errNoneFree
}

func (r *Ranges) inUse(candidate Range) bool {
	for _, other := range r.taken {
		if overlap(candidate, other) {
			return true
		}
	}
	return false
}

func overlap(a, b Range) bool {
	return uint64(a.First) < uint64(b.First)+uint64(b.Length) && uint64(b.First) < uint64(a.First)+uint64(a.Length)
}

// mappings is a kubelet's file.
type mappings struct {
	UIDMappings []mapping `json:"uidMappings"`
	GIDMappings []mapping `json:"gidMappings"`
}

type mapping struct {
	HostID      uint32 `json:"hostId"`
	ContainerID uint32 `json:"containerId"`
	Length      uint32 `json:"length"`
}

func (r *Ranges) path(pod types.UID) string { return filepath.Join(r.Dir, string(pod), fileName) }

func (r *Ranges) write(pod types.UID, got Range) error {
	ids := []mapping{{HostID: got.First, Length: got.Length}}
	data, err := json.Marshal(mappings{ids, ids})
	if err != nil {
		return err
	}
	path := r.path(pod)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	return private.WriteFile(path, data)
}

// read trusts nothing: two pods with a user in common would own each other's files.
func (r *Ranges) read(pod types.UID) (Range, error) {
	info, err := os.Lstat(r.path(pod))
	if err != nil {
		return Range{}, err
	}
	if !info.Mode().IsRegular() || info.Size() > fileBytesMax {
		return Range{}, errForeign
	}
	data, err := os.ReadFile(r.path(pod))
	if err != nil {
		return Range{}, err
	}
	got, err := parse(data)
	if err == nil && r.inUse(got) {
		err = errForeign
	}
	return got, err
}

// parse accepts what write writes.
func parse(data []byte) (Range, error) {
	var m mappings
	if err := json.Unmarshal(data, &m); err != nil {
		return Range{}, err
	}
	if len(m.UIDMappings) != 1 || len(m.GIDMappings) != 1 || m.UIDMappings[0] != m.GIDMappings[0] {
		return Range{}, errForeign
	}
	ids := m.UIDMappings[0]
	if ids.ContainerID != 0 || ids.HostID < UsersUnit || ids.Length == 0 || uint64(ids.HostID)+uint64(ids.Length) > math.MaxUint32 {
		return Range{}, errForeign
	}
	return Range{First: ids.HostID, Length: ids.Length}, nil
}
